//! What a region offers to instances that are not launched yet, kept for a stated time. Only the Runtime Extension reads it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::FutureExt;
use tokio::time::Instant;

use crate::{
    Gateway, Result, Selector, SubnetAddresses, TypeOffering, VcpuQuota,
    inventory::{
        cache::{Answer, Cache},
        cadence::Cadence,
    },
    types::vcpus_by_quota,
};

type Shared<T> = Arc<Vec<T>>;

pub(super) struct Offers {
    types: Cache<BTreeSet<String>, Shared<TypeOffering>>,
    addresses: Cache<Selector, Shared<SubnetAddresses>>,
    quotas: Cache<VcpuQuota, i64>,
    vcpus: Cache<(), Arc<BTreeMap<VcpuQuota, i64>>>,
}

impl Offers {
    pub(super) fn new(cadence: &Cadence) -> Self {
        Self {
            types: Cache::new(cadence.lookup, cadence.negative, |_, _| Answer::Complete),
            addresses: Cache::new(cadence.idle, cadence.negative, |_, _| Answer::Complete),
            quotas: Cache::new(cadence.lookup, cadence.negative, |_, _| Answer::Complete),
            vcpus: Cache::new(cadence.idle, cadence.negative, |(), _| Answer::Complete),
        }
    }

    pub(super) fn prune(&self, now: Instant) {
        self.types.prune(now);
        self.addresses.prune(now);
        self.quotas.prune(now);
        self.vcpus.prune(now);
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

    pub(super) async fn vcpu_quota(&self, gateway: &Arc<Gateway>, quota: VcpuQuota) -> Result<i64> {
        let fetch = || {
            let gateway = gateway.clone();
            async move { gateway.ec2_quota(quota.code).await }.boxed()
        };
        self.quotas.get(&quota, fetch).await
    }

    pub(super) async fn vcpus_in_use(&self, gateway: &Arc<Gateway>) -> Result<Arc<BTreeMap<VcpuQuota, i64>>> {
        let fetch = || {
            let gateway = gateway.clone();
            async move { Ok(Arc::new(vcpus_by_quota(&gateway.running_instances().await?))) }.boxed()
        };
        self.vcpus.get(&(), fetch).await
    }
}
