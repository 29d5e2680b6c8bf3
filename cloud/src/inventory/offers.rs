//! What a region offers to instances that are not launched yet, kept for a stated time. Only the Runtime Extension reads it.

use std::{collections::BTreeSet, sync::Arc};

use futures::FutureExt;
use tokio::time::Instant;

use crate::{
    Gateway, Result, Selector, SubnetAddresses, TypeOffering,
    inventory::{
        cache::{Answer, Cache},
        cadence::Cadence,
    },
};

type Shared<T> = Arc<Vec<T>>;

pub(super) struct Offers {
    types: Cache<BTreeSet<String>, Shared<TypeOffering>>,
    addresses: Cache<Selector, Shared<SubnetAddresses>>,
}

impl Offers {
    pub(super) fn new(cadence: &Cadence) -> Self {
        Self {
            types: Cache::new(cadence.lookup, cadence.negative, |_, _| Answer::Complete),
            addresses: Cache::new(cadence.idle, cadence.negative, |_, _| Answer::Complete),
        }
    }

    pub(super) async fn type_offerings(
        &self,
        gateway: &Arc<Gateway>,
        names: &BTreeSet<String>,
    ) -> Result<Shared<TypeOffering>> {
        let fetch = || {
            let (gateway, names) = (gateway.clone(), names.iter().cloned().collect::<Vec<_>>());
            async move { gateway.type_offerings(&names).await.map(Arc::new) }.boxed()
        };
        self.types.get(names, fetch).await
    }

    pub(super) async fn subnet_addresses(
        &self,
        gateway: &Arc<Gateway>,
        selector: &Selector,
    ) -> Result<Shared<SubnetAddresses>> {
        let fetch = || {
            let (gateway, selector) = (gateway.clone(), selector.clone());
            async move { gateway.subnet_addresses(&selector).await.map(Arc::new) }.boxed()
        };
        self.addresses.get(selector, fetch).await
    }

    pub(super) fn prune(&self, now: Instant) {
        self.types.prune(now);
        self.addresses.prune(now);
    }
}
