//! Where the references of a spec are looked up: what is not found may exist in another region or account.

use capasg_api::{
    ASGMachinePoolSpec,
    capi::{region_of_aws_cluster, vpc_of_aws_cluster},
};
use capasg_cloud::Inventory;
use kube::ResourceExt;
use tokio::sync::OnceCell;

use crate::ObjectKey;
use crate::kubernetes::{Kubernetes, Result};
use crate::machine_pool::model::PoolObjects;

/// The region and the account in which references are looked up, and the network of the Cluster.
pub(super) struct Place<'a> {
    /// The Kubernetes port.
    pub kubernetes: &'a dyn Kubernetes,
    /// The region.
    pub inventory: &'a Inventory,
    /// The pool.
    pub objects: &'a PoolObjects,
    aws_cluster: OnceCell<Option<AwsCluster>>,
}

/// What the spec of an `AWSCluster` says about its network.
pub(super) struct AwsCluster {
    /// Object name.
    pub name: String,
    /// The region, if it names one.
    pub region: Option<String>,
    /// The ID of the VPC, if it names one.
    pub vpc: Option<String>,
}

impl<'a> Place<'a> {
    pub(super) fn new(
        kubernetes: &'a dyn Kubernetes,
        inventory: &'a Inventory,
        objects: &'a PoolObjects,
    ) -> Self {
        Self { kubernetes, inventory, objects, aws_cluster: OnceCell::new() }
    }

    /// The spec of the pool.
    pub(super) fn spec(&self) -> &'a ASGMachinePoolSpec {
        &self.objects.pool.spec
    }

    /// Whether the group exists or existed: what AWS accepted then is not questioned.
    pub(super) fn is_created(&self) -> bool {
        self.spec().provider_id.is_some()
    }

    /// The place for a message: `region eu-west-1 of account 123456789012`.
    pub(super) async fn name(&self) -> String {
        let region = &self.spec().region;
        match self.inventory.account().await {
            Ok(account) => format!("region {region} of account {account}"),
            Err(_) => format!("region {region} of the account of the controller's AWS credentials"),
        }
    }

    /// What determines the place, as the end of a remedy; or that it is not the place of the Cluster.
    pub(super) async fn origin(&self) -> String {
        // Only the advice depends on it.
        let cluster = self.aws_cluster().await.ok().flatten();
        let elsewhere = cluster.and_then(|cluster| {
            let region = cluster.region.as_ref().filter(|region| **region != self.spec().region)?;
            Some(format!(
                "AWSCluster {} is in region {region}: create the pool again with this spec.region",
                cluster.name
            ))
        });
        elsewhere.unwrap_or_else(|| {
            "spec.region and the AWS credentials of the controller determine region and account".to_owned()
        })
    }

    /// The `AWSCluster` of the Cluster, if it has one. Read once.
    ///
    /// # Errors
    /// The read failed.
    pub(super) async fn aws_cluster(&self) -> Result<Option<&AwsCluster>> {
        self.aws_cluster.get_or_try_init(|| self.read_aws_cluster()).await.map(Option::as_ref)
    }

    async fn read_aws_cluster(&self) -> Result<Option<AwsCluster>> {
        let cluster = self.objects.cluster.as_deref();
        let reference = cluster.and_then(|cluster| Some((cluster, cluster.aws_cluster()?)));
        let Some((cluster, reference)) = reference else { return Ok(None) };
        let key = ObjectKey::new(cluster.namespace().unwrap_or_default(), &reference.name);
        let spec = self.kubernetes.referenced_spec(&reference.api_group, &reference.kind, &key).await?;
        Ok(spec.map(|spec| AwsCluster {
            name: reference.name.clone(),
            region: region_of_aws_cluster(&spec),
            vpc: vpc_of_aws_cluster(&spec),
        }))
    }
}
