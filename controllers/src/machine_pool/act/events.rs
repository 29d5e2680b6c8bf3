//! The events that are published because of a write.

use capasg_api::names::{annotations, events};
use capasg_cloud::{CloudError, GroupChange, Write};

use crate::Context;
use crate::kubernetes::{DeletionReason, EventType, KubeWrite};
use crate::machine_pool::act::execution::Execution;
use crate::machine_pool::model::call_kind::{CallKind, CallSubject};
use crate::machine_pool::model::event_note::event_note;
use crate::machine_pool::model::memory::record::{Entry, Report};
use crate::machine_pool::model::memory::{Drift, PoolMemory};
use crate::machine_pool::model::{Difference, Observed, PoolInstance, PoolObjects};

/// One event for each write to the API server that users care about.
pub async fn written(context: &Context, objects: &PoolObjects, write: &KubeWrite) {
    let (kind, reason, message) = match write {
        KubeWrite::RemoveAsgMachineFinalizer { instance, terminated: true, .. } => {
            (EventType::Normal, events::INSTANCE_TERMINATED, format!("Instance {instance} terminated"))
        }
        KubeWrite::RemoveAsgMachineFinalizer { instance, .. } => {
            let message = format!("Released instance {instance} without terminating it");
            (EventType::Normal, events::INSTANCE_RELEASED, message)
        }
        KubeWrite::AnnotateRolloutStopped { revision: Some(_), reason: why, rolled_back, .. } => {
            let message = format!(
                "Rollout stopped: {why}. Correct the spec, or remove annotation {} from the ASGMachinePool \
                 to continue",
                annotations::ROLLOUT_STOPPED
            );
            let reason = if *rolled_back { events::ROLLOUT_ROLLED_BACK } else { events::ROLLOUT_STOPPED };
            (EventType::Warning, reason, message)
        }
        KubeWrite::AnnotateDeleteMachine { machine, annotated: true, .. } => {
            let message = format!(
                "Selected Machine {} for scale-in: its Node is drained, then its instance is terminated",
                machine.name
            );
            (EventType::Normal, events::SCALE_IN_STARTED, message)
        }
        KubeWrite::DeleteMachine { machine, reason: why, .. } => {
            let why = match why {
                DeletionReason::Outdated => "its instance is outdated",
                DeletionReason::Unhealthy => "it is unhealthy according to a MachineHealthCheck",
                DeletionReason::ScaleIn | DeletionReason::Terminated | DeletionReason::PoolDeleted => return,
            };
            let message = format!(
                "Requested deletion of Machine {} because {why}: its Node is drained, then its instance is \
                 terminated",
                machine.name
            );
            (EventType::Normal, events::MACHINE_REPLACEMENT_STARTED, message)
        }
        _ => return,
    };
    context.publish(&objects.pool, kind, reason, message).await;
}

/// AWS rejected a call, or a call has failed for some time.
pub async fn failed(execution: &Execution<'_>, write: &Write, error: &CloudError, is_rejected: bool) {
    let (reason, message) = match CallSubject::of(write).first() {
        _ if error.is_unsendable() => (events::CALL_REJECTED, format!("The controller cannot send {error}")),
        _ if is_rejected => (events::CALL_REJECTED, format!("AWS rejected {error}")),
        Some(subject) => (events::CALL_FAILED, subject.failure(error)),
        None => return,
    };
    publish(execution, EventType::Warning, reason, event_note(&message)).await;
}

/// A drain exceeded its limit.
pub async fn drain_timed_out(execution: &Execution<'_>, instance: &str) {
    let seconds = execution.desired.drain_limit.num_seconds();
    let message = format!(
        "Completed the lifecycle action of instance {instance} before its Node was drained: the drain exceeded \
         {seconds} seconds"
    );
    publish(execution, EventType::Warning, events::DRAIN_TIMED_OUT, message).await;
}

