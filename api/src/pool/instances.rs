//! Which instances a pool is made of: purchase options, strategies and the order in which they go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::string_enum;

string_enum! {
    /// The last tie-breaker when instances are chosen to go.
    pub enum ScaleInOrder {
        /// The oldest instance goes first.
        Oldest = "Oldest",
        /// The newest instance goes first.
        Newest = "Newest",
    }
}

string_enum! {
    /// How AWS picks among the instance types for On-Demand capacity.
    pub enum OnDemandAllocationStrategy {
        /// In the order of `spec.instanceTypes`.
        Prioritized = "prioritized",
        /// The cheapest type.
        LowestPrice = "lowest-price",
    }
}

string_enum! {
    /// How AWS picks among the instance types for Spot capacity.
    pub enum SpotAllocationStrategy {
        /// The cheapest of the pools least likely to be interrupted.
        PriceCapacityOptimized = "price-capacity-optimized",
        /// The pools least likely to be interrupted.
        CapacityOptimized = "capacity-optimized",
        /// The pools least likely to be interrupted, ties by the order of `spec.instanceTypes`.
        CapacityOptimizedPrioritized = "capacity-optimized-prioritized",
        /// The cheapest pools.
        LowestPrice = "lowest-price",
    }
}

/// How a pool is split between On-Demand and Spot. All members are AWS's own and change in place: they count for later
/// launches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstancesDistribution {
    /// How many instances are On-Demand before the percentage counts. Default 0. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10000))]
    pub on_demand_base_capacity: Option<i32>,

    /// Percentage of On-Demand instances above the base; the rest is Spot. Default 100. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub on_demand_percentage_above_base_capacity: Option<i32>,

    /// How AWS picks On-Demand types: `prioritized` (the order of spec.instanceTypes) or `lowest-price`. Default
    /// `prioritized`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_demand_allocation_strategy: Option<OnDemandAllocationStrategy>,

    /// How AWS picks Spot types: `price-capacity-optimized`, `capacity-optimized`, `capacity-optimized-prioritized` or
    /// `lowest-price`. Default `price-capacity-optimized`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_allocation_strategy: Option<SpotAllocationStrategy>,

    /// Highest price in US dollars per hour that is paid for a Spot instance, such as `0.05`. Default: the On-Demand
    /// price. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub spot_max_price: Option<String>,
}

/// [`InstancesDistribution`] with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedInstancesDistribution {
    /// On-Demand instances before the percentage counts.
    pub on_demand_base_capacity: i32,
    /// Percentage of On-Demand above the base.
    pub on_demand_percentage_above_base_capacity: i32,
    /// How On-Demand types are picked.
    pub on_demand_allocation_strategy: OnDemandAllocationStrategy,
    /// How Spot types are picked.
    pub spot_allocation_strategy: SpotAllocationStrategy,
    /// The price limit; `None` is the On-Demand price.
    pub spot_max_price: Option<String>,
}

impl InstancesDistribution {
    /// Fills in the defaults of notes on each field. They live here and not in the schema, so that a pool that names a
    /// default and one that leaves it out are the same to whoever compares or hashes them.
    #[must_use]
    pub fn resolve(&self) -> ResolvedInstancesDistribution {
        ResolvedInstancesDistribution {
            on_demand_base_capacity: self.on_demand_base_capacity.unwrap_or(0),
            on_demand_percentage_above_base_capacity: self
                .on_demand_percentage_above_base_capacity
                .unwrap_or(100),
            on_demand_allocation_strategy: self
                .on_demand_allocation_strategy
                .unwrap_or(OnDemandAllocationStrategy::Prioritized),
            spot_allocation_strategy: self
                .spot_allocation_strategy
                .unwrap_or(SpotAllocationStrategy::PriceCapacityOptimized),
            spot_max_price: self.spot_max_price.clone(),
        }
    }
}
