//! `spec.drain`, `spec.rebalanceRecommendationPolicy` and `spec.deletionPolicy`: how instances terminate, and what a deletion keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::string_enum;

string_enum! {
    /// What happens to a node whose instance AWS terminates.
    pub enum OnCloudTermination {
        /// The termination is held until the node is drained.
        Drain = "Drain",
        /// The instance terminates at once.
        Ignore = "Ignore",
    }
}

string_enum! {
    /// What happens to the nodes of a pool that is deleted.
    pub enum OnPoolDeletion {
        /// They are drained first.
        Drain = "Drain",
        /// Their instances terminate without a drain.
        Terminate = "Terminate",
    }
}

string_enum! {
    /// What happens to the resources in AWS when the pool is deleted.
    pub enum DeletionPolicy {
        /// Group, instances and launch template are deleted.
        Delete = "Delete",
        /// They are kept unchanged.
        Orphan = "Orphan",
    }
}

/// How nodes are drained before their instances terminate. Changes apply in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drain {
    /// What happens when AWS terminates an instance (health replacement, instance refresh, zone rebalance, a call of
    /// another actor): `Drain` holds the termination with a lifecycle hook until the node is drained, `Ignore` does not
    /// hold it. Defaults to `Drain`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cloud_termination: Option<OnCloudTermination>,

    /// What happens to the nodes when the pool is deleted: `Drain` drains them, `Terminate` terminates their
    /// instances without a drain. Defaults to `Drain`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_pool_deletion: Option<OnPoolDeletion>,

    /// Number of seconds for which the controller holds a termination by AWS until the node is drained. Then the
    /// instance terminates. The nodeDrainTimeoutSeconds of the MachinePool applies if it is shorter; drains that the
    /// controller starts are limited by nodeDrainTimeoutSeconds only. Defaults to 3600. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 172_800))]
    pub timeout_seconds: Option<i32>,
}

string_enum! {
    /// What happens to a Spot instance that EC2 recommends replacing.
    pub enum RebalanceRecommendationPolicy {
        /// Nothing, until EC2 interrupts it.
        Ignore = "Ignore",
        /// It is replaced before.
        Replace = "Replace",
    }
}

string_enum! {
    /// What happens while the Availability Zones of a pool are out of balance.
    pub enum ZoneRebalancePolicy {
        /// Nothing, until the pool scales or a rollout replaces instances.
        Ignore = "Ignore",
        /// An instance of the zone with the most is replaced, one at a time.
        Replace = "Replace",
    }
}

/// How nodes are drained, with every default filled in, and with the limit of the MachinePool applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedDrain {
    /// What happens when AWS terminates an instance.
    pub on_cloud_termination: OnCloudTermination,
    /// What happens when the pool is deleted.
    pub on_pool_deletion: OnPoolDeletion,
    /// Number of seconds for which the controller holds a termination by AWS: that of the spec, or nodeDrainTimeoutSeconds
    /// of the MachinePool if it is shorter.
    pub timeout_seconds: i32,
}

impl ResolvedDrain {
    /// `HeartbeatTimeout` of our lifecycle hook: the limit of a drain, within 600 and the 7200 seconds that AWS
    /// accepts. Heartbeats extend it for a longer drain, and the controller completes the hook for a shorter one. With
    /// a shorter timeout, an instance might terminate before a poll observes the termination.
    #[must_use]
    pub fn hook_timeout_seconds(&self) -> i32 {
        self.timeout_seconds.clamp(600, 7200)
    }
}

#[cfg(test)]
mod tests {
    use crate::ASGMachinePoolSpec;

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
