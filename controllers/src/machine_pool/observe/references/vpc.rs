//! The VPC that a pool launches into: a group is in one, and tags may select subnets of several.

use std::collections::BTreeSet;

use capasg_api::{
    conditions::{self, Finding},
    reasons::group_ready,
};
use capasg_cloud::Subnet;

use super::place::{AwsCluster, Place};
use crate::kubernetes::Result;

/// What determines the VPC if tags select subnets of several.
pub(super) struct VpcSources<'a> {
    /// The subnets that the spec names by ID.
    pub named: &'a BTreeSet<String>,
    /// The subnets of the group, once it exists. A change of the tags of other subnets must not affect it.
    pub used: &'a BTreeSet<String>,
    /// Reads the `AWSCluster`, which names a VPC.
    pub place: &'a Place<'a>,
}

impl VpcSources<'_> {
    /// Those of the found subnets that are in the VPC of the pool; else why there is none.
    ///
    /// # Errors
    /// The read of the `AWSCluster` failed.
    pub(super) async fn restrict(
        &self,
        mut found: Vec<Subnet>,
    ) -> Result<std::result::Result<Vec<Subnet>, Finding>> {
        let all = vpcs(&found, |_| true);
        let of = |ids: &BTreeSet<String>| vpcs(&found, |subnet| ids.contains(&subnet.id));
        let (named, used) = (of(self.named), of(self.used));
        // Subnets that are named by ID may be in any VPC, and an existing group stays where it is.
        let is_free = named.is_empty() && self.used.is_empty() && !self.place.is_created();
        if all.is_empty() || (all.len() == 1 && !is_free) {
            return Ok(Ok(found));
        }
        let mut cluster = None;
        let known = if !named.is_empty() {
            named
        } else if used.len() == 1 {
            used
        } else {
            cluster = self.place.aws_cluster().await?;
            cluster.and_then(|cluster| cluster.vpc.clone()).into_iter().collect()
        };
        let mut known = known.into_iter();
        let (Some(vpc), None) = (known.next(), known.next()) else {
            return Ok(if all.len() == 1 { Ok(found) } else { Err(several(&all)) });
        };
        found.retain(|subnet| subnet.vpc == vpc);
        Ok(if found.is_empty() { Err(none_in(&vpc, cluster, &all)) } else { Ok(found) })
    }
}

fn vpcs(subnets: &[Subnet], matches: impl Fn(&Subnet) -> bool) -> BTreeSet<String> {
    subnets.iter().filter(|subnet| matches(subnet)).map(|subnet| subnet.vpc.clone()).collect()
}

fn listed(vpcs: &BTreeSet<String>) -> String {
    vpcs.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn several(vpcs: &BTreeSet<String>) -> Finding {
    let message = format!(
        "spec.subnets selects subnets of several VPCs: {}. An Auto Scaling group uses subnets of one VPC. Change \
         spec.subnets so that it selects subnets of one VPC only.",
        listed(vpcs)
    );
    Finding::new(conditions::GROUP_READY, false, group_ready::SUBNETS_IN_SEVERAL_VPCS, message)
}

fn none_in(vpc: &str, cluster: Option<&AwsCluster>, found: &BTreeSet<String>) -> Finding {
    let cluster = cluster.map(|cluster| format!(" of AWSCluster {}", cluster.name)).unwrap_or_default();
    let message = format!(
        "spec.subnets selects subnets of {}, and none of VPC {vpc}{cluster}. Correct spec.subnets, or tag a subnet of \
         VPC {vpc}; to use another VPC, select its subnets by ID.",
        listed(found)
    );
    Finding::new(conditions::GROUP_READY, false, group_ready::SUBNET_NOT_FOUND, message)
}
