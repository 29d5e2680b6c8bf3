//! Which Clusters are blocked at which hook, for which cause and since when.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
};

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest as _, Sha256};

use crate::{
    names::annotations,
    protocol::{ClusterKey, Hook},
};

/// A block that core did not repeat for this long has ended: core repeats a call at the latest after its retry time, at most
/// 5 minutes here.
const FORGOTTEN: TimeDelta = TimeDelta::minutes(30);
/// The most blocks that are remembered. One more takes the place of the one that was repeated longest ago.
const MOST: usize = 10_000;

/// What follows the name of the Cluster in the name of an event that records a block.
const RECORD: &str = ".hook-";

/// Why a hook blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Pools or Machines cannot be read.
    NotReadable,
    /// The controller has not observed the spec of a pool.
    PoolNotObserved,
    /// A pool is not ready.
    PoolNotReady,
    /// A pool rolls out.
    PoolRollingOut,
    /// The windows of all pools are closed.
    PoolWindowsClosed,
    /// No maintenance window is open.
    WindowClosed,
    /// The upgrade is not approved.
    NotApproved,
    /// The Cluster is protected.
    DeletionProtected,
    /// Nodes of the control plane run another version.
    ControlPlaneNotUpgraded,
    /// Nodes of pools run another version.
    WorkersNotUpgraded,
    /// Subnets or security groups do not exist, or are in several VPCs.
    NetworkInvalid,
    /// No instance type of a pool is offered in a zone.
    TypesNotOffered,
    /// An image does not exist.
    ImageMissing,
    /// The subnets have too few free addresses.
    AddressesMissing,
    /// A quota has too few vCPUs left.
    QuotaInsufficient,
    /// The release of an add-on is not ready for the version of a step.
    AddonsNotReady,
    /// The release of an add-on is not uninstalled, or has resources in the cloud.
    AddonsNotUninstalled,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 17] = [
        Self::NotReadable,
        Self::PoolNotObserved,
        Self::PoolNotReady,
        Self::PoolRollingOut,
        Self::PoolWindowsClosed,
        Self::WindowClosed,
        Self::NotApproved,
        Self::DeletionProtected,
        Self::ControlPlaneNotUpgraded,
        Self::WorkersNotUpgraded,
        Self::NetworkInvalid,
        Self::TypesNotOffered,
        Self::ImageMissing,
        Self::AddressesMissing,
        Self::QuotaInsufficient,
        Self::AddonsNotReady,
        Self::AddonsNotUninstalled,
    ];

    /// The causes for which a hook can block.
    #[must_use]
    pub const fn of(hook: Hook) -> &'static [Self] {
        match hook {
            Hook::BeforeClusterCreate => &[
                Self::NotReadable,
                Self::NetworkInvalid,
                Self::TypesNotOffered,
                Self::ImageMissing,
                Self::AddressesMissing,
                Self::QuotaInsufficient,
            ],
            Hook::BeforeClusterUpgrade | Hook::BeforeControlPlaneUpgrade => &[
                Self::ImageMissing,
                Self::NotReadable,
                Self::PoolNotObserved,
                Self::PoolNotReady,
                Self::PoolRollingOut,
                Self::WindowClosed,
                Self::NotApproved,
                Self::AddonsNotReady,
            ],
            Hook::BeforeWorkersUpgrade => &[
                Self::ImageMissing,
                Self::AddressesMissing,
                Self::QuotaInsufficient,
                Self::NotReadable,
                Self::PoolNotObserved,
                Self::PoolNotReady,
                Self::PoolRollingOut,
                Self::PoolWindowsClosed,
                Self::WindowClosed,
            ],
            Hook::AfterControlPlaneUpgrade => {
                &[Self::NotReadable, Self::ControlPlaneNotUpgraded, Self::AddonsNotReady]
            }
            Hook::AfterWorkersUpgrade => {
                &[Self::NotReadable, Self::PoolNotObserved, Self::PoolRollingOut, Self::WorkersNotUpgraded]
            }
            Hook::AfterClusterUpgrade => &[
                Self::NotReadable,
                Self::PoolNotObserved,
                Self::PoolRollingOut,
                Self::ControlPlaneNotUpgraded,
                Self::WorkersNotUpgraded,
            ],
            Hook::BeforeClusterDelete => {
                &[Self::NotReadable, Self::DeletionProtected, Self::AddonsNotUninstalled]
            }
            _ => &[],
        }
    }

    /// Whether a hook can block for this cause although nothing of a gate is in the Cluster.
    #[must_use]
    pub const fn is_of_any_cluster(self) -> bool {
        matches!(self, Self::DeletionProtected)
    }

    /// Whether AWS has to be asked about it.
    #[must_use]
    pub const fn is_of_aws(self) -> bool {
        matches!(
            self,
            Self::NetworkInvalid
                | Self::TypesNotOffered
                | Self::ImageMissing
                | Self::AddressesMissing
                | Self::QuotaInsufficient
        )
    }

    /// When the block ends, to follow "It ends". One that no user decided ends by its deadline, too.
    #[must_use]
    pub fn ends(self) -> String {
        let when = match self {
            Self::NotReadable => "when the extension can read the objects; its log has the error",
            Self::PoolNotObserved => "when the CAPASG manager has observed the spec of the pools",
            Self::PoolNotReady => "when the pools are ready (kubectl describe asgmachinepool)",
            Self::PoolRollingOut => "when the rollouts are complete (kubectl describe asgmachinepool)",
            Self::PoolWindowsClosed => "when a window of a pool opens (spec.disruption.windows)",
            Self::WindowClosed => {
                return format!(
                    "when a maintenance window opens (setting maintenanceWindows, or the annotation {} of the Cluster)",
                    annotations::MAINTENANCE_WINDOWS
                );
            }
            Self::NotApproved => {
                return format!(
                    "when the annotation {} of the Cluster has the version",
                    annotations::UPGRADE_APPROVED
                );
            }
            Self::DeletionProtected => {
                return format!(
                    "when the annotation {} of the Cluster is removed",
                    annotations::DELETION_PROTECTION
                );
            }
            Self::ControlPlaneNotUpgraded => "when the nodes of the control plane report the version",
            Self::WorkersNotUpgraded => "when the nodes of the pools report the version",
            Self::NetworkInvalid => "when the subnets and security groups exist in AWS, in one VPC",
            Self::TypesNotOffered => "when each zone of the pool offers one of its instance types",
            Self::ImageMissing => "when the images exist in the region",
            Self::AddressesMissing => "when the subnets have free addresses",
            Self::QuotaInsufficient => "when the quotas have enough vCPUs left",
            Self::AddonsNotReady => {
                "when the releases are ready for the version (kubectl describe helmchartproxy, helmreleaseproxy)"
            }
            Self::AddonsNotUninstalled => {
                "when the releases are uninstalled and no objects with resources in the cloud remain (kubectl describe \
                 helmreleaseproxy)"
            }
        };
        if self.is_of_user() {
            when.to_owned()
        } else {
            format!("{when}, or by its deadline unless onBlockTimeout is Block")
        }
    }

    /// Whether a user decided that the hook blocks. Such a block never ends by a deadline.
    #[must_use]
    pub const fn is_of_user(self) -> bool {
        matches!(
            self,
            Self::PoolWindowsClosed | Self::WindowClosed | Self::NotApproved | Self::DeletionProtected
        )
    }

    /// Whether a hook blocks for this cause only if nothing else blocks: the change of a release is a part of the step, so it
    /// begins, and its deadline, once users allow the step and nothing else is wrong.
    #[must_use]
    pub const fn is_last(self) -> bool {
        matches!(self, Self::AddonsNotReady)
    }

    /// How soon core asks again about a step that is blocked, in seconds. Core keeps the answer for this long, so that it
    /// is also how long an approval, the end of a protection or break-glass may take to have an effect.
    #[must_use]
    pub const fn retry_seconds(self) -> i32 {
        match self {
            Self::NotReadable => 10,
            _ => 15,
        }
    }

    /// The name in events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotReadable => "NotReadable",
            Self::PoolNotObserved => "PoolNotObserved",
            Self::PoolNotReady => "PoolNotReady",
            Self::PoolRollingOut => "PoolRollingOut",
            Self::PoolWindowsClosed => "PoolWindowsClosed",
            Self::WindowClosed => "WindowClosed",
            Self::NotApproved => "NotApproved",
            Self::DeletionProtected => "DeletionProtected",
            Self::ControlPlaneNotUpgraded => "ControlPlaneNotUpgraded",
            Self::WorkersNotUpgraded => "WorkersNotUpgraded",
            Self::NetworkInvalid => "NetworkInvalid",
            Self::TypesNotOffered => "TypesNotOffered",
            Self::ImageMissing => "ImageMissing",
            Self::AddressesMissing => "AddressesMissing",
            Self::QuotaInsufficient => "QuotaInsufficient",
            Self::AddonsNotReady => "AddonsNotReady",
            Self::AddonsNotUninstalled => "AddonsNotUninstalled",
        }
    }
}

