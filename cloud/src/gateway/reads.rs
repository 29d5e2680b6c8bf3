//! The reads of the port with all pages followed, each page rate-limited and counted as a call of its own.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use futures::future::BoxFuture;

use crate::{
    CloudError, Group, Image, InstanceFacts, InstanceRefresh, InstanceType, LaunchTemplate,
    LaunchTemplateVersion, LifecycleHook, Page, Priority, Result, RunningInstance, ScalingActivity,
    SecurityGroup, Selector, Subnet, SubnetAddresses, TypeOffering,
    gateway::{Gateway, Permit},
};

pub(crate) const DESCRIBE_GROUPS: &str = "DescribeAutoScalingGroups";
pub(crate) const DESCRIBE_INSTANCES: &str = "DescribeInstances";

/// A listing with more pages than this does not end: 1000 pages of one item are odd, but allowed.
const MOST_PAGES: usize = 1000;

/// At most so many scaling activities are read: AWS keeps those of six weeks. A group has at most some hundred in progress.
const MOST_ACTIVITIES: usize = 1000;

/// The items of all pages, or of those before the page that failed.
pub(crate) struct Listing<T> {
    /// The items of the pages that arrived.
    pub items: Vec<T>,
    /// Why the listing is not complete: absence from it means nothing then.
    pub failed: Option<CloudError>,
}

impl<T> Listing<T> {
    fn complete(self) -> Result<Vec<T>> {
        self.failed.map_or(Ok(self.items), Err)
    }
}

impl Gateway {
    /// The account of the credentials, 12 digits.
    ///
    /// # Errors
    /// As the port.
    pub async fn account(&self) -> Result<String> {
        let permit = self.permit("GetCallerIdentity", Priority::Read).await;
        self.read(permit, self.cloud.account()).await
    }

