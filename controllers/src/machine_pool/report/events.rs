//! The events about what report finds. Each is published once, however often it is found.

use capasg_api::{
    conditions::{self, CLOUD_REACHABLE, Finding, GROUP_READY, NODES_READY, Status},
    names::events,
    pool::ChangePolicy,
    reasons::nodes_ready,
};
use capasg_cloud::{CloudError, InstanceTypes};

use crate::Context;
use crate::kubernetes::EventType;
use crate::machine_pool::model::adoption::adopted_from;
use crate::machine_pool::model::event_note::event_note;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::memory::record::{Entry, Report};
use crate::machine_pool::model::{Blocker, Observation, OutdatedReason, counted, is_or_are};
use crate::machine_pool::report::input::Input;
use crate::machine_pool::report::text::tags_text;
use crate::machine_pool::report::{rollout_conditions, scaling_healthy};
use crate::observer::PoolEvent;

/// One event when a group or a launch template that is not owned blocks the pool, not one for each reconcile.
pub async fn blocker(context: &Context, input: &Input<'_>, memory: &mut PoolMemory) {
    let (group, template) =
        input.desired.map_or(("", ""), |desired| (desired.group.as_str(), desired.template.as_str()));
    let event = input.plan.blocker.as_ref().filter(|blocker| blocker.is_not_owned()).and_then(|blocker| {
        Some(match blocker {
            // A preview only shows it.
            Blocker::Adopting if input.objects.pool.spec.change_policy() == ChangePolicy::Preview => {
                return None;
            }
            Blocker::Adopting => {
                let message = format!(
                    "Started the adoption of Auto Scaling group {group}: {}",
                    input.plan.pending_text()?
                );
                (EventType::Normal, events::ADOPTION_STARTED, message)
            }
            Blocker::NotAdoptable { why } => (EventType::Warning, events::ADOPTION_BLOCKED, event_note(why)),
            _ => {
                let (found, condition) = match blocker {
                    Blocker::WrongAccount { .. } => {
                        let found =
                            "belongs to a different AWS account than the credentials of the controller";
                        (found.to_owned(), CLOUD_REACHABLE)
                    }
                    Blocker::GroupNotOwned { tags } => (tags_text(tags), GROUP_READY),
                    _ => return None,
                };
                let message = format!(
                    "Auto Scaling group {group} {found}. The controller makes no changes; see condition \
                     {condition}"
                );
                (EventType::Warning, events::GROUP_NOT_OWNED, message)
            }
        })
    });
    let event = event.or_else(|| {
        let found = tags_text(&input.template_not_owned()?);
        let message = format!("Launch template {template} {found}. The controller does not change it");
        Some((EventType::Warning, events::LAUNCH_TEMPLATE_NOT_OWNED, message))
    });
    let key = event.as_ref().map(|(_, _, message)| format!("{:?} {message}", input.plan.blocker));
    if let Some((kind, reason, message)) = event.filter(|_| memory.published.is_new_blocker(key.as_ref())) {
        context.publish(&input.objects.pool, kind, reason, message).await;
    }
    memory.record(Entry::Reported(Report::Blocker(key)), context.clock.now());
}

/// One event when a group was adopted, until the pool records it.
pub async fn adoption(context: &Context, input: &Input<'_>, memory: &mut PoolMemory) {
    let group = input.observed.and_then(|observed| observed.group.present());
    let recorded = input.objects.pool.spec.provider_id.is_some();
    let Some(group) = group.filter(|_| !recorded && !input.is_not_owned()) else { return };
    if adopted_from(Some(group)).is_empty() || memory.published.has_adoption() {
        return;
    }
    memory.record(Entry::Reported(Report::Adoption), context.clock.now());
    let message = format!(
        "Adopted Auto Scaling group {} with {}. Adopted instances are outdated and are replaced according to \
         spec.rollout",
        group.name,
        counted(group.instances.len(), "instance")
    );
    context.publish(&input.objects.pool, EventType::Normal, events::GROUP_ADOPTED, message).await;
}

/// One event when a rollout starts and one when it is complete. They follow the status, so that a new leader repeats
/// none.
pub async fn rollout(context: &Context, input: &Input<'_>, memory: &PoolMemory) {
    let (reported, now) =
        (rollout_conditions::was_rolling_out(input), rollout_conditions::is_rolling_out(input));
    let before = memory.published.rolling_out().unwrap_or(reported);
    let (reason, message) = match (before, now) {
        (false, true) => {
            let reasons: Vec<&str> =
                input.plan.outdated.reasons().into_iter().map(OutdatedReason::as_str).collect();
            let count = input.plan.outdated.count();
            let message = format!(
                "{} {} outdated ({})",
                counted(count, "instance"),
                is_or_are(count),
                reasons.join(", ")
            );
            (events::ROLLOUT_STARTED, message)
        }
        (true, false) if input.plan.outdated.is_complete() => {
            (events::ROLLOUT_COMPLETED, "All instances are up to date".to_owned())
        }
        _ => return,
    };
    context.publish(&input.objects.pool, EventType::Normal, reason, message).await;
}

/// One event when Nodes exceed `spec.nodeStartupTimeoutSeconds`, and one when the reason changes. They follow the status, so
/// that a new leader repeats none.
pub async fn nodes(context: &Context, input: &Input<'_>, finding: Option<&Finding>, memory: &PoolMemory) {
    let is_overdue = |finding: &&Finding| {
        finding.status == Status::False && finding.reason != nodes_ready::WAITING_FOR_NODES
    };
    let Some(finding) = finding.filter(is_overdue) else { return };
    let reported = || {
        let conditions = &input.objects.pool.status.as_ref()?.conditions;
        Some(conditions::get(conditions, NODES_READY)?.reason.as_str())
    };
    if memory.published.nodes().or_else(reported) != Some(finding.reason) {
        let message = event_note(&finding.message);
        context.publish(&input.objects.pool, EventType::Warning, events::NODES_NOT_READY, message).await;
    }
}

/// Counts launches that failed, and publishes one event for each reason until launches succeed again.
pub async fn launch_failures(
    context: &Context,
    input: &Input<'_>,
    observation: &Observation,
    memory: &PoolMemory,
) {
    if observation.reads.launch_activities.is_none() {
        return;
    }
    let update = memory.launches.last_update();
    for blocker in &update.new_failures {
        let event = PoolEvent::LaunchFailed(scaling_healthy::reason(*blocker));
        context.observer.happened(&input.objects.key, event);
    }
    if let Some(blocked) = memory.launches.blocked().filter(|_| update.event_due) {
        let message = event_note(&scaling_healthy::message(blocked));
        context.publish(&input.objects.pool, EventType::Warning, events::LAUNCH_FAILED, message).await;
    }
}

/// One event when AWS rejects to describe the instance types of the spec.
pub async fn instance_types(
    context: &Context,
    input: &Input<'_>,
    types: Option<&Result<InstanceTypes, CloudError>>,
    memory: &mut PoolMemory,
) {
    let failed = types.and_then(|read| read.as_ref().err());
    let rejected = failed.filter(|error| error.class.is_permanent()).map(ToString::to_string);
    if let Some(error) = &rejected
        && memory.published.is_new_instance_types(Some(error))
    {
        let message = format!("Cannot determine status.capacity: {error}");
        context.publish(&input.objects.pool, EventType::Warning, events::CALL_REJECTED, message).await;
    }
    memory.record(Entry::Reported(Report::InstanceTypes(rejected)), context.clock.now());
}
