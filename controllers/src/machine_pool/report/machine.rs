//! The status of an ASGMachine, from what the group, EC2 and the pool's decisions say about its instance (D6). Pure.

use capasg_api::{
    ASGMachine, ASGMachineStatus,
    capi::pause_state,
    conditions::{self, Finding, Status, paused},
    machine::{AddressType, MachineAddress, PurchaseOption},
    names::annotations,
    pool::RolloutType,
    reasons::{deleting, instance_ready, termination_pending, up_to_date},
};
use capasg_cloud::{HealthStatus, InstanceFacts, InstanceState, LifecycleState, TerminationCause};
use chrono::{DateTime, Utc};
use kube::ResourceExt;

use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::termination_cause::is_by_aws;
use crate::machine_pool::model::{Desired, Observed, OutdatedReason, PoolInstance, PoolObjects};
use crate::machine_pool::report::input::Input;
use crate::machine_pool::report::termination;

/// What `status.addresses` accepts.
const MAX_ADDRESSES: usize = 32;

/// The desired status; what is unknown stays as it was.
#[must_use]
pub fn status(
    machine: &ASGMachine,
    observed: &Observed,
    input: &Input<'_>,
    memory: &PoolMemory,
    now: DateTime<Utc>,
) -> ASGMachineStatus {
    let generation = machine.metadata.generation.unwrap_or_default();
    let mut status = machine.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    let id = &machine.spec.instance_id;
    let instance = observed.instances.get(id);
    if let Some(instance) = instance.and_then(|m| m.listed.as_ref()) {
        status.failure_domain = Some(instance.zone.clone());
        status.instance_type.clone_from(&instance.instance_type);
        status.launch_template_version = instance.template.as_ref().map(|(_, version)| *version);
        status.lifecycle_state = Some(instance.lifecycle.as_str().to_owned());
        let healthy = instance.health == HealthStatus::Healthy;
        status.health_status = Some(if healthy { "Healthy" } else { "Unhealthy" }.to_owned());
    }
    if let Some(facts) = instance.and_then(|m| m.ec2.as_ref()).and_then(|f| f.facts.as_ref()) {
        if facts.state != InstanceState::Terminated {
            status.addresses = addresses(facts);
        }
        status.launch_time = facts.launched_at.or(status.launch_time);
        let spot = facts.purchase == capasg_cloud::PurchaseOption::Spot;
        status.interruptible = spot;
        status.purchase_option = Some(if spot { PurchaseOption::Spot } else { PurchaseOption::OnDemand });
    }
    // Once true it stays true, as core expects.
    status.initialization.provisioned |= instance.is_some_and(runs);
    let is_deleting = machine.metadata.deletion_timestamp.is_some();
    for finding in [
        instance_finding(instance),
        termination_finding(&status, id, instance, memory),
        up_to_date_finding(input, id),
        Finding::plain(
            conditions::DELETING,
            is_deleting,
            if is_deleting { deleting::DELETING } else { deleting::NOT_DELETING },
        ),
        paused(pause_state(input.objects.cluster.as_deref(), machine.annotations()), "ASGMachine"),
    ] {
        conditions::set(&mut status.conditions, finding, generation, now);
    }
    conditions::set_ready(&mut status.conditions, conditions::MACHINE_SUMMARY, generation, now);
    status
}

/// The status while the Cluster or the pool is paused (F4).
#[must_use]
pub fn paused_status(machine: &ASGMachine, objects: &PoolObjects, now: DateTime<Utc>) -> ASGMachineStatus {
    let generation = machine.metadata.generation.unwrap_or_default();
    let mut status = machine.status.clone().unwrap_or_default();
    let own = pause_state(objects.cluster.as_deref(), machine.annotations());
    // One that is not paused by itself is paused with its pool, which the condition names.
    let cause =
        if own.is_paused() { paused(own, "ASGMachine") } else { paused(objects.pause, "ASGMachinePool") };
    conditions::set(&mut status.conditions, cause, generation, now);
    conditions::complete(&mut status.conditions, conditions::MACHINE, generation, now);
    status
}

fn runs(instance: &PoolInstance) -> bool {
    let running = instance
        .ec2
        .as_ref()
        .and_then(|f| f.facts.as_ref())
        .is_some_and(|facts| facts.state == InstanceState::Running);
    running || matches!(instance.lifecycle(), Some(LifecycleState::InService | LifecycleState::Standby))
}