/// One event for each change in AWS that users care about, and one for the drift that it corrects.
pub async fn made(execution: &Execution<'_>, write: &Write, memory: &mut PoolMemory) {
    let Execution { desired, observed, plan, .. } = execution;
    if let Some(message) = memory.recent_writes.newly_without_effect(write) {
        publish(execution, EventType::Warning, events::CHANGE_WITHOUT_EFFECT, event_note(&message)).await;
        return;
    }
    let corrects = |difference: &&Difference| difference.calls.contains(&CallKind::of(write));
    let (drift, edited): (Vec<&Difference>, Vec<&Difference>) =
        plan.differences.iter().filter(corrects).partition(|difference| difference.is_drift);
    if !drift.is_empty() {
        drift_corrected(execution, &drift, memory).await;
        if edited.is_empty()
            && !matches!(write, Write::UpdateGroup { change, .. } if change.desired.is_some())
        {
            return;
        }
    }
    if let Some((reason, message)) = change(write, &desired.template, observed, &changes(&edited)) {
        publish(execution, EventType::Normal, reason, message).await;
    }
}

async fn drift_corrected(execution: &Execution<'_>, drift: &[&Difference], memory: &mut PoolMemory) {
    let now = execution.context.clock.now();
    let message = format!("Corrected drift: {}", changes(drift));
    let paths = drift.iter().map(|difference| difference.path.as_str()).collect::<Vec<_>>().join("; ");
    let drift = Drift { paths, message: message.clone() };
    if memory.published.is_new_drift(&drift, now) {
        memory.record(Entry::Reported(Report::Drift(drift)), now);
        publish(execution, EventType::Normal, events::DRIFT_CORRECTED, message).await;
    }
}

/// Reason and message of a change.
fn change(
    write: &Write,
    template: &str,
    observed: &Observed,
    edited: &str,
) -> Option<(&'static str, String)> {
    let before = observed.group.present().map_or(0, |group| group.capacity.desired);
    Some(match write {
        Write::CreateLaunchTemplate { name, .. } => {
            (events::LAUNCH_TEMPLATE_CREATED, format!("Created launch template {name}"))
        }
        Write::CreateLaunchTemplateVersion { .. } => (
            events::LAUNCH_TEMPLATE_VERSION_CREATED,
            format!("Created a new version of launch template {template}"),
        ),
        Write::CreateGroup(create) => {
            let message = format!(
                "Created Auto Scaling group {} with desired capacity {}",
                create.name, create.capacity.desired
            );
            (events::GROUP_CREATED, message)
        }
        Write::UpdateGroup { group, change } => match change.desired {
            Some(desired) if desired > before => (events::SCALED_UP, scaled_up(before, desired)),
            Some(_) => return None,
            None if edited.is_empty() => (events::GROUP_UPDATED, updated(group, &bounds(change))),
            None => (events::GROUP_UPDATED, updated(group, edited)),
        },
        Write::TagGroup { group, .. }
        | Write::UntagGroup { group, .. }
        | Write::SuspendProcesses { group, .. }
        | Write::ResumeProcesses { group, .. }
        | Write::PutLifecycleHook { group, .. }
        | Write::DeleteLifecycleHook { group, .. }
            if !edited.is_empty() =>
        {
            (events::GROUP_UPDATED, updated(group, edited))
        }
        Write::SetDesiredCapacity { desired, .. } if *desired > before => {
            (events::SCALED_UP, scaled_up(before, *desired))
        }
        Write::TerminateInstances { instances, decrement, .. } => {
            let ids: Vec<&str> = instances.iter().map(String::as_str).collect();
            let noun = if ids.len() == 1 { "instance" } else { "instances" };
            // Instances in standby do not count towards desired capacity.
            let live = |id: &&&str| observed.instances.get(**id).is_some_and(PoolInstance::is_live);
            let then = match (*decrement, ids.iter().filter(live).count()) {
                (true, _) => ", with a decrement of desired capacity",
                (false, 0) => "",
                (false, 1) => "; the Auto Scaling group launches a replacement",
                (false, _) => "; the Auto Scaling group launches replacements",
            };
            let message = format!("Requested the termination of {noun} {}{then}", ids.join(", "));
            (events::INSTANCE_TERMINATION_REQUESTED, message)
        }
        Write::StartInstanceRefresh(start) => {
            let kept = start.preferences.min_healthy_percentage;
            let message = format!(
                "Started an instance refresh: AWS replaces outdated instances and keeps at least {kept}% of \
                 the desired capacity in service"
            );
            (events::INSTANCE_REFRESH_STARTED, message)
        }
        Write::CancelInstanceRefresh { .. } => {
            let message = "Requested cancellation of the instance refresh: AWS completes replacements that it has \
                           started; see conditions RollingOut and UpToDate";
            (events::INSTANCE_REFRESH_CANCELLATION_REQUESTED, message.to_owned())
        }
        Write::RollbackInstanceRefresh { .. } => {
            let message = "Requested rollback of the instance refresh because the spec again matches the \
                           configuration from before the refresh";
            (events::INSTANCE_REFRESH_ROLLBACK_REQUESTED, message.to_owned())
        }
        Write::DeleteGroup { group, .. } => {
            (events::GROUP_DELETION_REQUESTED, format!("Requested deletion of Auto Scaling group {group}"))
        }
        _ => return None,
    })
}

