//! `spec.instanceTypes`, `spec.instancesDistribution` and `spec.scaleInOrder`: instance types, purchase options, allocation
//! strategies and the order of a scale-in.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::string_enum;

string_enum! {
    /// The last criterion by which instances are chosen for a scale-in.
    pub enum ScaleInOrder {
        /// The oldest instance is chosen first.
        Oldest = "Oldest",
        /// The newest instance is chosen first.
        Newest = "Newest",
    }
}

string_enum! {
    /// How AWS chooses among the instance types for On-Demand capacity.
    pub enum OnDemandAllocationStrategy {
        /// In the order of `spec.instanceTypes`.
        Prioritized = "prioritized",
        /// The type with the lowest price.
        LowestPrice = "lowest-price",
    }
}

string_enum! {
    /// How AWS chooses among the instance types for Spot capacity.
    pub enum SpotAllocationStrategy {
        /// The Spot capacity pools with the lowest price among those with the most capacity.
        PriceCapacityOptimized = "price-capacity-optimized",
        /// The Spot capacity pools with the most capacity.
        CapacityOptimized = "capacity-optimized",
        /// The Spot capacity pools with the most capacity; `spec.instanceTypes` is the order of preference.
        CapacityOptimizedPrioritized = "capacity-optimized-prioritized",
        /// The Spot capacity pools with the lowest price.
        LowestPrice = "lowest-price",
    }
}

/// An instance type that the group may launch. An object, so that a later version can add fields to each type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceTypeEntry {
    /// Name of the instance type, such as `m7i.large`. An added type applies in place. Removing a type makes its running
    /// instances outdated.
    #[serde(rename = "type")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z][a-z0-9-]*[.][a-z0-9-]+$')")
        .message("spec.instanceTypes[].type: must be the name of an instance type, such as m7i.large; if it is empty, a variable of the template has no value"))]
    pub type_: String,
}

impl InstanceTypeEntry {
    /// An entry with this instance type.
    #[must_use]
    pub fn new(type_: impl Into<String>) -> Self {
        Self { type_: type_.into() }
    }
}

/// Distribution of the instances between On-Demand and Spot, with AWS's own fields. Changes apply in place, to later
/// launches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstancesDistribution {
    /// Number of On-Demand instances that the group launches before the percentage applies.
    /// Defaults to 0. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10000))]
    pub on_demand_base_capacity: Option<i32>,

    /// Percentage of On-Demand instances above the base capacity; all others are Spot instances. Defaults to 100.
    /// Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub on_demand_percentage_above_base_capacity: Option<i32>,

    /// How AWS chooses On-Demand types: `prioritized` (in the order of spec.instanceTypes) or `lowest-price`. Defaults
    /// to `prioritized`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_demand_allocation_strategy: Option<OnDemandAllocationStrategy>,

    /// How AWS chooses Spot types: `price-capacity-optimized`, `capacity-optimized`, `capacity-optimized-prioritized`
    /// or `lowest-price`. Defaults to `price-capacity-optimized`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_allocation_strategy: Option<SpotAllocationStrategy>,

    /// Maximum price of a Spot instance in US dollars per hour, such as `0.05`. Defaults to the On-Demand price.
    /// Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub spot_max_price: Option<String>,
}

/// Distribution of the instances between On-Demand and Spot, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedInstancesDistribution {
    /// Number of On-Demand instances before the percentage applies.
    pub on_demand_base_capacity: i32,
    /// Percentage of On-Demand instances above the base capacity.
    pub on_demand_percentage_above_base_capacity: i32,
    /// How On-Demand types are chosen.
    pub on_demand_allocation_strategy: OnDemandAllocationStrategy,
    /// How Spot types are chosen.
    pub spot_allocation_strategy: SpotAllocationStrategy,
    /// Maximum price of a Spot instance in US dollars per hour. Absent if it is the On-Demand price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub spot_max_price: Option<String>,
}

impl InstancesDistribution {
    /// Fills in the default of each field. The defaults are here and not in the schema, so that a pool that sets a
    /// default value and one that omits it compare and hash alike.
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