/// IPv6 addresses are internal ones, as the cloud controller of AWS reports them for Nodes. They come last, since they may
/// be more than the status accepts.
fn addresses(facts: &InstanceFacts) -> Vec<MachineAddress> {
    let named = [
        (AddressType::InternalIp, &facts.private_ip),
        (AddressType::InternalDns, &facts.private_dns),
        (AddressType::ExternalIp, &facts.public_ip),
        (AddressType::ExternalDns, &facts.public_dns),
    ];
    let named = named.into_iter().filter_map(|(kind, address)| Some((kind, address.as_ref()?)));
    let ipv6 = facts.ipv6.iter().map(|address| (AddressType::InternalIp, address));
    let known = named.chain(ipv6).filter(|(_, address)| !address.is_empty());
    let known =
        known.map(|(address_type, address)| MachineAddress { address_type, address: address.clone() });
    known.take(MAX_ADDRESSES).collect()
}

fn instance_finding(instance: Option<&PoolInstance>) -> Finding {
    let finding = |status: bool, reason, message: &'static str| {
        Finding::new(conditions::INSTANCE_READY, status, reason, message)
    };
    let Some(instance) = instance.and_then(|m| m.listed.as_ref()) else {
        return finding(
            false,
            instance_ready::NOT_IN_GROUP,
            "the instance is no longer in its Auto Scaling group",
        );
    };
    match &instance.lifecycle {
        LifecycleState::Pending => finding(false, instance_ready::PENDING, "the instance is starting"),
        state if state.is_terminating() => {
            finding(false, instance_ready::TERMINATING, "the instance is terminating")
        }
        LifecycleState::Retained => finding(
            false,
            instance_ready::TERMINATING,
            "the Auto Scaling group replaced the instance and retains it (Terminating:Retained). Delete the Machine to \
             drain its Node and to terminate the instance",
        ),
        _ if instance.health == HealthStatus::Unhealthy => finding(
            false,
            instance_ready::UNHEALTHY,
            "the Auto Scaling group reports the instance as unhealthy",
        ),
        _ => finding(true, instance_ready::INSTANCE_READY, ""),
    }
}

/// A termination that AWS started. A cause that was reported stays, since the group shows it only for a time.
fn termination_finding(
    status: &ASGMachineStatus,
    id: &str,
    instance: Option<&PoolInstance>,
    memory: &PoolMemory,
) -> Finding {
    let kind = conditions::TERMINATION_PENDING;
    if instance.is_some_and(PoolInstance::is_interrupted) {
        return Finding::new(
            kind,
            true,
            termination::reason(TerminationCause::Spot),
            termination::message(TerminationCause::Spot),
        );
    }
    let Some(instance) = instance.filter(|instance| is_by_aws(id, instance, memory)) else {
        return Finding::plain(kind, false, termination_pending::NOT_TERMINATION_PENDING);
    };
    let before = conditions::get(&status.conditions, kind).filter(|before| before.status == "True");
    let reported = before.and_then(|before| termination::cause_of(&before.reason));
    let cause = reported
        .or(memory.terminations.cause(id))
        .or_else(|| instance.shown_cause())
        .unwrap_or(TerminationCause::Unknown);
    Finding::new(kind, true, termination::reason(cause), termination::message(cause))
}

