//! The conditions `UpToDate`, `RollingOut` and `Remediating` of a pool. Pure.

use capasg_api::{
    conditions::{self, Finding, REMEDIATING, ROLLING_OUT, Status, UP_TO_DATE},
    names::annotations,
    pool::Opening,
    reasons::{remediating, rolling_out, up_to_date},
};
use chrono::{DateTime, Utc};

use crate::machine_pool::model::OutdatedReason;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::revision::revision;
use crate::machine_pool::model::stopped_rollout;
use crate::machine_pool::model::{
    Acted, DesiredLaunch, Facts, Known, Observation, Plan, PoolInstance, RolloutPhase, StopCause, counted,
    instances, is_or_are,
};
use crate::machine_pool::report::input::Input;
use crate::machine_pool::report::text::{paused_text, some_of};
use capasg_api::pool::RolloutStatus;

const WAITING_FOR_BUDGET: &str = "waiting for the disruption budget (spec.disruption)";

/// Whether every instance matches the current spec; if not, how many are not, why, and what that waits for.
pub(super) fn up_to_date(input: &Input<'_>) -> Finding {
    let Some(observed) = input.owned() else { return Finding::not_yet_reported(UP_TO_DATE) };
    let unknown = input.plan.outdated.unknown();
    if input.plan.outdated.count() == 0 {
        let others = input.plan.outdated.of_another_template();
        if unknown.is_empty() && others.is_empty() {
            return Finding::plain(UP_TO_DATE, true, up_to_date::UP_TO_DATE);
        }
        if unknown.is_empty() {
            let ids: Vec<String> = others.iter().cloned().collect();
            let message = format!(
                "{} launched from no known version of the launch template of the pool: {}. The next change of the \
                 desired state replaces them; annotation {} of an ASGMachine replaces its instance at once.",
                if ids.len() == 1 {
                    "1 instance was".to_owned()
                } else {
                    format!("{} instances were", ids.len())
                },
                some_of(&ids),
                annotations::REPLACE
            );
            return Finding::new(UP_TO_DATE, Status::Unknown, up_to_date::OTHER_LAUNCH_TEMPLATE, message);
        }
        let ids: Vec<String> = unknown.iter().cloned().collect();
        let message = format!("the launch template version of {} is unknown", some_of(&ids));
        return Finding::new(UP_TO_DATE, Status::Unknown, up_to_date::VERSION_UNKNOWN, message);
    }
    let all = instances::live_count(observed);
    let reasons: Vec<&str> = input.plan.outdated.reasons().into_iter().map(OutdatedReason::as_str).collect();
    let count = input.plan.outdated.count();
    let message = format!(
        "{count} of {} {} outdated ({})",
        counted(all, "instance"),
        is_or_are(count),
        reasons.join(", ")
    );
    let (reason, message) = match &input.plan.rollout {
        Some(RolloutPhase::OnDelete) => (
            up_to_date::WAITING_FOR_DELETION,
            format!("{message}. Delete a Machine to have its instance replaced."),
        ),
        Some(RolloutPhase::Paused { .. }) if input.previews() => (
            up_to_date::ROLLOUT_PAUSED,
            format!("{message}; spec.changePolicy is Preview. Set it to Apply to replace the instances."),
        ),
        Some(RolloutPhase::Paused { .. }) => (
            up_to_date::ROLLOUT_PAUSED,
            format!(
                "{message}; rollouts are paused. Set spec.rollout.mode to Automatic to replace the instances."
            ),
        ),
        Some(RolloutPhase::Closed { next, .. }) => {
            (up_to_date::WAITING_FOR_WINDOW, format!("{message}; {}", window(input, *next)))
        }
        Some(RolloutPhase::Stopped { reason, cause, .. }) => (
            match cause {
                StopCause::RolledBack => up_to_date::ROLLED_BACK,
                StopCause::OutdatedOnArrival => up_to_date::UNEXPECTED_LAUNCH_TEMPLATE_VERSION,
                StopCause::ProgressDeadline => up_to_date::PROGRESS_DEADLINE_EXCEEDED,
                StopCause::RefreshFailed => up_to_date::INSTANCE_REFRESH_FAILED,
            },
            format!(
                "{message}; the rollout is stopped: {reason}. Correct the spec, or remove annotation {} from \
                 the ASGMachinePool to continue the rollout.",
                annotations::ROLLOUT_STOPPED
            ),
        ),
        Some(RolloutPhase::WindowsUnsupported { .. }) => (
            up_to_date::WINDOWS_NOT_SUPPORTED,
            format!(
                "{message}; instance refreshes do not support spec.disruption.windows if the bootstrap data \
                 contains a bootstrap token or is not from kubeadm: in each window, AWS would replace all \
                 instances again. Remove spec.disruption.windows, or set spec.rollout.strategy.type to RollingUpdate."
            ),
        ),
        None if input.plan.follows_rollout && !is_cancelled(input) => {
            let outdated = instances::live(observed).filter(|(id, _)| input.plan.outdated.is_outdated(id));
            (up_to_date::NOT_UP_TO_DATE, message + &paused_text(outdated))
        }
        _ => (up_to_date::NOT_UP_TO_DATE, message),
    };
    Finding::new(UP_TO_DATE, false, reason, message)
}

