//! Reads that are kept for a stated time, and updated by the answers to our own writes.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::time::Instant;

use crate::{
    CreateGroup, ErrorClass, Gateway, Image, LifecycleHook, Result, SecurityGroup, Selector, Subnet, Write,
    Written,
    inventory::{
        cache::{Answer, Cache},
        cadence::Cadence,
        offers::Offers,
        templates::Templates,
    },
};

type Shared<T> = Arc<Vec<T>>;

pub(super) struct Lookups {
    account: Cache<(), String>,
    associations: Cache<(String, String), bool>,
    hooks: Cache<String, Shared<LifecycleHook>>,
    images: Cache<String, Option<Image>>,
    parameters: Cache<String, Option<String>>,
    security_groups: Cache<Selector, Shared<SecurityGroup>>,
    snapshots: Cache<String, Option<i32>>,
    subnets: Cache<Selector, Shared<Subnet>>,
    pub(super) templates: Templates,
    pub(super) offers: Offers,
}

/// What the end of a write says about what is kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Learnt<'a> {
    /// Nothing changed.
    Nothing,
    /// Done, with this reply.
    Done(&'a Written),
    /// It is not known, or the resource is not as we assumed.
    Unsure,
}

fn all_found<T>(selector: &Selector, items: &Shared<T>) -> Answer {
    let requested = match selector {
        Selector::Ids(ids) => ids.len(),
        Selector::Tags(_) | Selector::Name(_) => 1,
    };
    Answer::complete_if(items.len() >= requested.max(1))
}

impl Lookups {
    pub(super) fn new(cadence: &Cadence, template_tag: &'static str) -> Self {
        let negative = cadence.negative;
        Self {
            account: Cache::new(cadence.constant, negative, |(), _| Answer::Complete),
            associations: Cache::new(cadence.lookup, negative, |_, is_associated| {
                Answer::complete_if(*is_associated)
            }),
            hooks: Cache::new(cadence.audit, negative, |_, _| Answer::Complete),
            images: Cache::new(cadence.constant, negative, |_, found| Answer::complete_if(found.is_some())),
            parameters: Cache::new(cadence.lookup, negative, |_, found| Answer::complete_if(found.is_some())),
            security_groups: Cache::new(cadence.lookup, negative, all_found),
            // Absence is kept as well: a snapshot that another account does not share stays so.
            snapshots: Cache::new(cadence.constant, negative, |_, _| Answer::Complete),
            subnets: Cache::new(cadence.lookup, negative, all_found),
            templates: Templates::new(cadence, template_tag),
            offers: Offers::new(cadence),
        }
    }

    pub(super) async fn account(&self, gateway: &Arc<Gateway>) -> Result<String> {
        let fetch = || {
            let gateway = gateway.clone();
            async move { gateway.account().await }.boxed()
        };
        self.account.get(&(), fetch).await
    }

    pub(super) async fn hooks(&self, gateway: &Arc<Gateway>, group: &str) -> Result<Shared<LifecycleHook>> {
        let key = group.to_owned();
        let fetch = || {
            let (gateway, group) = (gateway.clone(), key.clone());
            async move { gateway.lifecycle_hooks(&group).await.map(Arc::new) }.boxed()
        };
        self.hooks.get(&key, fetch).await
    }

    pub(super) fn known_hooks(&self, group: &str) -> Option<Shared<LifecycleHook>> {
        self.hooks.kept(&group.to_owned())
    }

    pub(super) fn hooks_kept_for(&self, group: &str) -> Option<Duration> {
        self.hooks.kept_for(&group.to_owned())
    }

    pub(super) async fn image(&self, gateway: &Arc<Gateway>, id: &str) -> Result<Option<Image>> {
        let key = id.to_owned();
        let fetch = || {
            let (gateway, id) = (gateway.clone(), key.clone());
            async move { gateway.image(&id).await }.boxed()
        };
        self.images.get(&key, fetch).await
    }

    pub(super) async fn snapshot_gib(&self, gateway: &Arc<Gateway>, id: &str) -> Result<Option<i32>> {
        let key = id.to_owned();
        let fetch = || {
            let (gateway, id) = (gateway.clone(), key.clone());
            async move {
                match gateway.snapshot_gib(&id).await {
                    // A volume without a size of its own has the reported size meanwhile; else only an early message
                    // depends on it.
                    Err(error) if error.class == ErrorClass::Denied => {
                        tracing::debug!(%error, id, "the size of the snapshot is unknown; AWS validates volumes");
                        Ok(None)
                    }
                    reply => reply,
                }
            }
            .boxed()
        };
        self.snapshots.get(&key, fetch).await
    }

    pub(super) async fn parameter(&self, gateway: &Arc<Gateway>, name: &str) -> Result<Option<String>> {
        let key = name.to_owned();
        let fetch = || {
            let (gateway, name) = (gateway.clone(), key.clone());
            async move { gateway.parameter(&name).await }.boxed()
        };
        self.parameters.get(&key, fetch).await
    }

