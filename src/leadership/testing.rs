//! A Lease store with optimistic locking that can be cut off and lose replies, for tests in virtual time.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use k8s_openapi::api::coordination::v1::Lease;

use super::{Election, LeaseStore, Seat, Timing, store::StoreError};

/// The default times of the command line.
pub const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

/// One Lease, as the API server keeps it.
#[derive(Default)]
pub struct FakeLeases {
    stored: Mutex<Option<Lease>>,
    version: AtomicU64,
}

impl FakeLeases {
    /// As stored.
    pub fn lease(&self) -> Lease {
        self.stored.lock().unwrap().clone().unwrap()
    }

    /// Who holds it.
    pub fn holder(&self) -> String {
        self.lease().spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    }

    /// How often it was written.
    pub fn writes(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Stores it whatever is there.
    pub fn store(&self, lease: &Lease) -> Lease {
        let mut lease = lease.clone();
        lease.metadata.resource_version = Some((self.version.fetch_add(1, Ordering::SeqCst) + 1).to_string());
        *self.stored.lock().unwrap() = Some(lease.clone());
        lease
    }
}

/// One contender's connection to the store.
#[derive(Clone, Default)]
pub struct Link {
    leases: Arc<FakeLeases>,
    /// Nothing arrives.
    cut: Arc<AtomicBool>,
    /// Writes arrive, answers do not.
    loses_replies: Arc<AtomicBool>,
    reads: Arc<AtomicU64>,
}

impl Link {
    /// A connection to these leases.
    pub fn to(leases: &Arc<FakeLeases>) -> Self {
        Self { leases: Arc::clone(leases), ..Self::default() }
    }

    /// How often the Lease was read over this connection.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// Cuts the connection off, or restores it.
    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::SeqCst);
    }

    /// Whether writes arrive without being answered.
    pub fn lose_replies(&self, lose: bool) {
        self.loses_replies.store(lose, Ordering::SeqCst);
    }

    async fn pass(&self) -> Result<(), StoreError> {
        if self.cut.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn reply(&self, lease: Lease) -> Result<Lease, StoreError> {
        if self.loses_replies.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok(lease)
    }
}

#[async_trait]
impl LeaseStore for Link {
    async fn get(&self) -> Result<Option<Lease>, StoreError> {
        self.pass().await?;
        self.reads.fetch_add(1, Ordering::SeqCst);
        Ok(self.leases.stored.lock().unwrap().clone())
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, StoreError> {
        self.pass().await?;
        if self.leases.stored.lock().unwrap().is_some() {
            return Err(StoreError::Conflict);
        }
        let stored = self.leases.store(lease);
        self.reply(stored).await
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, StoreError> {
        self.pass().await?;
        if self.leases.lease().metadata.resource_version != lease.metadata.resource_version {
            return Err(StoreError::Conflict);
        }
        let stored = self.leases.store(lease);
        self.reply(stored).await
    }
}

/// A replica that contends for the Lease, and whether it leads.
pub fn contender(identity: &str, link: &Link) -> (Election<Link>, Arc<Seat>) {
    let seat = Arc::new(Seat::vacant());
    let election = Election::new(link.clone(), "here".into(), identity.into(), TIMING, Arc::clone(&seat));
    (election, seat)
}