fn updated(group: &str, edited: &str) -> String {
    let what = if edited.is_empty() { String::new() } else { format!(": {edited}") };
    format!("Updated Auto Scaling group {group}{what}")
}

/// The bounds that a change sets.
fn bounds(change: &GroupChange) -> String {
    let bounds = [("MinSize", change.min), ("MaxSize", change.max)];
    let set = bounds.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    set.collect::<Vec<_>>().join(", ")
}

fn changes(differences: &[&Difference]) -> String {
    let one = |difference: &&Difference| {
        let Difference { path, seen, wanted, .. } = difference;
        format!("{path} {seen} -> {wanted}")
    };
    differences.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn scaled_up(before: i32, desired: i32) -> String {
    format!("Increased desired capacity from {before} to {desired}")
}

async fn publish(execution: &Execution<'_>, event_type: EventType, reason: &'static str, message: String) {
    execution.context.publish(&execution.objects.pool, event_type, reason, message).await;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use capasg_cloud::LifecycleState;

    use super::*;
    use crate::machine_pool::decide::testing::Stage;

    fn message(stage: &Stage, write: &Write, edited: &str) -> String {
        change(write, "t", &stage.observed, edited).unwrap().1
    }

    #[test]
    fn a_termination_names_the_replacements_that_aws_launches() {
        let mut stage = Stage::new(3);
        stage.lifecycle("i-3", LifecycleState::Standby);
        let requested = |ids: &[&str], decrement: bool| {
            let instances = ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
            let write = Write::TerminateInstances { group: "g".to_owned(), instances, decrement };
            message(&stage, &write, "")
        };
        let one = "Requested the termination of instance i-1; the Auto Scaling group launches a replacement";
        assert_eq!(requested(&["i-1"], false), one);
        assert_eq!(requested(&["i-3"], false), "Requested the termination of instance i-3", "in standby");
        assert!(requested(&["i-1", "i-3"], false).ends_with("launches a replacement"));
        assert!(requested(&["i-1", "i-2"], false).ends_with("launches replacements"));
        assert!(requested(&["i-1"], true).ends_with("with a decrement of desired capacity"));
    }

    #[test]
    fn an_update_of_the_bounds_names_them() {
        let stage = Stage::new(1);
        let update =
            |change: GroupChange| Write::UpdateGroup { group: "g".to_owned(), change: Box::new(change) };
        let bounds = update(GroupChange { min: Some(0), max: Some(5), ..GroupChange::default() });
        let expected = "Updated Auto Scaling group g: MinSize 0, MaxSize 5";
        assert_eq!(message(&stage, &bounds, ""), expected);
        assert_eq!(message(&stage, &bounds, "a -> b"), "Updated Auto Scaling group g: a -> b");
    }
}
