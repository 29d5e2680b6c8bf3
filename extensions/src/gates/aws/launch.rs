//! The quotas for vCPUs that new instances of a pool count towards.
//!
//! Only what is certain counts: each instance has the fewest vCPUs of the types of its pool, and these types share one quota.
//! With types of several quotas AWS chooses the type, and so the quota.

use std::collections::BTreeSet;

use capasg_api::pool::ResolvedInstancesDistribution;
use capasg_cloud::{Place, PurchaseOption, VcpuQuota};

use crate::lookups::{Answer, Answers, Question};

/// New instances of a pool that count towards one quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The quota.
    pub(super) quota: VcpuQuota,
    /// The types of the pool.
    types: BTreeSet<String>,
    /// At least so many instances.
    instances: i64,
}

impl Launch {
    /// The instances of a new pool. Of a mixed pool, those of which the purchase option does not depend on how AWS rounds.
    pub(super) fn to_create(
        types: &BTreeSet<String>,
        distribution: &ResolvedInstancesDistribution,
        instances: i64,
    ) -> Vec<Self> {
        let base = i64::from(distribution.on_demand_base_capacity).clamp(0, instances.max(0));
        let percentage = i64::from(distribution.on_demand_percentage_above_base_capacity).clamp(0, 100);
        let above = instances - base;
        let (on_demand, spot) = (base + above * percentage / 100, above * (100 - percentage) / 100);
        Self::of(types, [(PurchaseOption::OnDemand, on_demand), (PurchaseOption::Spot, spot)])
    }

    /// The additional instances of a rollout, if the pool has only one purchase option. Otherwise their purchase option
    /// depends on the instances that the group has then.
    pub(super) fn to_surge(
        types: &BTreeSet<String>,
        distribution: &ResolvedInstancesDistribution,
        instances: i64,
    ) -> Vec<Self> {
        let base = distribution.on_demand_base_capacity;
        match (base, distribution.on_demand_percentage_above_base_capacity) {
            (_, 100) => Self::of(types, [(PurchaseOption::OnDemand, instances)]),
            (0, 0) => Self::of(types, [(PurchaseOption::Spot, instances)]),
            _ => Vec::new(),
        }
    }

    fn of(types: &BTreeSet<String>, wanted: impl IntoIterator<Item = (PurchaseOption, i64)>) -> Vec<Self> {
        let launch = |(purchase, instances): (PurchaseOption, i64)| {
            let mut quotas = types.iter().map(|name| VcpuQuota::of(name, purchase));
            let quota = quotas.next()??;
            let certain = instances > 0 && quotas.all(|other| other == Some(quota));
            certain.then(|| Self { quota, types: types.clone(), instances })
        };
        wanted.into_iter().filter_map(launch).collect()
    }

    /// The questions to AWS.
    pub(super) fn questions(&self, place: &Place) -> [Question; 2] {
        [self.types_question(place), self.quota_question(place)]
    }

    fn types_question(&self, place: &Place) -> Question {
        Question::Vcpus { place: place.clone(), types: self.types.clone() }
    }

    pub(super) fn quota_question(&self, place: &Place) -> Question {
        Question::Quota { place: place.clone(), quota: self.quota }
    }

    /// The vCPUs that the instances have at least; `None` unless that is known.
    pub(super) fn vcpus(&self, place: &Place, answers: &Answers) -> Option<i64> {
        let Some(Answer::Vcpus(vcpus)) = answers.get(&self.types_question(place)) else { return None };
        // A type that the region does not offer is not launched.
        let least = self.types.iter().filter_map(|name| vcpus.get(name)).min()?;
        Some(self.instances.saturating_mul(i64::from(*least)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gates::aws::testing::{distribution, types};

    const ON_DEMAND: &str = "L-1216C47A";
    const SPOT: &str = "L-34B43A08";

    fn shown(launches: &[Launch]) -> Vec<(&'static str, i64)> {
        launches.iter().map(|launch| (launch.quota.code, launch.instances)).collect()
    }

    #[test]
    fn the_instances_of_a_new_pool_are_those_of_its_distribution() {
        let types = types(&["m7i.large", "c7i.xlarge"]);
        let create =
            |base, percentage| shown(&Launch::to_create(&types, &distribution(base, percentage), 10));
        assert_eq!(create(0, 100), [(ON_DEMAND, 10)]);
        assert_eq!(create(0, 0), [(SPOT, 10)]);
        assert_eq!(create(4, 50), [(ON_DEMAND, 7), (SPOT, 3)]);
        assert_eq!(create(1, 50), [(ON_DEMAND, 5), (SPOT, 4)], "AWS rounds the tenth");
        assert_eq!(create(20, 0), [(ON_DEMAND, 10)]);
        assert_eq!(shown(&Launch::to_create(&types, &distribution(3, 100), 0)), []);
    }

    #[test]
    fn a_surge_counts_if_the_pool_has_one_purchase_option() {
        let types = types(&["m7i.large"]);
        let surge = |base, percentage| shown(&Launch::to_surge(&types, &distribution(base, percentage), 2));
        assert_eq!(surge(0, 100), [(ON_DEMAND, 2)]);
        assert_eq!(surge(5, 100), [(ON_DEMAND, 2)]);
        assert_eq!(surge(0, 0), [(SPOT, 2)]);
        assert_eq!(surge(1, 0), []);
        assert_eq!(surge(0, 50), []);
        assert_eq!(shown(&Launch::to_surge(&types, &distribution(0, 100), 0)), []);
    }

    #[test]
    fn types_of_several_or_unknown_quotas_are_not_counted() {
        for names in [&["m7i.large", "g5.xlarge"][..], &["m7i.large", "mac2.metal"], &["mac2.metal"], &[]] {
            assert_eq!(shown(&Launch::to_create(&types(names), &distribution(0, 100), 3)), [], "{names:?}");
        }
        let p5 = types(&["p5.48xlarge"]);
        assert_eq!(shown(&Launch::to_create(&p5, &distribution(0, 0), 3)), []);
        assert_eq!(shown(&Launch::to_create(&p5, &distribution(0, 100), 3)), [("L-417A185B", 3)]);
    }
}
