//! What a group can launch from.

/// A launch template as a group refers to it; `version` as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Specification {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
}

/// What a group launches from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LaunchSource {
    Template(Specification),
    Mixed(Mixed),
}

/// A mixed instances policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mixed {
    pub(crate) template: Specification,
    pub(crate) overrides: Vec<Override>,
    pub(crate) distribution: Distribution,
}

/// An instance type of the policy, in order of priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Override {
    pub(crate) kind: String,
    pub(crate) template: Option<Specification>,
    /// Shown alone: each instance counts as one.
    pub(crate) weight: Option<String>,
}

/// How launches are split between on-demand and spot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Distribution {
    pub(super) on_demand_strategy: String,
    pub(super) base: i64,
    pub(super) percentage: i64,
    pub(super) spot_strategy: String,
    pub(super) pools: Option<i64>,
    pub(super) max_price: Option<String>,
}
