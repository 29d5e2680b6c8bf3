//! What the reconcilers share: the two ports, the clock, and what is remembered of each pool between reconciles.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use capasg_api::ASGMachinePool;
use capasg_cloud::{Clock, Identity, Inventories, Place};

use crate::ObjectKey;
use crate::access::AccessCache;
use crate::kubernetes::{EventType, KubeEvent, Kubernetes, Randomness};
use crate::machine_pool::PoolMemory;
use crate::observer::{NoObserver, PoolObserver};

/// The ports and memories of the controllers.
pub struct Context {
    /// The Kubernetes port.
    pub kubernetes: Arc<dyn Kubernetes>,
    /// The cloud, one inventory for each identity and region.
    pub inventories: Arc<Inventories>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What access to AWS was resolved from.
    pub access: AccessCache,
    /// Randomness for owner ids.
    pub random: Arc<dyn Randomness>,
    /// Receives what metrics count.
    pub observer: Arc<dyn PoolObserver>,
    pools: Mutex<BTreeMap<ObjectKey, Arc<tokio::sync::Mutex<PoolMemory>>>>,
    watchers: Mutex<BTreeMap<(Place, String), BTreeSet<ObjectKey>>>,
}

impl Context {
    /// A context that remembers nothing yet.
    #[must_use]
    pub fn new(
        kubernetes: Arc<dyn Kubernetes>,
        inventories: Arc<Inventories>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Randomness>,
    ) -> Self {
        Self {
            kubernetes,
            inventories,
            clock,
            random,
            access: AccessCache::default(),
            observer: Arc::new(NoObserver),
            pools: Mutex::default(),
            watchers: Mutex::default(),
        }
    }

    /// Sets the observer that updates the metrics.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn PoolObserver>) -> Self {
        self.observer = observer;
        self
    }

    /// Publishes an event about a pool.
    pub(crate) async fn publish(
        &self,
        pool: &Arc<ASGMachinePool>,
        event_type: EventType,
        reason: &'static str,
        message: String,
    ) {
        let regarding = Arc::clone(pool);
        self.kubernetes.event(KubeEvent { regarding, event_type, reason, message }).await;
    }

    /// What is remembered of a pool.
    pub(crate) fn memory(&self, pool: &ObjectKey) -> Arc<tokio::sync::Mutex<PoolMemory>> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(pools.entry(pool.clone()).or_default())
    }

    /// What is remembered of a pool, if anything is.
    pub(crate) fn known_memory(&self, pool: &ObjectKey) -> Option<Arc<tokio::sync::Mutex<PoolMemory>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).get(pool).cloned()
    }

    /// Drops the memory of a deleted pool.
    pub(crate) fn forget(&self, pool: &ObjectKey) {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).remove(pool);
    }

    /// A pool observes this group from now on.
    pub(crate) fn watch(&self, pool: &ObjectKey, place: &Place, group: &str) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.entry((place.clone(), group.to_owned())).or_default().insert(pool.clone());
    }

    /// A pool no longer observes this group; returns whether no pool does.
    pub(crate) fn unwatch(&self, pool: &ObjectKey, place: &Place, group: &str) -> bool {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (place.clone(), group.to_owned());
        let Some(pools) = watchers.get_mut(&key) else { return true };
        pools.remove(pool);
        if pools.is_empty() {
            watchers.remove(&key);
            return true;
        }
        false
    }

    /// The pools that use other credentials under the name of an identity.
    #[must_use]
    pub fn pools_with_others_than(&self, identity: &Identity) -> Vec<ObjectKey> {
        let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let differs = |place: &Place| place.identity.name == identity.name && *place.identity != *identity;
        let pools = watchers.iter().filter(|((place, _), _)| !identity.is_process() && differs(place));
        pools.flat_map(|(_, pools)| pools.iter().cloned()).collect()
    }

    /// The pools that observe a group, to wake them when it changed.
    #[must_use]
    pub fn pools_of(&self, place: &Place, group: &str) -> Vec<ObjectKey> {
        let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let pools = watchers.get(&(place.clone(), group.to_owned()));
        pools.into_iter().flatten().cloned().collect()
    }
}
