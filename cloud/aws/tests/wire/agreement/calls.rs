//! The calls of both ports, one strategy for each operation of AWS.

use std::{fmt::Debug, time::Duration};

use capasg_cloud::{Cloud, CloudError, Queue, Selector, Write};
use capasg_fake_aws::Service;
use proptest::{collection::vec, option, prelude::*};

use super::contents::{like, tags, text, texts};
use crate::fixtures::every_write;

const PORT: &str = include_str!("../../../../src/port.rs");
const QUEUE_PORT: &str = include_str!("../../../../src/queue.rs");

/// A page's token.
type Token = Option<String>;

/// A call through one of the ports.
#[derive(Debug, Clone)]
pub enum Call {
    Write(Write),
    Account,
    Groups(Vec<String>, Token),
    LifecycleHooks(String),
    ScalingActivities(String, Token),
    InstanceRefreshes(String, Token),
    Instances(Vec<String>, Token),
    InstanceTypes(Vec<String>, Token),
    LaunchTemplate(String),
    LaunchTemplates(String, Token),
    LatestVersions(Token),
    LaunchTemplateVersions(String, Token),
    Subnets(Selector, Token),
    SecurityGroups(Selector, Token),
    IsAssociated(String, String),
    Image(String),
    SnapshotGib(String),
    Parameter(String),
    QueueUrl(String),
    Receive(String, Duration, Duration),
    Delete(String, Vec<String>),
}

impl Call {
    /// Makes the call, and shows what it returns.
    pub async fn make(&self, cloud: &dyn Cloud, queue: &dyn Queue) -> Result<String, CloudError> {
        Ok(match self {
            Self::Write(write) => shown(&cloud.write(write).await?.written),
            Self::Account => shown(&cloud.account().await?),
            Self::Groups(names, token) => shown(&cloud.groups(names, token.clone()).await?),
            Self::LifecycleHooks(group) => shown(&cloud.lifecycle_hooks(group).await?),
            Self::ScalingActivities(group, token) => {
                shown(&cloud.scaling_activities(group, token.clone()).await?)
            }
            Self::InstanceRefreshes(group, token) => {
                shown(&cloud.instance_refreshes(group, token.clone()).await?)
            }
            Self::Instances(ids, token) => shown(&cloud.instances(ids, token.clone()).await?),
            Self::InstanceTypes(names, token) => shown(&cloud.instance_types(names, token.clone()).await?),
            Self::LaunchTemplate(name) => shown(&cloud.launch_template(name).await?),
            Self::LaunchTemplates(key, token) => shown(&cloud.launch_templates(key, token.clone()).await?),
            Self::LatestVersions(token) => shown(&cloud.latest_versions(token.clone()).await?),
            Self::LaunchTemplateVersions(id, token) => {
                shown(&cloud.launch_template_versions(id, token.clone()).await?)
            }
            Self::Subnets(selector, token) => shown(&cloud.subnets(selector, token.clone()).await?),
            Self::SecurityGroups(selector, token) => {
                shown(&cloud.security_groups(selector, token.clone()).await?)
            }
            Self::IsAssociated(group, vpc) => shown(&cloud.is_associated(group, vpc).await?),
            Self::Image(id) => shown(&cloud.image(id).await?),
            Self::SnapshotGib(id) => shown(&cloud.snapshot_gib(id).await?),
            Self::Parameter(name) => shown(&cloud.parameter(name).await?),
            Self::QueueUrl(name) => shown(&queue.url(name).await?),
            Self::Receive(url, wait, hidden) => {
                let messages = queue.receive(url, *wait, *hidden).await?.into_iter();
                // A message does not show its receipt and body itself.
                let whole = messages.map(|own| (own.id, own.receipt, own.receive_count, own.body));
                shown(&whole.collect::<Vec<_>>())
            }
            Self::Delete(url, receipts) => {
                queue.delete(url, receipts).await?;
                "deleted".to_owned()
            }
        })
    }
}

fn shown(value: &impl Debug) -> String {
    format!("{value:#?}")
}

/// An operation of AWS, and the calls that send it.
pub struct Operation {
    pub service: Service,
    pub name: &'static str,
    pub calls: BoxedStrategy<Call>,
}

/// The reads that only the Runtime Extension makes, which the simulation of the manager does not have:
/// `DescribeInstanceTypeOfferings`, `DescribeSubnets` for free addresses, `DescribeInstances` for vCPUs in use, and
/// `GetServiceQuota`.
const OF_THE_EXTENSION: usize = 4;