fn up_to_date_finding(input: &Input<'_>, id: &str) -> Finding {
    match input.plan.outdated.reason(id) {
        None if input.plan.outdated.is_unknown(id) => Finding::new(
            conditions::UP_TO_DATE,
            Status::Unknown,
            up_to_date::VERSION_UNKNOWN,
            "the launch template version of the instance is unknown",
        ),
        None if input.plan.outdated.of_another_template().contains(id) => Finding::new(
            conditions::UP_TO_DATE,
            Status::Unknown,
            up_to_date::OTHER_LAUNCH_TEMPLATE,
            format!(
                "the instance was launched from no launch template of the pool. The next change of the desired \
                 state replaces it; annotation {} replaces it at once.",
                annotations::REPLACE
            ),
        ),
        None => Finding::plain(conditions::UP_TO_DATE, true, up_to_date::UP_TO_DATE),
        Some(reason) => {
            let what = match reason {
                OutdatedReason::ImageChanged => "the instance uses an earlier image",
                OutdatedReason::TemplateChanged => {
                    "the instance uses earlier machine settings, an earlier bootstrap config or an earlier Kubernetes version"
                }
                OutdatedReason::Adopted => "the instance was launched before its group was adopted",
                OutdatedReason::TypeRemoved => {
                    "the instance type is no longer in spec.instanceTypes of the pool"
                }
                OutdatedReason::ReplaceRequested => {
                    "the replacement of the instance was requested by annotation"
                }
                OutdatedReason::RetirementScheduled => "AWS will retire or stop the instance",
                OutdatedReason::RebalanceRecommended => {
                    "EC2 recommends replacing the instance: it is at an elevated risk of interruption"
                }
                OutdatedReason::ZoneImbalance => {
                    "the Availability Zone of the instance has more instances of the pool than other zones"
                }
                OutdatedReason::LaunchedBefore => {
                    "the instance was launched before spec.rollout.after of the pool"
                }
                OutdatedReason::LifetimeExceeded => {
                    "the age of the instance exceeds spec.rollout.maxInstanceLifetimeSeconds of the pool"
                }
            };
            let next = input.desired.map_or("", |desired| next_step(desired, reason));
            Finding::new(conditions::UP_TO_DATE, false, reason.as_str(), format!("{what}{next}"))
        }
    }
}

/// What replaces an outdated instance, unless the controller replaces it.
fn next_step(desired: &Desired, reason: OutdatedReason) -> &'static str {
    match desired.rollout.type_ {
        _ if reason.is_replaced_one_by_one(desired) => "",
        RolloutType::InstanceRefresh => "; an instance refresh replaces the instance",
        RolloutType::RollingUpdate | RolloutType::OnDelete => "; delete the Machine to replace the instance",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_pool::decide::testing::{Stage, desired, facts};

    #[test]
    fn an_outdated_instance_names_what_replaces_it() {
        let next = |type_, reason| {
            let mut desired = desired(1);
            desired.rollout.type_ = type_;
            next_step(&desired, reason)
        };
        assert_eq!(next(RolloutType::RollingUpdate, OutdatedReason::ImageChanged), "");
        let by_user = "; delete the Machine to replace the instance";
        assert_eq!(next(RolloutType::OnDelete, OutdatedReason::ImageChanged), by_user);
        assert_eq!(next(RolloutType::OnDelete, OutdatedReason::ReplaceRequested), "");
        let by_aws = "; an instance refresh replaces the instance";
        assert_eq!(next(RolloutType::InstanceRefresh, OutdatedReason::ImageChanged), by_aws);
        assert_eq!(next(RolloutType::InstanceRefresh, OutdatedReason::LifetimeExceeded), "");
    }

    #[test]
    fn a_retained_instance_is_not_ready_and_names_what_to_do() {
        let mut stage = Stage::new(1);
        stage.lifecycle("i-1", LifecycleState::parse("Terminating:Retained"));
        let found = instance_finding(stage.observed.instances.get("i-1"));
        assert_eq!((found.status, found.reason), (Status::False, "Terminating"));
        assert!(found.message.contains("Delete the Machine"), "{}", found.message);
    }

    #[test]
    fn p51_a_termination_without_a_known_cause_names_no_actor() {
        let mut stage = Stage::new(1);
        stage.lifecycle("i-1", LifecycleState::TerminatingWait);
        let instance = stage.observed.instances.get("i-1");
        let found = termination_finding(&ASGMachineStatus::default(), "i-1", instance, &stage.memory);
        assert_eq!((found.status, found.reason), (Status::True, "TerminationPending"));
        assert_eq!(found.message, "AWS is terminating the instance; the cause is unknown");
    }

    #[test]
    fn ipv6_addresses_are_reported_as_internal_up_to_the_limit() {
        let mut native = facts("i-1", true);
        native.private_dns = Some("i-1.eu-west-1.compute.internal".to_owned());
        native.ipv6 = ["2001:db8::7".to_owned()].into();
        let read: Vec<_> =
            addresses(&native).into_iter().map(|one| (one.address_type, one.address)).collect();
        let dns = (AddressType::InternalDns, "i-1.eu-west-1.compute.internal".to_owned());
        assert_eq!(read, [dns, (AddressType::InternalIp, "2001:db8::7".to_owned())]);
        native.ipv6 = (0..50).map(|number| format!("2001:db8::{number}")).collect();
        assert_eq!(addresses(&native).len(), MAX_ADDRESSES);
    }
}
