//! What the extension reads from AWS: the inventories of the manager, with a share of its rates and without any write.

use std::{sync::Arc, time::Duration};

use capasg_cloud::{
    Cadence, CallObserver, Cloud, CloudFactory, Limits, RegionParts, Regions, Supervisor, SystemClock,
    WriteGuard,
};
use capasg_cloud_aws::AwsConnector;
use chrono::{DateTime, Utc};

/// How long subnets, addresses, security groups, parameters and offerings are kept: users wait for what they corrected, and
/// nothing is read unless a hook is called.
const KEPT: Duration = Duration::from_secs(10);
/// How often what is out of date is dropped.
const DROP: Duration = Duration::from_mins(1);

/// Every region with the credentials of this process, without event queues.
struct Aws(AwsConnector);

impl CloudFactory for Aws {
    fn connect(&self, region: &str) -> Arc<dyn Cloud> {
        self.0.connect(region)
    }
}

/// The extension never writes.
struct ReadOnly;

impl WriteGuard for ReadOnly {
    fn deadline(&self) -> Option<DateTime<Utc>> {
        None
    }
}

/// The regions, each with this share of the rates of a manager. Nothing is sent yet.
pub async fn regions(share: f64, observer: Arc<dyn CallObserver>, supervisor: Supervisor) -> Arc<Regions> {
    // Nothing is polled, so that no loops are needed.
    Regions::stepped(RegionParts {
        factory: Arc::new(Aws(AwsConnector::load().await)),
        guard: Arc::new(ReadOnly),
        observer,
        clock: Arc::new(SystemClock),
        limits: Limits::default().share(share),
        cadence: Cadence { lookup: KEPT, idle: KEPT, ..Cadence::default() },
        supervisor,
    })
}

/// Drops what is out of date, until the future is dropped.
pub async fn keep(regions: Option<Arc<Regions>>) {
    let Some(regions) = regions else { return std::future::pending().await };
    loop {
        tokio::time::sleep(DROP).await;
        for (_, inventory) in regions.open_regions() {
            inventory.drop_expired();
        }
    }
}