/// Each operation that the ports send for the manager.
pub fn every_operation() -> Vec<Operation> {
    let (reads, queue_calls) = (reads(), queue_calls());
    let methods = |port: &str| port.matches("    async fn ").count();
    // All writes are one method.
    assert_eq!(reads.len() + 1 + OF_THE_EXTENSION, methods(PORT), "a method of the port is not called here");
    assert_eq!(queue_calls.len(), methods(QUEUE_PORT), "a method of the port is not called here");
    let writes = every_write().into_iter().map(|write| {
        let service = if write.group().is_some() { Service::AutoScaling } else { Service::Ec2 };
        of(service, write.api(), like(&write).prop_map(Call::Write))
    });
    writes.chain(reads).chain(queue_calls).collect()
}

fn of(service: Service, name: &'static str, calls: impl Strategy<Value = Call> + 'static) -> Operation {
    Operation { service, name, calls: calls.boxed() }
}

fn reads() -> Vec<Operation> {
    use Service::{AutoScaling, Ec2, Ssm, Sts};
    let paged = || (text(), token());
    let named = || (vec(text(), 0..12), token());
    let selected = || (selector(), token());
    vec![
        of(Sts, "GetCallerIdentity", Just(Call::Account)),
        of(
            AutoScaling,
            "DescribeAutoScalingGroups",
            named().prop_map(|(own, token)| Call::Groups(own, token)),
        ),
        of(AutoScaling, "DescribeLifecycleHooks", text().prop_map(Call::LifecycleHooks)),
        of(
            AutoScaling,
            "DescribeScalingActivities",
            paged().prop_map(|(group, token)| Call::ScalingActivities(group, token)),
        ),
        of(
            AutoScaling,
            "DescribeInstanceRefreshes",
            paged().prop_map(|(group, token)| Call::InstanceRefreshes(group, token)),
        ),
        of(Ec2, "DescribeInstances", named().prop_map(|(ids, token)| Call::Instances(ids, token))),
        of(Ec2, "DescribeInstanceTypes", named().prop_map(|(own, token)| Call::InstanceTypes(own, token))),
        of(Ec2, "DescribeLaunchTemplates", text().prop_map(Call::LaunchTemplate)),
        of(
            Ec2,
            "DescribeLaunchTemplates",
            paged().prop_map(|(key, token)| Call::LaunchTemplates(key, token)),
        ),
        of(Ec2, "DescribeLaunchTemplateVersions", token().prop_map(Call::LatestVersions)),
        of(
            Ec2,
            "DescribeLaunchTemplateVersions",
            paged().prop_map(|(id, token)| Call::LaunchTemplateVersions(id, token)),
        ),
        of(Ec2, "DescribeSubnets", selected().prop_map(|(own, token)| Call::Subnets(own, token))),
        of(
            Ec2,
            "DescribeSecurityGroups",
            selected().prop_map(|(own, token)| Call::SecurityGroups(own, token)),
        ),
        of(
            Ec2,
            "DescribeSecurityGroupVpcAssociations",
            (text(), text()).prop_map(|(group, vpc)| Call::IsAssociated(group, vpc)),
        ),
        of(Ec2, "DescribeImages", text().prop_map(Call::Image)),
        of(Ec2, "DescribeSnapshots", text().prop_map(Call::SnapshotGib)),
        of(Ssm, "GetParameter", text().prop_map(Call::Parameter)),
    ]
}

fn queue_calls() -> Vec<Operation> {
    let seconds = |most: u64| (0..=most).prop_map(Duration::from_secs);
    let receive = (text(), seconds(20), seconds(43_200));
    let delete = (text(), vec(text(), 0..=10));
    vec![
        of(Service::Sqs, "GetQueueUrl", text().prop_map(Call::QueueUrl)),
        of(
            Service::Sqs,
            "ReceiveMessage",
            receive.prop_map(|(url, wait, hidden)| Call::Receive(url, wait, hidden)),
        ),
        of(
            Service::Sqs,
            "DeleteMessageBatch",
            delete.prop_map(|(url, receipts)| Call::Delete(url, receipts)),
        ),
    ]
}

fn token() -> BoxedStrategy<Token> {
    option::of(text()).boxed()
}

fn selector() -> BoxedStrategy<Selector> {
    let any_value = text().prop_map(|key| Selector::Tags([(key, "*".to_owned())].into()));
    prop_oneof![
        texts().prop_map(Selector::Ids),
        tags().prop_map(Selector::Tags),
        any_value,
        text().prop_map(Selector::Name),
    ]
    .boxed()
}
