//! The cloud port: what the provider reads and writes in one account and region. The AWS adapter and the simulation
//! implement it; everything above goes through the gateway, which counts, throttles and guards each call.

use async_trait::async_trait;

use crate::{
    CloudError, Group, Image, InstanceFacts, InstanceRefresh, InstanceType, LaunchTemplate,
    LaunchTemplateVersion, LifecycleHook, Result, RunningInstance, ScalingActivity, SecurityGroup, Selector,
    Subnet, SubnetAddresses, TypeOffering, Write, Written,
};

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items of this page, in AWS's order.
    pub items: Vec<T>,
    /// The token of the next page; pages may be short although more follow. The last page has none, or an empty one.
    pub next_token: Option<String>,
}

impl<T> Page<T> {
    /// A listing that fits one page.
    #[must_use]
    pub fn last(items: Vec<T>) -> Self {
        Self { items, next_token: None }
    }
}

/// AWS's reply to a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReply {
    /// What was done.
    pub written: Written,
    /// AWS's request ID, for the log.
    pub request_id: Option<String>,
}

/// One account and region of the cloud.
///
/// One method call is one AWS call: nothing here retries, pages or caches, so that the gateway can count and pace every
/// call. A resource that does not exist is `None` or absent from the list where AWS itself answers so for a read;
/// everything else is a [`crate::CloudError`] with its class.
#[async_trait]
pub trait Cloud: Send + Sync + 'static {
    /// AWS rejected a call for its credentials or permissions: credentials that can be replaced are, before a later call.
    fn reject_credentials(&self) {}

    /// The account that the credentials belong to (STS `GetCallerIdentity`), 12 digits.
    async fn account(&self) -> Result<String>;

    /// Carries out one change.
    async fn write(&self, write: &Write) -> Result<WriteReply>;

    /// `DescribeAutoScalingGroups` for at most 100 names with `MaxRecords` 100. Unknown names are absent.
    async fn groups(&self, names: &[String], token: Option<String>) -> Result<Page<Group>>;

    /// `DescribeLifecycleHooks` of one group (not paged).
    async fn lifecycle_hooks(&self, group: &str) -> Result<Vec<LifecycleHook>>;

    /// `DescribeScalingActivities` of one group with `MaxRecords` 50: those in progress, then the others, newest first.
    async fn scaling_activities(&self, group: &str, token: Option<String>) -> Result<Page<ScalingActivity>>;

    /// `DescribeInstanceRefreshes` of one group, newest first.
    async fn instance_refreshes(&self, group: &str, token: Option<String>) -> Result<Page<InstanceRefresh>>;

    /// `DescribeInstances` with filter `instance-id`, at most 200 ids. Unknown ids are absent.
    async fn instances(&self, ids: &[String], token: Option<String>) -> Result<Page<InstanceFacts>>;

    /// `DescribeInstanceTypes` with filter `instance-type`, at most 200 names. Types that the region does not offer are
    /// absent.
    async fn instance_types(&self, names: &[String], token: Option<String>) -> Result<Page<InstanceType>>;

    /// `DescribeLaunchTemplates` by name.
    async fn launch_template(&self, name: &str) -> Result<Option<LaunchTemplate>>;

    /// `DescribeLaunchTemplates` of all that have a tag with this key, at most 200 a page.
    async fn launch_templates(&self, tag_key: &str, token: Option<String>) -> Result<Page<LaunchTemplate>>;

    /// `DescribeLaunchTemplateVersions` with version `$Latest` and without a template: the latest version of each launch
    /// template of the account by the ID of its template, at most 200 a page, without their user data.
    async fn latest_versions(&self, token: Option<String>) -> Result<Page<(String, LaunchTemplateVersion)>>;

    /// `DescribeLaunchTemplateVersions` of a template, all versions, without their user data.
    async fn launch_template_versions(
        &self,
        id: &str,
        token: Option<String>,
    ) -> Result<Page<LaunchTemplateVersion>>;

    /// `DescribeSubnets` by ids or tag filters.
    async fn subnets(&self, selector: &Selector, token: Option<String>) -> Result<Page<Subnet>>;

    /// `DescribeSecurityGroups` by ids, tag filters or name.
    async fn security_groups(
        &self,
        selector: &Selector,
        token: Option<String>,
    ) -> Result<Page<SecurityGroup>>;

    /// `DescribeSecurityGroupVpcAssociations` of one security group: whether it is associated with a VPC other than its
    /// own ("Associate security groups with multiple VPCs" of the VPC user guide).
    async fn is_associated(&self, security_group: &str, vpc: &str) -> Result<bool>;

    /// `DescribeImages` of one image.
    async fn image(&self, id: &str) -> Result<Option<Image>>;

    /// `DescribeSnapshots` of one snapshot: its `VolumeSize`, the least that a volume of it may have. An image may be shared
    /// without its snapshots, which then do not exist.
    async fn snapshot_gib(&self, id: &str) -> Result<Option<i32>>;

    /// SSM `GetParameter`: the value of a public or own parameter that holds an image id.
    async fn parameter(&self, name: &str) -> Result<Option<String>>;

    /// `DescribeInstanceTypeOfferings` of all zones with filter `instance-type`, at most 200 names. Only the Runtime
    /// Extension calls it.
    async fn type_offerings(&self, _names: &[String], _token: Option<String>) -> Result<Page<TypeOffering>> {
        Err(CloudError::unsendable("DescribeInstanceTypeOfferings", "this cloud does not list offerings"))
    }

    /// The free addresses by `DescribeSubnets`. Only the Runtime Extension calls it.
    async fn subnet_addresses(
        &self,
        _selector: &Selector,
        _token: Option<String>,
    ) -> Result<Page<SubnetAddresses>> {
        Err(CloudError::unsendable("DescribeSubnets", "this cloud does not count addresses"))
    }

    /// `DescribeInstances` of all instances that are pending or running, except those on Dedicated Hosts, which no quota for
    /// vCPUs counts. Only the Runtime Extension calls it.
    async fn running_instances(&self, _token: Option<String>) -> Result<Page<RunningInstance>> {
        Err(CloudError::unsendable("DescribeInstances", "this cloud does not list all instances"))
    }

    /// Service Quotas `GetServiceQuota` of the service `ec2`: the value that applies to the account, rounded down. Only the
    /// Runtime Extension calls it.
    async fn ec2_quota(&self, _code: &str) -> Result<i64> {
        Err(CloudError::unsendable("GetServiceQuota", "this cloud has no quotas"))
    }
}
