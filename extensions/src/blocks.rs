//! Why hooks block Clusters, and which Clusters they block since when.

mod memory;
mod record;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

pub use self::{
    memory::{Blocks, CurrentBlock},
    record::{Block, Record},
};
use crate::{names::annotations, protocol::Hook};

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
    /// An annotation with which users control the hook is invalid.
    AnnotationInvalid,
    /// Nodes of the control plane run another version.
    ControlPlaneNotUpgraded,
    /// Pools, or their nodes, have another version or image.
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
    pub const ALL: [Self; 18] = [
        Self::NotReadable,
        Self::PoolNotObserved,
        Self::PoolNotReady,
        Self::PoolRollingOut,
        Self::PoolWindowsClosed,
        Self::WindowClosed,
        Self::NotApproved,
        Self::DeletionProtected,
        Self::AnnotationInvalid,
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
                Self::AnnotationInvalid,
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
                Self::AnnotationInvalid,
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
            // A deletion waits only for what users request: its protection, and add-ons that are uninstalled before (R11).
            Hook::BeforeClusterDelete => {
                &[Self::DeletionProtected, Self::AnnotationInvalid, Self::AddonsNotUninstalled]
            }
            _ => &[],
        }
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
            Self::AnnotationInvalid => "when the annotation is valid or removed",
            Self::ControlPlaneNotUpgraded => "when the nodes of the control plane report the version",
            Self::WorkersNotUpgraded => {
                "when the pools have the version and the image, and their nodes report the version"
            }
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
            Self::PoolWindowsClosed
                | Self::WindowClosed
                | Self::NotApproved
                | Self::DeletionProtected
                | Self::AnnotationInvalid
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
            Self::AnnotationInvalid => "AnnotationInvalid",
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
