//! The reads of what a region offers. Only the Runtime Extension makes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{Result, Selector, SubnetAddresses, TypeOffering, VcpuQuota, inventory::Inventory};

impl Inventory {
    /// The zones that offer instance types, at most 200 names; kept for [`crate::Cadence::lookup`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`crate::Cadence::negative`].
    pub async fn type_offerings(&self, names: &BTreeSet<String>) -> Result<Arc<Vec<TypeOffering>>> {
        self.lookups.offers.type_offerings(&self.gateway, names).await
    }

    /// The free addresses of subnets; kept for [`crate::Cadence::idle`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`crate::Cadence::negative`].
    pub async fn subnet_addresses(&self, selector: &Selector) -> Result<Arc<Vec<SubnetAddresses>>> {
        self.lookups.offers.subnet_addresses(&self.gateway, selector).await
    }

    /// The value of a quota for vCPUs; kept for [`crate::Cadence::lookup`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`crate::Cadence::negative`].
    pub async fn vcpu_quota(&self, quota: VcpuQuota) -> Result<i64> {
        self.lookups.offers.vcpu_quota(&self.gateway, quota).await
    }

    /// The vCPUs that all instances of the account in the region use, by quota; a quota of which none are used is absent.
    /// Kept for [`crate::Cadence::idle`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`crate::Cadence::negative`].
    pub async fn vcpus_in_use(&self) -> Result<Arc<BTreeMap<VcpuQuota, i64>>> {
        self.lookups.offers.vcpus_in_use(&self.gateway).await
    }
}