    /// Groups by at most 100 names; unknown ones are absent.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn groups(&self, names: &[String]) -> Result<Vec<Group>> {
        let permit = self.permit(DESCRIBE_GROUPS, Priority::Read).await;
        self.list_groups(permit, names).await.complete()
    }

    pub(crate) async fn list_groups(&self, permit: Permit, names: &[String]) -> Listing<Group> {
        self.pages(permit, |token| self.cloud.groups(names, token)).await
    }

    /// The hooks of a group.
    ///
    /// # Errors
    /// As the port.
    pub async fn lifecycle_hooks(&self, group: &str) -> Result<Vec<LifecycleHook>> {
        let permit = self.permit("DescribeLifecycleHooks", Priority::Read).await;
        self.read(permit, self.cloud.lifecycle_hooks(group)).await
    }

    /// The newest scaling activities of a group, newest first: as many pages as are `enough`. AWS lists those in progress before,
    /// which may fill pages: many instances are drained at the same time.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn scaling_activities(
        &self,
        group: &str,
        enough: impl Fn(&[ScalingActivity]) -> bool,
    ) -> Result<Vec<ScalingActivity>> {
        let permit = self.permit("DescribeScalingActivities", Priority::Read).await;
        let last = |listed: &[ScalingActivity]| listed.len() >= MOST_ACTIVITIES || enough(listed);
        let fetch = |token| self.cloud.scaling_activities(group, token);
        let mut activities = self.pages_until(permit, fetch, last).await.complete()?;
        activities.sort_by_key(|activity| Reverse(activity.started_at));
        Ok(activities)
    }

    /// The instance refreshes of a group, newest first.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn instance_refreshes(&self, group: &str) -> Result<Vec<InstanceRefresh>> {
        let permit = self.permit("DescribeInstanceRefreshes", Priority::Read).await;
        self.pages(permit, |token| self.cloud.instance_refreshes(group, token)).await.complete()
    }

    /// EC2 instances by at most 200 ids; unknown ones are absent.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn instances(&self, ids: &[String]) -> Result<Vec<InstanceFacts>> {
        let permit = self.permit(DESCRIBE_INSTANCES, Priority::Read).await;
        self.list_instances(permit, ids).await.complete()
    }

    pub(crate) async fn list_instances(&self, permit: Permit, ids: &[String]) -> Listing<InstanceFacts> {
        self.pages(permit, |token| self.cloud.instances(ids, token)).await
    }

    /// Instance types by at most 200 names; those that the region does not offer are absent.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn instance_types(&self, names: &[String]) -> Result<Vec<InstanceType>> {
        let permit = self.permit("DescribeInstanceTypes", Priority::Read).await;
        self.pages(permit, |token| self.cloud.instance_types(names, token)).await.complete()
    }

    /// A launch template by name.
    ///
    /// # Errors
    /// As the port.
    pub async fn launch_template(&self, name: &str) -> Result<Option<LaunchTemplate>> {
        let permit = self.permit("DescribeLaunchTemplates", Priority::Read).await;
        self.read(permit, self.cloud.launch_template(name)).await
    }

    /// The launch templates that have a tag with this key.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn launch_templates(&self, tag_key: &str) -> Result<Vec<LaunchTemplate>> {
        let permit = self.permit("DescribeLaunchTemplates", Priority::Read).await;
        self.pages(permit, |token| self.cloud.launch_templates(tag_key, token)).await.complete()
    }

    /// The latest versions of launch templates by the ID of their template. AWS lists those of the whole account: no more
    /// pages are followed than reads of each of the `wanted` templates would cost, so that some may be missing.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn latest_versions(
        &self,
        mut wanted: BTreeSet<String>,
    ) -> Result<BTreeMap<String, LaunchTemplateVersion>> {
        let (mut found, mut token) = (BTreeMap::new(), None);
        for _ in 0..wanted.len() {
            let permit = self.permit("DescribeLaunchTemplateVersions", Priority::Read).await;
            let page = self.read(permit, self.cloud.latest_versions(token)).await?;
            found.extend(page.items.into_iter().filter(|(id, _)| wanted.remove(id)));
            token = page.next_token.filter(|token| !token.is_empty());
            if wanted.is_empty() || token.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// All versions of a launch template.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn launch_template_versions(&self, id: &str) -> Result<Vec<LaunchTemplateVersion>> {
        let permit = self.permit("DescribeLaunchTemplateVersions", Priority::Read).await;
        self.pages(permit, |token| self.cloud.launch_template_versions(id, token)).await.complete()
    }

    /// Subnets by a selector.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn subnets(&self, selector: &Selector) -> Result<Vec<Subnet>> {
        let permit = self.permit("DescribeSubnets", Priority::Read).await;
        self.pages(permit, |token| self.cloud.subnets(selector, token)).await.complete()
    }

    /// Security groups by a selector.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn security_groups(&self, selector: &Selector) -> Result<Vec<SecurityGroup>> {
        let permit = self.permit("DescribeSecurityGroups", Priority::Read).await;
        self.pages(permit, |token| self.cloud.security_groups(selector, token)).await.complete()
    }

    /// Whether a security group is associated with a VPC other than its own.
    ///
    /// # Errors
    /// As the port.
    pub async fn is_associated(&self, security_group: &str, vpc: &str) -> Result<bool> {
        let permit = self.permit("DescribeSecurityGroupVpcAssociations", Priority::Read).await;
        self.read(permit, self.cloud.is_associated(security_group, vpc)).await
    }

    /// An image by id.
    ///
    /// # Errors
    /// As the port.
    pub async fn image(&self, id: &str) -> Result<Option<Image>> {
        let permit = self.permit("DescribeImages", Priority::Read).await;
        self.read(permit, self.cloud.image(id)).await
    }

    /// The size of a snapshot in GiB.
    ///
    /// # Errors
    /// As the port.
    pub async fn snapshot_gib(&self, id: &str) -> Result<Option<i32>> {
        let permit = self.permit("DescribeSnapshots", Priority::Read).await;
        self.read(permit, self.cloud.snapshot_gib(id)).await
    }

    /// The image ID that a parameter holds.
    ///
    /// # Errors
    /// [`crate::ErrorClass::Invalid`] if it holds anything else; else as the port.
    pub async fn parameter(&self, name: &str) -> Result<Option<String>> {
        let api = "GetParameter";
        let permit = self.permit(api, Priority::Read).await;
        let value = self.read(permit, self.cloud.parameter(name)).await?;
        value.map(|value| image_id(api, name, &value)).transpose()
    }

    /// The zones that offer instance types, by at most 200 names.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn type_offerings(&self, names: &[String]) -> Result<Vec<TypeOffering>> {
        let permit = self.permit("DescribeInstanceTypeOfferings", Priority::Read).await;
        self.pages(permit, |token| self.cloud.type_offerings(names, token)).await.complete()
    }

    /// The free addresses of subnets by a selector.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn subnet_addresses(&self, selector: &Selector) -> Result<Vec<SubnetAddresses>> {
        let permit = self.permit("DescribeSubnets", Priority::Read).await;
        self.pages(permit, |token| self.cloud.subnet_addresses(selector, token)).await.complete()
    }

    /// All instances that are pending or running.
    ///
    /// # Errors
    /// If a page failed.
    pub async fn running_instances(&self) -> Result<Vec<RunningInstance>> {
        let permit = self.permit(DESCRIBE_INSTANCES, Priority::Read).await;
        self.pages(permit, |token| self.cloud.running_instances(token)).await.complete()
    }

    /// The value of a quota of EC2.
    ///
    /// # Errors
    /// As the port.
    pub async fn ec2_quota(&self, code: &str) -> Result<i64> {
        let permit = self.permit("GetServiceQuota", Priority::Read).await;
        self.read(permit, self.cloud.ec2_quota(code)).await
    }

    /// Follows the token until there is none: pages may be short or empty although more follow.
    async fn pages<'a, T>(
        &self,
        first: Permit,
        fetch: impl Fn(Option<String>) -> BoxFuture<'a, Result<Page<T>>>,
    ) -> Listing<T> {
        self.pages_until(first, fetch, |_| false).await
    }

    /// Follows the token until there is none, or what is listed is enough.
    async fn pages_until<'a, T>(
        &self,
        first: Permit,
        fetch: impl Fn(Option<String>) -> BoxFuture<'a, Result<Page<T>>>,
        enough: impl Fn(&[T]) -> bool,
    ) -> Listing<T> {
        let api = first.0;
        let mut listing = Listing { items: Vec::new(), failed: None };
        let (mut permit, mut token) = (first, None);
        for _ in 0..MOST_PAGES {
            match self.read(permit, fetch(token.clone())).await {
                Ok(page) => {
                    listing.items.extend(page.items);
                    let next = page.next_token.filter(|token| !token.is_empty());
                    if next.is_none() || enough(&listing.items) {
                        return listing;
                    }
                    if next == token {
                        break;
                    }
                    token = next;
                }
                Err(error) => {
                    listing.failed = Some(error);
                    return listing;
                }
            }
            permit = self.permit(api, Priority::Read).await;
        }
        let message =
            format!("AWS returned the same pagination token twice, or more than {MOST_PAGES} pages");
        listing.failed = Some(CloudError::unanswered(api, "EndlessPages", &message));
        listing
    }
}

/// The image ID in the value of a parameter. The error does not show another value: it may be anything, also a secret.
fn image_id(api: &'static str, parameter: &str, value: &str) -> Result<String> {
    let id = value.trim();
    let is_id =
        |rest: &str| (1..=60).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric());
    if id.strip_prefix("ami-").is_some_and(is_id) {
        return Ok(id.to_owned());
    }
    let message = format!("the value of SSM parameter {parameter} is not an image ID (ami-...)");
    Err(CloudError::answered(api, 400, "NoImageId", &message))
}
