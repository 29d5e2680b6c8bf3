//! Quotas, and what is in use of them.

use std::time::Duration;

use super::{Bench, bench};
use crate::{
    CloudError, PurchaseOption, RunningInstance, VcpuQuota,
    testing::{Upset, pass},
};

const IN_USE: &str = "DescribeInstances";
const QUOTA: &str = "GetServiceQuota";

fn quota(purchase: PurchaseOption) -> VcpuQuota {
    VcpuQuota::of("m7i.large", purchase).unwrap()
}

fn instance(purchase: PurchaseOption) -> RunningInstance {
    RunningInstance { instance_type: "m7i.large".to_owned(), purchase, vcpus: 2 }
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_kept_for_ten_minutes_and_its_use_for_one() {
    let Bench { cloud, inventory, .. } = bench();
    cloud.world().quota = 32;
    cloud.world().page = 2;
    cloud.world().running = vec![instance(PurchaseOption::OnDemand); 3];
    cloud.world().running.push(instance(PurchaseOption::Spot));
    let (on_demand, spot) = (quota(PurchaseOption::OnDemand), quota(PurchaseOption::Spot));
    let (one, two) = tokio::join!(inventory.vcpu_quota(on_demand), inventory.vcpu_quota(on_demand));
    assert_eq!((one.unwrap(), two.unwrap(), cloud.count(QUOTA)), (32, 32, 1), "one call for both");
    let used = inventory.vcpus_in_use().await.unwrap();
    assert_eq!((used[&on_demand], used[&spot], cloud.count(IN_USE)), (6, 2, 2), "of all pages");

    cloud.world().running.clear();
    pass(Duration::from_secs(40)).await;
    assert_eq!(inventory.vcpus_in_use().await.unwrap()[&spot], 2);
    pass(Duration::from_secs(40)).await;
    assert!(inventory.vcpus_in_use().await.unwrap().is_empty());
    assert_eq!(inventory.vcpu_quota(on_demand).await.unwrap(), 32);
    assert_eq!(cloud.count(QUOTA), 1);
    pass(Duration::from_mins(11)).await;
    assert_eq!(inventory.vcpu_quota(on_demand).await.unwrap(), 32);
    assert_eq!(cloud.count(QUOTA), 2);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_fails_leaves_the_use_unknown() {
    let Bench { cloud, inventory, .. } = bench();
    cloud.world().page = 1;
    cloud.world().running = vec![instance(PurchaseOption::OnDemand); 2];
    let denied = CloudError::answered(IN_USE, 403, "UnauthorizedOperation", "no");
    cloud.upset(IN_USE, [Upset::Slow(Duration::ZERO), Upset::Fail(denied.clone())]);
    assert_eq!(inventory.vcpus_in_use().await.unwrap_err(), denied);
}