/// When the next window opens, and which windows are invalid.
fn window(input: &Input<'_>, next: Option<(DateTime<Utc>, &'static str)>) -> String {
    let opening = Opening::Closed { next };
    let opens = match opening.format_next() {
        Some(when) => format!("the next window opens on {when}. To start now, edit spec.disruption.windows."),
        None => "no window will open. Correct spec.disruption.windows.".to_owned(),
    };
    let unreadable =
        input.desired.map(|desired| desired.disruption.invalid_windows.as_slice()).unwrap_or_default();
    let faults =
        unreadable.iter().map(|(index, error)| format!(" spec.disruption.windows[{index}].{error}."));
    std::iter::once(opens).chain(faults).collect()
}

/// Whether another actor cancelled the instance refresh for the desired state.
fn is_cancelled(input: &Input<'_>) -> bool {
    let Some((desired, observed)) = input.desired.zip(input.owned()) else { return false };
    let Some(value) = desired.stopped.as_ref().filter(|value| stopped_rollout::is_cancellation(value)) else {
        return false;
    };
    revision(desired, observed).is_some_and(|revision| stopped_rollout::stops(value, &revision))
}

/// Whether outdated instances are being replaced, and what that waits for.
pub(super) fn rolling_out(input: &Input<'_>) -> Finding {
    if input.owned().is_none() {
        return Finding::not_yet_reported(ROLLING_OUT);
    }
    let yes = |message| Finding::new(ROLLING_OUT, true, rolling_out::ROLLING_OUT, message);
    let no = |message| Finding::new(ROLLING_OUT, false, rolling_out::NOT_ROLLING_OUT, message);
    if input.plan.rollout.is_none() && is_cancelled(input) {
        return no(format!(
            "another actor cancelled the instance refresh. None is started until the desired state, spec.retryToken or \
             spec.rollout.strategy changes, or annotation {} is removed from the ASGMachinePool.",
            annotations::ROLLOUT_STOPPED
        ));
    }
    let waits = |message: &str| {
        // A rollout in progress stays so while it waits: the wait ends, or another condition reports it.
        let message = message.to_owned();
        if was_rolling_out(input) { yes(message) } else { no(message) }
    };
    // Drains in progress continue, and nothing else does.
    let drains = |draining: &[String], why: &str| {
        let no_more = format!("{why}; see condition UpToDate");
        if draining.is_empty() {
            no(no_more)
        } else {
            yes(format!("draining {}; {no_more}", some_of(draining)))
        }
    };
    match &input.plan.rollout {
        None | Some(RolloutPhase::OnDelete) => no(String::new()),
        Some(RolloutPhase::Settling) => waits("waiting until the spec has not changed for 10 s"),
        Some(RolloutPhase::Held) => waits(
            "waiting until the group uses the desired launch template and instance types; see conditions \
             LaunchTemplateReady and GroupReady",
        ),
        Some(RolloutPhase::Unread) => {
            waits("waiting until the state of the group and of its instance refreshes is read from AWS")
        }
        Some(RolloutPhase::OutOfBudget) => waits(WAITING_FOR_BUDGET),
        Some(RolloutPhase::Rejected) => {
            let message = "stopped: the group does not use the desired launch template; see conditions \
                           LaunchTemplateReady and GroupReady";
            no(message.to_owned())
        }
        Some(RolloutPhase::Paused { draining }) => drains(
            draining,
            if input.previews() { "paused by spec.changePolicy" } else { "paused by spec.rollout.mode" },
        ),
        Some(RolloutPhase::Closed { draining, .. }) => drains(draining, "no window is open"),
        Some(RolloutPhase::Stopped { draining, .. }) => drains(draining, "stopped"),
        Some(RolloutPhase::WindowsUnsupported { draining }) => {
            drains(draining, "spec.disruption.windows is not supported")
        }
        Some(phase @ RolloutPhase::Refreshing { .. }) => yes(refreshing(phase, input.previews())),
        Some(RolloutPhase::Rolling { draining, starting, awaits_new, out_of_budget, kept }) => {
            let mut parts = Vec::new();
            if !draining.is_empty() {
                parts.push(format!("draining {}", some_of(draining)));
            }
            if !starting.is_empty() {
                parts.push(format!("waiting for the Nodes of {} to be ready", some_of(starting)));
            } else if *awaits_new {
                parts.push("waiting for new instances to be launched".to_owned());
            }
            if !kept.is_empty() {
                parts.push(blocking(input, kept));
            } else if parts.is_empty() && *out_of_budget {
                parts.push(WAITING_FOR_BUDGET.to_owned());
            }
            yes(parts.join("; "))
        }
    }
}

