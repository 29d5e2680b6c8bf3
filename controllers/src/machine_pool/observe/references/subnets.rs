//! Resolves the subnets of a spec: by ID and by tags, in one VPC, and in the failure domains of the MachinePool.

use std::collections::BTreeSet;

use capasg_api::{
    ASGMachinePoolSpec,
    capi::MachinePool,
    conditions::GROUP_READY,
    reasons::group_ready::{NOT_ALLOWED, SUBNET_NOT_FOUND},
};
use capasg_cloud::{Selector, Subnet, View};

use super::place::{Place, describe};
use super::vpc::VpcSources;
use crate::kubernetes::Result;
use crate::machine_pool::model::References;

impl References {
    /// Resolves the subnets.
    ///
    /// # Errors
    /// The read of the `AWSCluster` failed.
    pub(super) async fn resolve_subnets(&mut self, place: &Place<'_>, owner: &MachinePool) -> Result<()> {
        let Some(found) = self.find_subnets(place).await else { return Ok(()) };
        let named = ids(place.spec());
        let used = used_subnets(place);
        self.report_unknown(place, &found, &named, &used).await;
        let sources = VpcSources { named: &named, used: &used, place };
        match sources.restrict(found).await? {
            Ok(found) => self.choose_subnets(place, found, &named, owner),
            Err(finding) => self.find(finding),
        }
        Ok(())
    }

    /// The subnets that the spec selects; `None` if a read failed.
    async fn find_subnets(&mut self, place: &Place<'_>) -> Option<Vec<Subnet>> {
        let mut found: Vec<Subnet> = Vec::new();
        for selector in subnet_selectors(place.spec()) {
            match place.inventory.subnets(&selector).await {
                Ok(subnets) if subnets.is_empty() && matches!(selector, Selector::Tags(_)) => {
                    let message = format!(
                        "no subnet has {} in {}. Correct spec.subnets, or tag a subnet; {}.",
                        describe(&selector),
                        place.name().await,
                        place.origin().await
                    );
                    self.miss(GROUP_READY, SUBNET_NOT_FOUND, message);
                }
                Ok(subnets) => found.extend(subnets.iter().cloned()),
                Err(error) => {
                    // Incomplete subnets would move the group: without any, it keeps those that it has.
                    let what = format!("the subnets with {}", describe(&selector));
                    self.fail(GROUP_READY, &what, place, &error);
                    return None;
                }
            }
        }
        Some(found)
    }

    /// Reports the IDs that AWS does not know. Those that the group uses are AWS's to validate.
    async fn report_unknown(
        &mut self,
        place: &Place<'_>,
        found: &[Subnet],
        named: &BTreeSet<String>,
        used: &BTreeSet<String>,
    ) {
        let known: BTreeSet<&String> = found.iter().map(|subnet| &subnet.id).chain(used).collect();
        let Some(id) = named.iter().find(|id| !known.contains(id)) else { return };
        let message = format!(
            "subnet {id} does not exist in {}. Correct spec.subnets; {}.",
            place.name().await,
            place.origin().await
        );
        self.miss(GROUP_READY, SUBNET_NOT_FOUND, message);
    }

    /// Restricts the subnets to the MachinePool's failure domains (H5). IDs are sent to AWS as they are, even if
    /// unknown, since an existing group must not lose a subnet that one answer misses.
    fn choose_subnets(
        &mut self,
        place: &Place<'_>,
        mut found: Vec<Subnet>,
        named: &BTreeSet<String>,
        owner: &MachinePool,
    ) {
        let domains = owner.failure_domains();
        let allowed = |subnet: &Subnet| domains.is_empty() || domains.contains(&subnet.zone);
        self.subnets = found.iter().filter(|s| allowed(s)).map(|s| s.id.clone()).collect();
        let known: BTreeSet<&String> = found.iter().map(|s| &s.id).collect();
        self.subnets.extend(named.iter().filter(|id| !known.contains(id)).cloned());
        let guards = &place.objects.access.guards;
        let vpc_of = |id: &str| found.iter().find(|subnet| subnet.id == id).map_or("", |subnet| &subnet.vpc);
        if let Some(why) = self.subnets.iter().find_map(|id| guards.subnet(id, vpc_of(id))) {
            // The group keeps those that it has.
            self.subnets.clear();
            self.zones.clear();
            return self.deny(GROUP_READY, NOT_ALLOWED, &format!("spec.subnets: {why}"));
        }
        if self.subnets.is_empty() && !found.is_empty() {
            self.miss(
                GROUP_READY,
                SUBNET_NOT_FOUND,
                format!(
                    "no subnet of spec.subnets is in the failure domains {} of the MachinePool. Add one, or change \
                     spec.failureDomains of the MachinePool.",
                    domains.join(", ")
                ),
            );
        }
        found.retain(allowed);
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.dedup_by(|a, b| a.id == b.id);
        self.zones = found;
    }
}

/// What selects the subnets of the spec: each of its tag selectors, then all IDs together.
pub(super) fn subnet_selectors(spec: &ASGMachinePoolSpec) -> Vec<Selector> {
    let tags = spec.subnets.iter().filter_map(|subnet| subnet.tags.clone()).map(Selector::Tags);
    tags.chain(Some(ids(spec)).filter(|ids| !ids.is_empty()).map(Selector::Ids)).collect()
}

/// The subnets of the group; while it is not read, those that the status reports.
fn used_subnets(place: &Place<'_>) -> BTreeSet<String> {
    let view = place.objects.cloud_names().map(|(group, _)| place.inventory.view(&group));
    let group = view.as_ref().and_then(View::group).map(|group| group.settings.subnets.clone());
    let reported = || {
        let subnets = place.objects.pool.status.iter().flat_map(|status| &status.subnets);
        subnets.map(|subnet| subnet.id.clone()).collect()
    };
    group.unwrap_or_else(reported)
}

/// The subnets that the spec names by ID.
fn ids(spec: &ASGMachinePoolSpec) -> BTreeSet<String> {
    spec.subnets.iter().filter_map(|subnet| subnet.id.clone()).collect()
}
