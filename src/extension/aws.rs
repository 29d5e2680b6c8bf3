//! What the extension reads from AWS: the inventories of the manager, with a share of its rates and without any write.

use std::{sync::Arc, time::Duration};

use capasg_api::names::tags;
use capasg_cloud::{
    Cadence, CallObserver, CloudFactory, Connection, Inventories, InventoryParts, Limits, Place, Supervisor,
    SystemClock, WriteGuard,
};
use capasg_cloud_aws::AwsConnector;
use capasg_extensions::lookups::Lookups;
use chrono::{DateTime, Utc};

/// How long subnets, addresses, security groups, parameters and offerings are kept: users wait for what they corrected, and
/// nothing is read unless a hook is called.
const KEPT: Duration = Duration::from_secs(10);
/// How often what is out of date is dropped.
const DROP: Duration = Duration::from_mins(1);

/// Every place, without event queues.
struct Aws(AwsConnector);

impl CloudFactory for Aws {
    fn connect(&self, place: &Place) -> Connection {
        Connection::new(self.0.with(&place.identity, &place.region).connect(&place.region))
    }
}

/// The extension never writes.
struct ReadOnly;

impl WriteGuard for ReadOnly {
    fn deadline(&self) -> Option<DateTime<Utc>> {
        None
    }
}

/// The inventories, each with this share of the rates of a manager. Nothing is sent yet.
#[must_use]
pub fn inventories(
    connector: AwsConnector,
    share: f64,
    observer: Arc<dyn CallObserver>,
    supervisor: Supervisor,
) -> Arc<Inventories> {
    // Nothing is polled, so that no loops are needed.
    Inventories::stepped(InventoryParts {
        factory: Arc::new(Aws(connector)),
        guard: Arc::new(ReadOnly),
        observer,
        clock: Arc::new(SystemClock),
        limits: Limits::default().share(share),
        cadence: Cadence { lookup: KEPT, idle: KEPT, ..Cadence::default() },
        template_tag: tags::OWNER_ID,
        supervisor,
    })
}

/// Drops what is out of date, until the future is dropped.
pub async fn keep(inventories: Option<Arc<Inventories>>, lookups: Option<Lookups>) {
    let Some((inventories, lookups)) = inventories.zip(lookups) else { return std::future::pending().await };
    loop {
        tokio::time::sleep(DROP).await;
        lookups.forget_unused();
        inventories.close_unused();
        for (_, inventory) in inventories.open() {
            inventory.drop_expired();
        }
    }
}