/// The identity of a block. All replicas compute the same one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// The Cluster.
    pub cluster: ClusterKey,
    /// The hook.
    pub hook: Hook,
    /// The version of the step; empty where there is none.
    pub version: String,
    /// The cause.
    pub cause: Cause,
}

impl Block {
    /// A name for the event that records the block, unique in the namespace of the Cluster.
    #[must_use]
    pub fn event_name(&self) -> String {
        let cluster = &self.cluster;
        let parts = [&cluster.name, &cluster.uid, self.hook.name(), &self.version, self.cause.as_str()];
        event_name(&cluster.name, RECORD, &parts)
    }

    /// Whether an event of this name records a block.
    #[must_use]
    pub fn is_event_name(name: &str) -> bool {
        name.rsplit_once('.').is_some_and(|(cluster, _)| name[cluster.len()..].starts_with(RECORD))
    }
}

/// A name for an event about a Cluster: its name, an infix, and a hash of what distinguishes the event from others.
pub(crate) fn event_name(cluster: &str, infix: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let mut name: String = cluster.chars().take(200).collect();
    name.push_str(infix);
    for byte in &hash.finalize()[..8] {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    since: DateTime<Utc>,
    repeated: DateTime<Utc>,
}

/// The blocks that this replica knows. Losing them costs a read of the event that records each.
#[derive(Debug, Default)]
pub struct Blocks(Mutex<BTreeMap<Block, Entry>>);

impl Blocks {
    /// Since when a block is known to this replica; records that it was repeated.
    pub fn repeated(&self, block: &Block, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, entry| now - entry.repeated < FORGOTTEN);
        let entry = known.get_mut(block)?;
        entry.repeated = now;
        Some(entry.since)
    }

    /// Records a block that was not known.
    pub fn began(&self, block: Block, since: DateTime<Utc>, now: DateTime<Utc>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST
            && let Some(oldest) =
                known.iter().min_by_key(|(_, entry)| entry.repeated).map(|(block, _)| block.clone())
        {
            known.remove(&oldest);
        }
        known.insert(block, Entry { since, repeated: now });
    }

    /// Forgets the blocks of a Cluster at a hook except those of the given causes; whether there were any.
    pub fn ended(&self, cluster: &ClusterKey, hook: Hook, except: &[Cause]) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.len();
        known.retain(|block, _| {
            block.cluster != *cluster || block.hook != hook || except.contains(&block.cause)
        });
        known.len() < before
    }

    /// How many are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// For each hook at which Clusters are blocked, their number and since when the first of them is.
    #[must_use]
    pub fn summary(&self, now: DateTime<Utc>) -> BTreeMap<Hook, (usize, DateTime<Utc>)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut clusters: BTreeMap<Hook, BTreeMap<&ClusterKey, DateTime<Utc>>> = BTreeMap::new();
        for (block, entry) in known.iter().filter(|(_, entry)| now - entry.repeated < FORGOTTEN) {
            let since = clusters.entry(block.hook).or_default().entry(&block.cluster).or_insert(entry.since);
            *since = entry.since.min(*since);
        }
        let first = |clusters: BTreeMap<_, DateTime<Utc>>| {
            let since = clusters.values().min().copied().unwrap_or(now);
            (clusters.len(), since)
        };
        clusters.into_iter().map(|(hook, clusters)| (hook, first(clusters))).collect()
    }
}
