//! Instances as EC2 describes them.

use aws_sdk_ec2::{
    Client,
    types::{
        CpuOptions, Instance, InstanceIpv6Address, InstanceLifecycleType, InstanceNetworkInterface,
        InstanceStateName, Placement, Reservation, Tenancy,
    },
};
use capasg_cloud::{InstanceFacts, InstanceState, Page, PurchaseOption, Result, RunningInstance};

use super::filters::{filter, tag_map};
use crate::{call::call, time::instant};

/// Reads in pages, since unpaged calls draw on a smaller bucket ("Request
/// throttling for the Amazon EC2 API").
const MAX_RESULTS: i32 = 1000;

/// `DescribeInstances` by filter: an unknown id is absent instead of failing the call.
pub(crate) async fn describe(
    client: &Client,
    ids: &[String],
    token: Option<String>,
) -> Result<Page<InstanceFacts>> {
    if ids.is_empty() {
        return Ok(Page::last(Vec::new()));
    }
    let request = client
        .describe_instances()
        .filters(filter("instance-id", ids))
        .max_results(MAX_RESULTS)
        .set_next_token(token);
    let reply = call("DescribeInstances", request.send()).await?;
    let instances = reply.reservations().iter().flat_map(Reservation::instances);
    Ok(Page { items: instances.filter_map(facts).collect(), next_token: reply.next_token.clone() })
}

/// `DescribeInstances` of all that count towards quotas for vCPUs.
pub(crate) async fn running(client: &Client, token: Option<String>) -> Result<Page<RunningInstance>> {
    let states = ["pending", "running"].map(str::to_owned);
    let request = client
        .describe_instances()
        .filters(filter("instance-state-name", &states))
        .max_results(MAX_RESULTS)
        .set_next_token(token);
    let reply = call("DescribeInstances", request.send()).await?;
    let instances = reply.reservations().iter().flat_map(Reservation::instances);
    Ok(Page { items: instances.filter_map(counted).collect(), next_token: reply.next_token.clone() })
}

/// Dedicated Hosts have quotas of their own.
fn counted(instance: &Instance) -> Option<RunningInstance> {
    let on_host = instance.placement().and_then(Placement::tenancy) == Some(&Tenancy::Host);
    let vcpus = instance.cpu_options().and_then(vcpus);
    (!on_host).then_some(RunningInstance {
        instance_type: instance.instance_type()?.as_str().to_owned(),
        purchase: purchase(instance.instance_lifecycle()),
        vcpus: vcpus.unwrap_or_default(),
    })
}

fn vcpus(options: &CpuOptions) -> Option<i64> {
    Some(i64::from(options.core_count()?) * i64::from(options.threads_per_core()?))
}

fn facts(instance: &Instance) -> Option<InstanceFacts> {
    // EC2 gives empty strings for addresses that an instance does not have, or no longer has.
    let text = |value: Option<&str>| value.filter(|value| !value.is_empty()).map(str::to_owned);
    let interfaces = instance.network_interfaces().iter().flat_map(InstanceNetworkInterface::ipv6_addresses);
    let ipv6 = interfaces.map(InstanceIpv6Address::ipv6_address).chain([instance.ipv6_address()]);
    Some(InstanceFacts {
        id: instance.instance_id()?.to_owned(),
        state: state(instance.state().and_then(|state| state.name())),
        private_ip: text(instance.private_ip_address()),
        ipv6: ipv6.filter_map(text).collect(),
        private_dns: text(instance.private_dns_name()),
        public_ip: text(instance.public_ip_address()),
        public_dns: text(instance.public_dns_name()),
        purchase: purchase(instance.instance_lifecycle()),
        launched_at: instant(instance.launch_time()),
        tags: tag_map(instance.tags()),
    })
}

/// An unknown state must not count as terminated: a terminated instance is given up for good.
fn state(name: Option<&InstanceStateName>) -> InstanceState {
    match name {
        Some(InstanceStateName::Pending) => InstanceState::Pending,
        Some(InstanceStateName::ShuttingDown | InstanceStateName::Terminated) => InstanceState::Terminated,
        Some(InstanceStateName::Stopping | InstanceStateName::Stopped) => InstanceState::Stopped,
        _ => InstanceState::Running,
    }
}

fn purchase(lifecycle: Option<&InstanceLifecycleType>) -> PurchaseOption {
    match lifecycle {
        None => PurchaseOption::OnDemand,
        Some(InstanceLifecycleType::Spot) => PurchaseOption::Spot,
        Some(_) => PurchaseOption::Scheduled,
    }
}