    pub(super) async fn security_groups(
        &self,
        gateway: &Arc<Gateway>,
        selector: &Selector,
    ) -> Result<Shared<SecurityGroup>> {
        let fetch = || {
            let (gateway, selector) = (gateway.clone(), selector.clone());
            async move { gateway.security_groups(&selector).await.map(Arc::new) }.boxed()
        };
        self.security_groups.get(selector, fetch).await
    }

    pub(super) async fn is_associated(
        &self,
        gateway: &Arc<Gateway>,
        security_group: &str,
        vpc: &str,
    ) -> Result<bool> {
        let key = (security_group.to_owned(), vpc.to_owned());
        let fetch = || {
            let (gateway, (security_group, vpc)) = (gateway.clone(), key.clone());
            async move { gateway.is_associated(&security_group, &vpc).await }.boxed()
        };
        self.associations.get(&key, fetch).await
    }

    pub(super) async fn subnets(
        &self,
        gateway: &Arc<Gateway>,
        selector: &Selector,
    ) -> Result<Shared<Subnet>> {
        let fetch = || {
            let (gateway, selector) = (gateway.clone(), selector.clone());
            async move { gateway.subnets(&selector).await.map(Arc::new) }.boxed()
        };
        self.subnets.get(selector, fetch).await
    }

    pub(super) fn forget_hooks(&self, group: &str) {
        self.hooks.invalidate(&group.to_owned());
    }

    pub(super) fn forget_image(&self, id: &str) {
        let id = id.to_owned();
        let volumes = self.images.kept(&id).flatten().into_iter().flat_map(|image| image.block_devices);
        for snapshot in volumes.filter_map(|device| device.volume?.snapshot_id) {
            self.forget_snapshot(&snapshot);
        }
        self.images.invalidate(&id);
    }

    pub(super) fn forget_snapshot(&self, id: &str) {
        self.snapshots.invalidate(&id.to_owned());
    }

    pub(super) fn forget_older_image(&self, id: &str, age: Duration) {
        self.images.invalidate_older(&id.to_owned(), age);
    }

    pub(super) fn forget_parameter(&self, name: &str) {
        self.parameters.invalidate(&name.to_owned());
    }

    pub(super) fn forget_security_groups(&self, selector: &Selector) {
        self.security_groups.invalidate(selector);
    }

    pub(super) fn forget_subnets(&self, selector: &Selector) {
        self.subnets.invalidate(selector);
    }

    pub(super) fn prune(&self, now: Instant) {
        self.account.prune(now);
        self.associations.prune(now);
        self.hooks.prune(now);
        self.images.prune(now);
        self.parameters.prune(now);
        self.security_groups.prune(now);
        self.snapshots.prune(now);
        self.subnets.prune(now);
        self.templates.prune(now);
        self.offers.prune(now);
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.subnets.len() + self.templates.len() + self.hooks.len()
    }

    /// Updates what is kept by what our write changed.
    pub(super) fn learn(&self, write: &Write, learnt: Learnt<'_>) {
        match learnt {
            Learnt::Nothing => {}
            Learnt::Unsure => self.invalidate(write),
            Learnt::Done(written) => {
                self.learn_hooks(write);
                self.templates.learn(write, written);
            }
        }
    }

    fn invalidate(&self, write: &Write) {
        self.templates.invalidate(write);
        match write {
            Write::CreateGroup(create) => self.hooks.invalidate(&create.name),
            Write::PutLifecycleHook { group, .. }
            | Write::DeleteLifecycleHook { group, .. }
            | Write::DeleteGroup { group, .. } => self.hooks.invalidate(group),
            _ => {}
        }
    }

    fn learn_hooks(&self, write: &Write) {
        match write {
            Write::CreateGroup(create) => {
                let CreateGroup { name, hooks, .. } = &**create;
                self.hooks.put(name.clone(), Arc::new(hooks.clone()));
            }
            Write::PutLifecycleHook { group, hook } => self.edit_hooks(group, |hooks| {
                hooks.retain(|known| known.name != hook.name);
                hooks.push(hook.clone());
                hooks.sort_by(|a, b| a.name.cmp(&b.name));
            }),
            Write::DeleteLifecycleHook { group, hook } => {
                self.edit_hooks(group, |hooks| hooks.retain(|known| known.name != *hook));
            }
            Write::DeleteGroup { group, .. } => self.hooks.invalidate(group),
            _ => {}
        }
    }

    fn edit_hooks(&self, group: &str, change: impl FnOnce(&mut Vec<LifecycleHook>)) {
        self.hooks.edit_one(&group.to_owned(), |known| {
            let mut hooks = known.to_vec();
            change(&mut hooks);
            Arc::new(hooks)
        });
    }
}
