//! Launch templates with their versions: those of all pools are listed together, one that the listing does not show is read
//! by itself, and the answers to our own writes update both.

mod listing;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use futures::FutureExt;
use listing::Listing;
use tokio::time::Instant;

use crate::{
    Clock, Gateway, LaunchTemplate, LaunchTemplateData, LaunchTemplateVersion, Result, Template, Write,
    Written,
    inventory::{
        cache::{Answer, Cache},
        cadence::Cadence,
    },
};

pub(super) struct Templates {
    kept: Cache<String, Option<Arc<Template>>>,
    listing: Arc<Listing>,
}

impl Templates {
    /// `tag_key` is the key of a tag that the launch templates of all pools have.
    pub(super) fn new(cadence: &Cadence, tag_key: &'static str) -> Self {
        Self {
            kept: Cache::new(cadence.audit, cadence.negative, |_, found| {
                Answer::complete_if(found.is_some())
            }),
            listing: Arc::new(Listing::new(tag_key)),
        }
    }

    pub(super) async fn get(
        &self,
        clock: &Arc<dyn Clock>,
        gateway: &Arc<Gateway>,
        name: &str,
    ) -> Result<Option<Arc<Template>>> {
        let key = name.to_owned();
        let fetch = |before: Option<&Option<Arc<Template>>>| {
            let (gateway, clock, name) = (gateway.clone(), clock.clone(), key.clone());
            let (listing, before) = (self.listing.clone(), before.cloned().flatten());
            async move {
                let listed = listing.take(&clock, &gateway, &name, before.is_some()).await;
                if let Some(listed) = listed.and_then(|listed| listed.following(before.as_deref())) {
                    return Ok(Some(Arc::new(listed)));
                }
                read(&clock, &gateway, &name).await
            }
            .boxed()
        };
        self.kept.get_after(&key, fetch).await
    }

    /// The next [`Self::get`] reads it by itself, with all its versions.
    pub(super) fn forget(&self, name: &str) {
        self.kept.invalidate(&name.to_owned());
        self.listing.forget(|template| template.name == name);
    }

    /// The same, if it was read at least this long ago.
    pub(super) fn forget_older(&self, name: &str, age: Duration) {
        if self.kept.invalidate_older(&name.to_owned(), age) {
            self.forget(name);
        }
    }

    /// One that is not known yet may be the one that was changed.
    fn forget_id(&self, id: &str) {
        self.listing.forget(|template| template.id == id);
        self.kept.invalidate_where(|_, kept| match kept {
            Some(Some(template)) => template.template.id == id,
            Some(None) => false,
            None => true,
        });
    }

    /// Drops what is out of date. Templates stay until they are forgotten: their versions are immutable, and the next read
    /// shows whether there are others.
    pub(super) fn prune(&self, now: Instant) {
        self.kept.prune_except(now, Option::is_some);
        self.listing.prune(now);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// A write whose effect is not known.
    pub(super) fn invalidate(&self, write: &Write) {
        match write {
            Write::CreateLaunchTemplate { name, .. } => self.forget(name),
            Write::CreateLaunchTemplateVersion { id, .. }
            | Write::DeleteLaunchTemplateVersions { id, .. }
            | Write::DeleteLaunchTemplate { id } => self.forget_id(id),
            _ => {}
        }
    }

    /// A write that was done, with this reply.
    pub(super) fn learn(&self, write: &Write, written: &Written) {
        match (write, written) {
            (
                Write::CreateLaunchTemplate { name, data, description, tags, .. },
                Written::Version { id, number, created_at },
            ) => {
                let template = LaunchTemplate {
                    id: id.clone(),
                    name: name.clone(),
                    latest_version: *number,
                    default_version: *number,
                    tags: tags.clone(),
                };
                let version = new_version(*number, *created_at, description, data);
                let versions = BTreeMap::from([(*number, version)]);
                let template = Template { template, versions, has_all_versions: true, as_of: *created_at };
                self.listing.forget(|listed| listed.name == *name);
                self.kept.put(name.clone(), Some(Arc::new(template)));
            }
            (
                Write::CreateLaunchTemplateVersion { id, data, description, .. },
                Written::Version { number, created_at, .. },
            ) => self.edit(id, |known| {
                let version = new_version(*number, *created_at, description, data);
                // A repeated client token is answered with the version that it created before.
                known.versions.entry(*number).or_insert(version);
                known.template.latest_version = known.template.latest_version.max(*number);
            }),
            (Write::DeleteLaunchTemplateVersions { id, versions }, _) => {
                self.edit(id, |known| known.versions.retain(|number, _| !versions.contains(number)));
            }
            (Write::DeleteLaunchTemplate { id }, _) => self.forget_id(id),
            (
                Write::CreateLaunchTemplate { .. } | Write::CreateLaunchTemplateVersion { .. },
                Written::Done,
            ) => {
                self.invalidate(write);
            }
            _ => {}
        }
    }

    fn edit(&self, id: &str, change: impl Fn(&mut Template)) {
        self.listing.forget(|listed| listed.id == id);
        self.kept.edit(|_, known| {
            let known = known.as_ref().filter(|known| known.template.id == id)?;
            let mut template = Template::clone(known);
            change(&mut template);
            Some(Some(Arc::new(template)))
        });
    }
}

/// Reads a launch template by itself, with all its versions.
async fn read(clock: &Arc<dyn Clock>, gateway: &Gateway, name: &str) -> Result<Option<Arc<Template>>> {
    let as_of = clock.now();
    let Some(template) = gateway.launch_template(name).await? else { return Ok(None) };
    let versions = gateway.launch_template_versions(&template.id).await?;
    let versions = versions.into_iter().map(|version| (version.number, version)).collect();
    Ok(Some(Arc::new(Template { template, versions, has_all_versions: true, as_of })))
}

impl Template {
    /// This listed template with the versions that were known before; `None` if that read or our own writes showed more
    /// versions than the listing does.
    fn following(mut self, before: Option<&Self>) -> Option<Self> {
        let Some(before) = before.filter(|before| before.template.id == self.template.id) else {
            return Some(self);
        };
        let (known, latest) = (before.template.latest_version, self.template.latest_version);
        if known > latest {
            return None;
        }
        self.has_all_versions = before.has_all_versions && known == latest;
        for (number, version) in &before.versions {
            self.versions.entry(*number).or_insert_with(|| version.clone());
        }
        Some(self)
    }
}

fn new_version(
    number: i64,
    created_at: DateTime<Utc>,
    description: &str,
    data: &LaunchTemplateData,
) -> LaunchTemplateVersion {
    LaunchTemplateVersion {
        number,
        description: Some(description.to_owned()),
        image_id: Some(data.image_id.clone()),
        content: Some(Arc::new(data.without_user_data())),
        created_at,
    }
}
