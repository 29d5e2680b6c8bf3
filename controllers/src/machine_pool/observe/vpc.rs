//! The VPC that a pool launches into: a group is in one, and tags may select subnets of several.

use std::collections::BTreeSet;

use capasg_api::{
    capi::{Cluster, vpc_of_aws_cluster},
    conditions::{self, Finding},
    reasons::group_ready,
};
use capasg_cloud::Subnet;
use kube::ResourceExt;

use crate::ObjectKey;
use crate::kubernetes::{Kubernetes, Result};

/// What determines the VPC if tags select subnets of several.
pub struct VpcSources<'a> {
    /// The subnets that the spec names by ID.
    pub named: &'a BTreeSet<String>,
    /// The subnets of the group, once it exists. A change of the tags of other subnets must not affect it.
    pub used: &'a BTreeSet<String>,
    /// The Cluster, whose `AWSCluster` names a VPC.
    pub cluster: Option<&'a Cluster>,
}

impl VpcSources<'_> {
    /// Those of the found subnets that are in the VPC of the pool; else why there is none.
    ///
    /// # Errors
    /// The read of the `AWSCluster` failed.
    pub async fn restrict(
        &self,
        kubernetes: &dyn Kubernetes,
        mut found: Vec<Subnet>,
    ) -> Result<Result<Vec<Subnet>, Finding>> {
        let all = vpcs(&found, |_| true);
        if all.len() < 2 {
            return Ok(Ok(found));
        }
        let of = |ids: &BTreeSet<String>| vpcs(&found, |subnet| ids.contains(&subnet.id));
        let (named, used) = (of(self.named), of(self.used));
        let known = if !named.is_empty() {
            named
        } else if used.len() == 1 {
            used
        } else {
            vpc_of(kubernetes, self.cluster).await?.into_iter().collect()
        };
        let mut known = known.into_iter();
        let (Some(vpc), None) = (known.next(), known.next()) else { return Ok(Err(several(&all))) };
        found.retain(|subnet| subnet.vpc == vpc);
        Ok(if found.is_empty() { Err(none_in(&vpc)) } else { Ok(found) })
    }
}

fn vpcs(subnets: &[Subnet], matches: impl Fn(&Subnet) -> bool) -> BTreeSet<String> {
    subnets.iter().filter(|subnet| matches(subnet)).map(|subnet| subnet.vpc.clone()).collect()
}

/// The VPC that the `AWSCluster` of a Cluster names, if it has one.
async fn vpc_of(kubernetes: &dyn Kubernetes, cluster: Option<&Cluster>) -> Result<Option<String>> {
    let Some((cluster, reference)) = cluster.and_then(|cluster| Some((cluster, cluster.aws_cluster()?)))
    else {
        return Ok(None);
    };
    let key = ObjectKey::new(cluster.namespace().unwrap_or_default(), &reference.name);
    let spec = kubernetes.referenced_spec(&reference.api_group, &reference.kind, &key).await?;
    Ok(spec.as_ref().and_then(vpc_of_aws_cluster))
}

fn several(vpcs: &BTreeSet<String>) -> Finding {
    let vpcs: Vec<&str> = vpcs.iter().map(String::as_str).collect();
    let message = format!(
        "spec.subnets selects subnets of several VPCs: {}. An Auto Scaling group uses subnets of one VPC. Change \
         spec.subnets so that it selects subnets of one VPC only.",
        vpcs.join(", ")
    );
    Finding::new(conditions::GROUP_READY, false, group_ready::SUBNETS_IN_SEVERAL_VPCS, message)
}

fn none_in(vpc: &str) -> Finding {
    let message = format!(
        "no subnet of spec.subnets is in VPC {vpc} of the Cluster. Correct spec.subnets, or tag a subnet."
    );
    Finding::new(conditions::GROUP_READY, false, group_ready::SUBNET_NOT_FOUND, message)
}
