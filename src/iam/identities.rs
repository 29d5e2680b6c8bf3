//! Which identity pools use, and which roles the manager assumes for them.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use capasg_api::{
    ASGIdentity, ASGMachinePool,
    identity::{IdentityKind, IdentitySourceType, RoleSource},
};
use kube::ResourceExt as _;

use super::usage::{Identity, Usage, Used};

/// The longest chain of roles.
const LONGEST: usize = 4;

/// The identities of a management cluster.
pub(super) struct Identities<'a>(pub(super) &'a [ASGIdentity]);

impl Identities<'_> {
    /// The identity whose credentials a pool uses, with its kind if it is none of ours. `None` for those of the manager.
    pub(super) fn of_pool(&self, pool: &ASGMachinePool) -> Option<String> {
        let used = pool.status.as_ref()?.identity.as_ref()?;
        let (kind, name) = (used.kind?, used.name.clone()?);
        match kind {
            IdentityKind::ASGIdentity => {
                let is_manager =
                    self.named(&name).is_some_and(|own| own.spec.source == IdentitySourceType::Controller);
                (!is_manager).then_some(name)
            }
            IdentityKind::AWSClusterControllerIdentity => None,
            other => Some(format!("{other}/{name}")),
        }
    }

    fn named(&self, name: &str) -> Option<&ASGIdentity> {
        self.0.iter().find(|identity| identity.name_any() == name)
    }

    /// The role that the manager assumes with its own credentials for an identity: the first one of a chain.
    fn assumed(&self, name: &str) -> Option<&RoleSource> {
        let mut identity = self.named(name)?;
        for _ in 0..LONGEST {
            let role =
                identity.spec.role.as_ref().filter(|_| identity.spec.source == IdentitySourceType::Role)?;
            match &role.source_identity_ref {
                None => return Some(role),
                Some(from) => match self.named(&from.name) {
                    Some(next) if next.spec.source == IdentitySourceType::Controller => return Some(role),
                    Some(next) => identity = next,
                    None => return None,
                },
            }
        }
        None
    }

    /// Adds the roles that the manager assumes for pools.
    pub(super) fn add_assumed(&self, usage: &mut Usage, pools: &[ASGMachinePool]) {
        let used: BTreeSet<String> = pools.iter().filter_map(|pool| self.of_pool(pool)).collect();
        for role in used.iter().filter_map(|name| self.assumed(name)) {
            let identity = Identity { role: role.arn.clone(), external_id: role.external_id.clone() };
            if !usage.identities.iter().any(|known| known.role == identity.role) {
                usage.identities.push(identity);
            }
        }
    }

    /// Restricts what is printed to the account and the event queue of an identity.
    ///
    /// # Errors
    /// If it does not exist.
    pub(super) fn restrict(&self, usage: &mut Usage, name: &str) -> Result<()> {
        let identity =
            self.named(name).with_context(|| format!("--identity: ASGIdentity {name} does not exist"))?;
        let of_role = || identity.spec.role.as_ref()?.arn.split(':').nth(4).map(str::to_owned);
        let of_status = || identity.status.as_ref()?.account.clone();
        usage.account = usage.account.take().or_else(of_role).or_else(of_status);
        if usage.queues == Used::Any {
            usage.queues = Used::Only(identity.spec.event_queue.iter().cloned().collect());
        }
        Ok(())
    }
}
