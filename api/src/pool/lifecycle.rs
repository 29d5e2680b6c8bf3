//! How instances leave a pool and what is left when the pool goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ASGMachinePoolSpec;
use crate::values::string_enum;

string_enum! {
    /// What happens to a node whose instance AWS is ending.
    pub enum OnCloudTermination {
        /// The end is held until the node is drained.
        Drain = "Drain",
        /// The instance ends at once.
        Ignore = "Ignore",
    }
}

string_enum! {
    /// What happens to the nodes of a pool that is deleted.
    pub enum OnPoolDeletion {
        /// They are drained first.
        Drain = "Drain",
        /// They end undrained.
        Skip = "Skip",
    }
}

string_enum! {
    /// What becomes of the cloud side when the pool is deleted.
    pub enum DeletionPolicy {
        /// Group, instances and launch template are deleted.
        Delete = "Delete",
        /// They are left as they are.
        Orphan = "Orphan",
    }
}

/// How nodes are drained before their instances end. Changes apply in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drain {
    /// What happens when AWS ends an instance (health replacement, instance refresh, zone rebalance, somebody's call):
    /// `Drain` holds the end by a lifecycle hook until the node is drained, `Ignore` lets it go. Default `Drain`. Changed
    /// in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cloud_termination: Option<OnCloudTermination>,

    /// What happens to nodes when the pool is deleted: `Drain` or `Skip`. Default `Drain`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_pool_deletion: Option<OnPoolDeletion>,

    /// Seconds that the end of an instance which AWS began is held for the drain, then the instance ends all the same. The
    /// MachinePool's nodeDrainTimeoutSeconds counts if it is shorter; it alone limits drains that the pool began. Default
    /// 3600. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 172_800))]
    pub timeout_seconds: Option<i32>,
}

/// Reserved for the AWS identity that a pool acts as. It is refused until identities exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityReference {
    /// The identity's kind. Reserved.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$"))]
    pub kind: String,

    /// The identity's name. Reserved.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub name: String,
}

string_enum! {
    /// What becomes of a Spot instance that EC2 recommends to replace.
    pub enum CapacityRebalance {
        /// Nothing, until EC2 takes it back.
        Ignore = "Ignore",
        /// It is replaced before.
        Replace = "Replace",
    }
}

/// [`Drain`] with every default filled in and core's own limit taken into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedDrain {
    /// What happens when AWS ends an instance.
    pub on_cloud_termination: OnCloudTermination,
    /// What happens when the pool is deleted.
    pub on_pool_deletion: OnPoolDeletion,
    /// Seconds that a drain may take.
    pub timeout_seconds: i32,
}

impl ResolvedDrain {
    /// `HeartbeatTimeout` of our terminate hook: the drain's limit, within 600 and the 7200 seconds that AWS takes. A longer
    /// drain is carried by heartbeats, and the end of a shorter one is ours to tell; a hook as short as that might let an
    /// instance go before a poll shows that AWS ends it.
    #[must_use]
    pub fn hook_timeout_seconds(&self) -> i32 {
        self.timeout_seconds.clamp(600, 7200)
    }
}

impl ASGMachinePoolSpec {
    /// How nodes are drained, with every default filled in.
    ///
    /// `core` is `nodeDrainTimeoutSeconds` of the owner `MachinePool`, whose 0 stands for no limit; the shorter counts.
    #[must_use]
    pub fn drain(&self, core: Option<i32>) -> ResolvedDrain {
        let drain = self.drain.clone().unwrap_or_default();
        let own = drain.timeout_seconds.unwrap_or(3600);
        ResolvedDrain {
            on_cloud_termination: drain.on_cloud_termination.unwrap_or(OnCloudTermination::Drain),
            on_pool_deletion: drain.on_pool_deletion.unwrap_or(OnPoolDeletion::Drain),
            timeout_seconds: core.filter(|seconds| *seconds > 0).map_or(own, |seconds| seconds.min(own)),
        }
    }

    /// What becomes of a Spot instance that EC2 recommends to replace; `Ignore` unless set.
    #[must_use]
    pub fn capacity_rebalance(&self) -> CapacityRebalance {
        self.capacity_rebalance.unwrap_or(CapacityRebalance::Ignore)
    }

    /// What becomes of the cloud side when the pool is deleted; `Delete` unless set.
    #[must_use]
    pub fn deletion_policy(&self) -> DeletionPolicy {
        self.deletion_policy.unwrap_or(DeletionPolicy::Delete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_limit_on_drains_counts_and_zero_is_none() {
        let spec = ASGMachinePoolSpec::default();
        for (core, seconds, hook) in [
            (None, 3600, 3600),
            (Some(0), 3600, 3600),
            (Some(900), 900, 900),
            (Some(7200), 3600, 3600),
            (Some(5), 5, 600),
        ] {
            let drain = spec.drain(core);
            assert_eq!((drain.timeout_seconds, drain.hook_timeout_seconds()), (seconds, hook), "{core:?}");
        }
    }
}