/// What an open rollout waits for if instances that are not available block it, and what a user can do.
fn blocking(input: &Input<'_>, kept: &[String]) -> String {
    let message = format!(
        "waiting until {} can be replaced, or the Node is ready: no other instance can be replaced before",
        some_of(kept)
    );
    let all = input.observed.into_iter().flat_map(|observed| &observed.instances);
    let kept: Vec<_> = all.filter(|(id, _)| kept.contains(id)).collect();
    let annotated =
        kept.iter().filter(|(_, instance)| instance.has_do_not_disrupt() && !instance.is_paused());
    let names: Vec<String> =
        annotated.filter_map(|(_, instance)| Some(instance.machine.as_ref()?.name.clone())).collect();
    let paused = paused_text(kept.into_iter());
    if names.is_empty() {
        return message + &paused;
    }
    format!(
        "{message}; annotation {} keeps the instance. Delete Machine {} to replace it now{paused}",
        annotations::DO_NOT_DISRUPT,
        some_of(&names)
    )
}

/// The progress of an instance refresh, in a message that changes only with what happens.
fn refreshing(phase: &RolloutPhase, previews: bool) -> String {
    let RolloutPhase::Refreshing { status, percentage, message, draining, cancelled_for, no_rollback } =
        phase
    else {
        return String::new();
    };
    let mut parts = vec![match percentage {
        Some(percentage) => format!("instance refresh {status}, {percentage}% complete"),
        None => format!("instance refresh {status}"),
    }];
    parts.extend(message.as_ref().map(|message| format!("AWS reports: {}", message.trim_end_matches('.'))));
    parts.extend(cancelled_for.map(str::to_owned));
    if previews {
        parts.push(
            "it continues because the controller neither starts nor cancels instance refreshes while \
             spec.changePolicy is Preview"
                .to_owned(),
        );
    }
    if !draining.is_empty() {
        parts.push(format!("draining {}", some_of(draining)));
    }
    if *no_rollback {
        parts.push(
            "onFailure RollBack has no effect: the instance refresh is started without a desired \
             configuration, because the bootstrap data contains a bootstrap token or is not from kubeadm, or \
             another actor started it"
                .to_owned(),
        );
    }
    parts.join("; ")
}

