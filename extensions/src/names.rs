//! The annotations by which users control hooks, and the reasons of the events that hooks cause.

/// Annotations of a Cluster, and one of events.
pub mod annotations {
    pub use capasg_api::names::annotations::DELETION_PROTECTION;

    /// On one event of each Cluster: what blocks it since when, as JSON.
    pub const HOOK_BLOCKS: &str = "asg.infrastructure.cluster.x-k8s.io/hook-blocks";
    /// Hooks that are skipped, separated by commas: they succeed without any check.
    pub const SKIP_HOOK: &str = "asg.infrastructure.cluster.x-k8s.io/skip-hook";
    /// The version to which an upgrade is approved.
    pub const UPGRADE_APPROVED: &str = "asg.infrastructure.cluster.x-k8s.io/upgrade-approved";
    /// The windows of this Cluster instead of those of the settings.
    pub const MAINTENANCE_WINDOWS: &str = "asg.infrastructure.cluster.x-k8s.io/maintenance-windows";
}

/// Reasons of events about a Cluster.
pub mod events {
    /// The event that holds the record of what blocks the Cluster.
    pub const HOOK_RECORD: &str = "HookRecord";
    /// A hook blocks.
    pub const HOOK_BLOCKED: &str = "HookBlocked";
    /// Warning: a hook has waited for a user for longer than the settings allow without a warning.
    pub const HOOK_BLOCKED_FOR_LONG: &str = "HookBlockedForLong";
    /// Warning: a hook stopped blocking because its deadline passed.
    pub const HOOK_TIMED_OUT: &str = "HookTimedOut";
    /// A hook that blocked no longer blocks.
    pub const HOOK_UNBLOCKED: &str = "HookUnblocked";
    /// A hook was skipped because of the annotation.
    pub const HOOK_SKIPPED: &str = "HookSkipped";
    /// What a hook checks in AWS was not checked.
    pub const NOT_CHECKED: &str = "NotCheckedInAWS";
    /// The control plane accepted requests for the first time.
    pub const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
    /// Nodes run the requested version.
    pub const UPGRADE_VERIFIED: &str = "UpgradeVerified";
    /// Auto Scaling groups are kept in AWS when the Cluster is deleted.
    pub const GROUPS_KEPT: &str = "GroupsKept";
}
