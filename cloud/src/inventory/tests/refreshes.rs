//! Instance refreshes: read on demand, believed for as long as the asker says, doubted after a write.

use std::time::Duration;

use super::{Bench, bench};
use crate::{
    CloudError, InstanceRefresh, RefreshPreferences, RefreshStatus, StartRefresh, Write,
    testing::{Upset, pass, set_desired},
};

const REFRESHES: &str = "DescribeInstanceRefreshes";
const BELIEVED: Duration = Duration::from_secs(20);

fn refresh(id: &str) -> InstanceRefresh {
    InstanceRefresh {
        id: id.to_owned(),
        status: RefreshStatus::InProgress,
        reason: None,
        started_at: None,
        ended_at: None,
        percentage: None,
        to_update: None,
        min_healthy_percentage: None,
        desired: None,
        rollback_reason: None,
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_that_nobody_asks_for() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    pass(Duration::from_hours(2)).await;
    assert_eq!(bench.cloud.count(REFRESHES), 0);
    assert_eq!(bench.inventory.known_refreshes("a"), None);
}

#[tokio::test(start_paused = true)]
async fn a_listing_is_whole_and_kept_for_as_long_as_it_is_believed() {
    let Bench { cloud, inventory, .. } = bench();
    cloud.world().refreshes.insert("a".to_owned(), vec![refresh("r-2"), refresh("r-1")]);
    cloud.world().page = 1;
    let view = inventory.instance_refreshes("a", BELIEVED).await.unwrap();
    assert_eq!(view.refreshes.len(), 2, "both pages");
    assert_eq!(cloud.count(REFRESHES), 2);
    pass(BELIEVED / 2).await;
    assert_eq!(inventory.instance_refreshes("a", BELIEVED).await.unwrap(), view);
    assert_eq!(cloud.count(REFRESHES), 2, "still believed");
    assert_eq!(inventory.known_refreshes("a"), Some(view.clone()));
    pass(BELIEVED).await;
    assert!(inventory.instance_refreshes("a", BELIEVED).await.unwrap().as_of > view.as_of);
    inventory.forget("a");
    assert_eq!(inventory.known_refreshes("a"), None);
}

#[tokio::test(start_paused = true)]
async fn a_write_about_refreshes_is_doubted_and_another_is_not() {
    let Bench { cloud, inventory, .. } = bench();
    let group = || "a".to_owned();
    let start = StartRefresh { group: group(), desired: None, preferences: RefreshPreferences::default() };
    let writes = [
        (set_desired("a", 3), 0),
        (Write::StartInstanceRefresh(Box::new(start)), 1),
        (Write::CancelInstanceRefresh { group: group() }, 1),
        (Write::RollbackInstanceRefresh { group: group() }, 1),
        (Write::DeleteGroup { group: group(), force: true }, 1),
    ];
    for (write, reads) in writes {
        inventory.instance_refreshes("a", BELIEVED).await.unwrap();
        let before = cloud.count(REFRESHES);
        // Also one that is refused: it may have met something that is not known.
        cloud.upset(
            write.api(),
            [Upset::Fail(CloudError::answered(write.api(), 400, "ResourceContention", ""))],
        );
        let _ = inventory.write(&write).await;
        inventory.instance_refreshes("a", BELIEVED).await.unwrap();
        assert_eq!(cloud.count(REFRESHES) - before, reads, "{}", write.api());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_not_repeated_at_once() {
    let Bench { cloud, inventory, .. } = bench();
    let error = CloudError::answered(REFRESHES, 500, "InternalFailure", "");
    cloud.upset(REFRESHES, [Upset::Fail(error.clone())]);
    for _ in 0..3 {
        assert_eq!(inventory.instance_refreshes("a", BELIEVED).await, Err(error.clone()));
    }
    assert_eq!(cloud.count(REFRESHES), 1);
    pass(Duration::from_secs(3)).await;
    assert!(inventory.instance_refreshes("a", BELIEVED).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_kept_for_longer_each_time() {
    let Bench { cloud, inventory, .. } = bench();
    let error = CloudError::answered(REFRESHES, 403, "AccessDenied", "");
    cloud.upset(REFRESHES, vec![Upset::Fail(error.clone()); 8]);
    let mut read = Vec::new();
    for second in 0..2_000 {
        let before = cloud.count(REFRESHES);
        assert_eq!(inventory.instance_refreshes("a", BELIEVED).await, Err(error.clone()));
        if cloud.count(REFRESHES) > before {
            read.push(second);
        }
        pass(Duration::from_secs(1)).await;
    }
    assert_eq!(read, [0, 30, 90, 210, 450, 930, 1530]);
}