/// What `status.rollout` reports. It stays as it was reported if act or a read failed, or if it would be that of another
/// revision while the desired state is unknown. The instance refresh that is about to be cancelled is reported in any
/// case, before the cancellation is requested.
pub(super) fn status(
    observation: &Observation,
    plan: &Plan,
    acted: &Acted,
    memory: &PoolMemory,
) -> Option<RolloutStatus> {
    let Facts { desired, observed } = observation.facts()?;
    let is_deleting = observation.objects.is_deleting();
    let is_complete =
        acted.failed.is_none() && observation.failed_fetches.is_empty() && observation.unlisted.is_none();
    let is_read = !matches!(observed.template, Known::Unread(_));
    // The launch template version that is pinned stands in for an unknown desired state.
    let is_of_desired = || {
        let reported = memory.rollout.reported();
        matches!(desired.launch, DesiredLaunch::Known { .. })
            || reported.is_none_or(|reported| reported.to_hash == revision(desired, observed))
    };
    if is_complete && is_read && (is_deleting || plan.follows_rollout && is_of_desired()) {
        return plan.rollout_status.clone();
    }
    let ended = plan.rollout_status.as_ref().and_then(|status| status.ended_refresh_id.clone());
    let mut status = memory.rollout.reported().cloned();
    if let Some(status) = status.as_mut().filter(|_| ended.is_some()) {
        status.ended_refresh_id = ended;
    }
    status
}

/// Whether a rollout is in progress. While that is not known, it is as reported last.
pub(super) fn is_rolling_out(input: &Input<'_>) -> bool {
    match rolling_out(input).status {
        conditions::Status::Unknown => was_rolling_out(input),
        status => status == conditions::Status::True,
    }
}

/// Whether the last report said that a rollout is in progress.
pub(super) fn was_rolling_out(input: &Input<'_>) -> bool {
    input
        .objects
        .pool
        .status
        .as_ref()
        .is_some_and(|status| conditions::is_true(&status.conditions, ROLLING_OUT))
}

/// Whether Machines that a `MachineHealthCheck` finds unhealthy are being replaced (D15).
pub(super) fn remediating(input: &Input<'_>) -> Finding {
    let Some(observed) = input.owned() else { return Finding::not_yet_reported(REMEDIATING) };
    let unhealthy: Vec<(&String, &PoolInstance)> = observed
        .instances
        .iter()
        .filter(|(_, m)| m.machine.as_ref().is_some_and(|machine| machine.needs_remediation))
        .collect();
    let names = |deleting: bool| -> Vec<String> {
        let some = unhealthy.iter().filter(|(_, m)| m.is_deleting() == deleting);
        some.filter_map(|(_, m)| Some(m.machine.as_ref()?.name.clone())).collect()
    };
    let (replaced, waiting) = (names(true), names(false));
    let ignored = input.desired.is_some_and(|desired| !desired.remediate);
    let mut parts = Vec::new();
    if !replaced.is_empty() {
        parts.push(format!("replacing {}", some_of(&replaced)));
    }
    if !waiting.is_empty() {
        let why = if ignored { "ignored because of spec.remediationPolicy: " } else { "to be replaced: " };
        parts.push(format!("{why}{}", some_of(&waiting)));
    }
    let mut message = parts.join("; ");
    if !ignored {
        message += &paused_text(unhealthy.into_iter());
    }
    if replaced.is_empty() && (ignored || waiting.is_empty()) {
        Finding::new(REMEDIATING, false, remediating::NOT_REMEDIATING, message)
    } else {
        Finding::new(REMEDIATING, true, remediating::REMEDIATING, message)
    }
}
