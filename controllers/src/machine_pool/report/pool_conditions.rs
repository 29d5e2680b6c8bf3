//! The conditions of a pool, from the desired state, the facts, the plan and the calls that AWS rejects. Pure.

use capasg_api::{
    conditions::{
        CLOUD_REACHABLE, DRIFTED, Finding, GROUP_READY, LAUNCH_TEMPLATE_READY, NODES_READY, SCALING_DOWN,
        SCALING_UP, Status, paused,
    },
    reasons::{self, cloud_reachable, drifted, group_ready, launch_template_ready, scaling_down, scaling_up},
};
use capasg_cloud::{CloudError, ErrorClass, ErrorSubject, LifecycleState};

use crate::machine_pool::model::call_kind::CallTopic;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::other_tags::OtherTags;
use crate::machine_pool::model::template_versions::pinned_version;
use crate::machine_pool::model::{
    Blocker, Difference, GroupView, Known, Observed, PoolInstance, counted, instances, is_or_are,
};
use crate::machine_pool::report::deletion;
use crate::machine_pool::report::event_queue;
use crate::machine_pool::report::input::Input;
use crate::machine_pool::report::node_capacity::not_offered;
use crate::machine_pool::report::nodes::Nodes;
use crate::machine_pool::report::rollout_conditions;
use crate::machine_pool::report::scaling_healthy::scaling_healthy;
use crate::machine_pool::report::text::{
    failure_message, failures_message, join_some, paused_text, some_of, tags_text,
};

/// Every condition of the pool except `Ready`, which summarizes them.
#[must_use]
pub fn findings(input: &Input<'_>, memory: &PoolMemory) -> Vec<Finding> {
    let nodes = input.nodes(memory);
    let mut all = vec![
        cloud_reachable(input),
        launch_template(input, memory),
        group(input, memory),
        scaling_healthy(input, memory),
        nodes_ready(input, nodes.as_ref(), memory),
        event_queue::event_queue(input),
        rollout_conditions::up_to_date(input),
        rollout_conditions::rolling_out(input),
        rollout_conditions::remediating(input),
        drifted(input),
        deletion::deleting(input),
        paused(input.objects.pause, "ASGMachinePool"),
    ];
    all.extend(scaling(input, nodes.as_ref()));
    for found in &input.findings {
        if let Some(finding) = all.iter_mut().find(|finding| finding.type_ == found.type_) {
            *finding = found.clone();
        }
    }
    all
}

/// What the API server rejects says more than what follows from it.
fn nodes_ready(input: &Input<'_>, nodes: Option<&Nodes>, memory: &PoolMemory) -> Finding {
    let Some((error, others)) = memory.failed_writes.lasting() else {
        return nodes.map_or(Finding::not_yet_reported(NODES_READY), |nodes| nodes.finding(input.objects));
    };
    let others = if others == 0 { String::new() } else { format!(" Other writes that fail: {others}.") };
    let message = format!("{}.{others}", error.trim_end_matches('.'));
    Finding::new(NODES_READY, false, reasons::nodes_ready::WRITE_REJECTED, message)
}

fn cloud_reachable(input: &Input<'_>) -> Finding {
    if let Some(Blocker::WrongAccount { credentials, group }) = &input.plan.blocker {
        let message = format!(
            "the AWS credentials belong to account {credentials}, but the Auto Scaling group belongs to \
             account {group}. The controller makes no changes. Configure credentials for account {group}."
        );
        return Finding::new(CLOUD_REACHABLE, false, cloud_reachable::ACCESS_DENIED, message);
    }
    if let Some(error) = &input.unreachable {
        let reason = match error.class {
            ErrorClass::Denied => cloud_reachable::ACCESS_DENIED,
            ErrorClass::Throttled => cloud_reachable::THROTTLED,
            _ => cloud_reachable::CLOUD_NOT_REACHABLE,
        };
        return Finding::new(CLOUD_REACHABLE, false, reason, unreachable(input, error));
    }
    match input.observed.map(|o| &o.group) {
        None | Some(GroupView::Unknown) => Finding::not_yet_reported(CLOUD_REACHABLE),
        Some(_) => Finding::plain(CLOUD_REACHABLE, true, cloud_reachable::CLOUD_REACHABLE),
    }
}

/// The error with what to check, if the region may be the cause: a misspelt one has no endpoint, and AWS rejects
/// credentials in one that is not enabled for the account.
fn unreachable(input: &Input<'_>, error: &CloudError) -> String {
    let region = &input.objects.pool.spec.region;
    let text = error.to_string();
    let text = text.trim_end_matches('.');
    match (error.class, error.code.as_str()) {
        (ErrorClass::Denied, _) => format!(
            "{text}. Check the AWS credentials of the controller, the permissions of its IAM role (docs/iam-policy.json), \
             and that region {region} (spec.region) is enabled for the account."
        ),
        (_, "Network") => format!(
            "{text}. Check that spec.region {region} exists, and that the controller can reach the endpoints of AWS."
        ),
        _ => error.to_string(),
    }
}

fn launch_template(input: &Input<'_>, memory: &PoolMemory) -> Finding {
    let finding = |status: Status, reason, message: String| {
        Finding::new(LAUNCH_TEMPLATE_READY, status, reason, message)
    };
    if let Some(tags) = input.template_not_owned() {
        let name = input.desired.map(|desired| &desired.template);
        let message = format!("{}.", not_owned(input, "launch template", name, &tags, "another name"));
        return finding(Status::False, launch_template_ready::REJECTED, message);
    }
    if let Some((failed, message)) = failures_message(memory, CallTopic::LaunchTemplate) {
        let reason = if failed.is_rejected {
            launch_template_ready::REJECTED
        } else {
            launch_template_ready::CALL_FAILED
        };
        return finding(Status::False, reason, message);
    }
    match input.observed.map(|o| (&o.template, pinned_version(o))) {
        None | Some((Known::Unread(_), _)) => Finding::not_yet_reported(LAUNCH_TEMPLATE_READY),
        Some((Known::Present(_), Some(_))) => input.references.update_problem.clone().unwrap_or_else(|| {
            Finding::plain(LAUNCH_TEMPLATE_READY, true, launch_template_ready::LAUNCH_TEMPLATE_READY)
        }),
        Some((Known::Absent, _)) if input.previews() => finding(
            Status::False,
            launch_template_ready::LAUNCH_TEMPLATE_NOT_READY,
            "the launch template is not created because spec.changePolicy is Preview".to_owned(),
        ),
        Some((Known::Absent, _)) => finding(
            Status::False,
            launch_template_ready::LAUNCH_TEMPLATE_NOT_READY,
            "the launch template does not exist".to_owned(),
        ),
        Some((Known::Present(_), None)) => finding(
            Status::False,
            launch_template_ready::LAUNCH_TEMPLATE_NOT_READY,
            "the Auto Scaling group does not use a version of the launch template".to_owned(),
        ),
    }
}

/// Who owns it, and what to do: `other` is what a pool needs that does not use it. A pool that had a group before may
/// have created what another actor changed the tags of.
fn not_owned(input: &Input<'_>, what: &str, name: Option<&String>, tags: &OtherTags, other: &str) -> String {
    let name = name.map_or("", String::as_str);
    let owner = tags_text(tags);
    let ours =
        input.desired.filter(|_| input.objects.pool.spec.provider_id.is_some() || tags.is_incomplete());
    let advice = if let Some(desired) = ours {
        let value = |key: &&str| {
            let value = desired.tags.get(*key).map(|tag| tag.value.as_str()).unwrap_or_default();
            format!("{key}={value}")
        };
        let values: Vec<String> = tags.missing.iter().chain(&tags.different).map(value).collect();
        format!("If this pool created the {what}, set its tags: {}", values.join(", "))
    } else {
        format!("Delete the {what} if it is unused, or create a pool with {other}")
    };
    format!("{what} {name} {owner}. The controller does not change it. {advice}")
}

fn group_not_owned(input: &Input<'_>, tags: &OtherTags) -> String {
    let spec = &input.objects.pool.spec;
    let is_named = spec.group_name().is_some();
    let other = if is_named { "another spec.group.name" } else { "another name" };
    let name = input.desired.map(|desired| &desired.group);
    let message = not_owned(input, "Auto Scaling group", name, tags, other);
    // A group that the pool had already is not adopted again.
    let is_adoptable = tags.is_untagged() && is_named && spec.provider_id.is_none();
    let adopt = if is_adoptable { ". To take it over, set spec.adoptionPolicy to Adopt" } else { "" };
    format!("{message}{adopt}.")
}

fn group(input: &Input<'_>, memory: &PoolMemory) -> Finding {
    let no = |reason, message: String| Finding::new(GROUP_READY, false, reason, message);
    match &input.plan.blocker {
        Some(Blocker::GroupNotOwned { tags }) => {
            return no(group_ready::GROUP_NOT_OWNED, group_not_owned(input, tags));
        }
        Some(Blocker::NotAdoptable { why }) => return no(group_ready::ADOPTION_BLOCKED, why.clone()),
        // A call that AWS rejects says more than what is pending.
        Some(Blocker::Adopting) if memory.failed_calls.about(CallTopic::Group).is_none() => {
            return no(group_ready::ADOPTING, adopting(input));
        }
        Some(Blocker::GroupAbsentInstancesRun { instances }) => {
            let message = format!(
                "the Auto Scaling group does not exist, but {} still running. The group is created again \
                 after these instances terminate.",
                named(instances)
            );
            return no(group_ready::GROUP_NOT_READY, with_failure(message, memory));
        }
        Some(Blocker::Detached { instances }) => {
            let message = format!(
                "{} running but detached from the Auto Scaling group. Attach each instance to the group \
                 again, or terminate it. The Machines are kept.",
                named(instances)
            );
            return no(group_ready::GROUP_NOT_READY, with_failure(message, memory));
        }
        _ => {}
    }
    if let Some((failed, message)) = failures_message(memory, CallTopic::Group) {
        let reason = match failed.error.subject() {
            _ if !failed.is_rejected => group_ready::CALL_FAILED,
            ErrorSubject::Subnet => group_ready::SUBNET_NOT_FOUND,
            ErrorSubject::Other => group_ready::REJECTED,
        };
        return no(reason, message);
    }
    if let Some(message) = memory.recent_writes.without_effect(CallTopic::Group) {
        return no(group_ready::CHANGE_WITHOUT_EFFECT, message);
    }
    if let Some(finding) = input.types.and_then(|types| not_offered(&input.objects.pool.spec.region, types)) {
        return finding;
    }
    match input.observed.map(|o| &o.group) {
        None | Some(GroupView::Unknown) => Finding::not_yet_reported(GROUP_READY),
        Some(GroupView::Absent { .. }) if input.previews() => no(
            group_ready::GROUP_NOT_READY,
            "the Auto Scaling group is not created because spec.changePolicy is Preview".to_owned(),
        ),
        Some(GroupView::Absent { .. }) if input.objects.is_deleting() => {
            no(group_ready::GROUP_NOT_READY, "the Auto Scaling group does not exist".to_owned())
        }
        Some(GroupView::Absent { .. }) => no(
            group_ready::GROUP_NOT_READY,
            "the Auto Scaling group does not exist yet; the controller creates it once the launch template \
             is ready and spec.subnets selects a subnet"
                .to_owned(),
        ),
        Some(GroupView::Present { group, .. }) if group.is_deleting() => {
            no(group_ready::GROUP_NOT_READY, "AWS is deleting the Auto Scaling group".to_owned())
        }
        Some(GroupView::Present { .. }) => match retained(input) {
            None => Finding::plain(GROUP_READY, true, group_ready::GROUP_READY),
            Some(message) => no(group_ready::GROUP_NOT_READY, message),
        },
    }
}

/// A message, and which call about the group fails in addition.
fn with_failure(message: String, memory: &PoolMemory) -> String {
    match memory.failed_calls.about(CallTopic::Group) {
        Some((subject, failed)) => format!("{message} {}", failure_message(subject, failed)),
        None => message,
    }
}

/// The instances that the group replaced and keeps, as `InstanceLifecyclePolicy` lets it: each runs until a user
/// terminates it.
fn retained(input: &Input<'_>) -> Option<String> {
    let all = input.observed.iter().flat_map(|observed| &observed.instances);
    let is_retained = |instance: &PoolInstance| {
        instance.lifecycle() == Some(&LifecycleState::Retained) && !instance.is_deleting()
    };
    let ids: Vec<String> =
        all.filter(|(_, instance)| is_retained(instance)).map(|(id, _)| id.clone()).collect();
    (!ids.is_empty() && !input.is_not_owned()).then(|| {
        format!(
            "{} replaced but retained by the Auto Scaling group (Terminating:Retained), and still running. Delete the \
             Machine of each instance to drain its Node and to terminate it; terminate an instance without a Machine in \
             AWS.",
            named(&ids)
        )
    })
}

/// The instances as the subject of a sentence, with its verb.
fn named(instances: &[String]) -> String {
    let noun = if instances.len() == 1 { "instance" } else { "instances" };
    format!("{noun} {} {}", instances.join(", "), is_or_are(instances.len()))
}

fn adopting(input: &Input<'_>) -> String {
    let count = input.plan.pending.as_ref().map_or(0, Vec::len);
    let name = input.desired.map_or("", |desired| desired.group.as_str());
    if count == 0 {
        format!(
            "Auto Scaling group {name} is adopted once the launch template, the subnets and the lifecycle hook \
             are known"
        )
    } else if input.previews() {
        format!(
            "Auto Scaling group {name} would be adopted: {} pending until spec.changePolicy is Apply (see \
             status.pendingChanges)",
            counted(count, "change")
        )
    } else {
        format!(
            "Auto Scaling group {name} is being adopted: {} to be made (see status.pendingChanges)",
            counted(count, "change")
        )
    }
}

fn scaling(input: &Input<'_>, nodes: Option<&Nodes>) -> [Finding; 2] {
    let ours = input.owned().zip(input.desired).zip(nodes);
    let Some(((observed, desired), nodes)) = ours else {
        return [Finding::not_yet_reported(SCALING_UP), Finding::not_yet_reported(SCALING_DOWN)];
    };
    let wanted = if input.objects.is_deleting() { 0 } else { desired.replicas };
    let up = scaling_up(wanted, instances::in_service_count(observed), nodes);
    let remaining = instances::count(remaining(input, observed));
    let down = if remaining > input.plan.target.unwrap_or(wanted).max(wanted) {
        // A scale-in chooses none that is paused.
        let others = instances::count(self::remaining(input, observed).filter(|(_, m)| !m.is_paused()));
        let is_kept = remaining - wanted > others;
        let kept = if is_kept { paused_text(instances::live(observed)) } else { String::new() };
        let message = format!("Scaling down from {remaining} to {wanted} replicas{kept}");
        Finding::new(SCALING_DOWN, true, scaling_down::SCALING_DOWN, message)
    } else {
        Finding::plain(SCALING_DOWN, false, scaling_down::NOT_SCALING_DOWN)
    };
    [up, down]
}

/// Whether fewer nodes are ready than desired, as in the phase of core's MachinePool.
fn scaling_up(wanted: i32, in_service: i32, nodes: &Nodes) -> Finding {
    let (ready, unknown) = (nodes.ready, instances::count(nodes.unknown.iter()));
    if wanted > in_service {
        let message = format!("Scaling up from {in_service} to {wanted} replicas");
        Finding::new(SCALING_UP, true, scaling_up::SCALING_UP, message)
    } else if ready >= wanted {
        Finding::plain(SCALING_UP, false, scaling_up::NOT_SCALING_UP)
    } else if ready + unknown >= wanted {
        let message =
            format!("{ready} of {wanted} replicas are known to be ready; see condition {NODES_READY}");
        Finding::new(SCALING_UP, Status::Unknown, scaling_up::NODES_READY_UNKNOWN, message)
    } else {
        let message = format!("{ready} of {wanted} replicas are ready; see condition {NODES_READY}");
        Finding::new(SCALING_UP, true, scaling_up::SCALING_UP, message)
    }
}

/// Instances that count towards a scale-in. One that a rollout terminates is replaced, or was part of the surge.
fn remaining<'a>(
    input: &Input<'a>,
    observed: &'a Observed,
) -> impl Iterator<Item = (&'a String, &'a PoolInstance)> + use<'a> {
    let (outdated, is_deleted) = (&input.plan.outdated, input.objects.is_deleting());
    let is_replaced = move |id: &str, instance: &PoolInstance| {
        instance.is_deleting() && outdated.is_outdated(id) && !is_deleted
    };
    instances::live(observed).filter(move |(id, instance)| !is_replaced(id, instance))
}

/// What another actor changed in AWS, until a view shows it corrected.
fn drifted(input: &Input<'_>) -> Finding {
    if input.previews() {
        return previewed(input);
    }
    match differences(input.plan.drift()) {
        None => Finding::plain(DRIFTED, false, drifted::NOT_DRIFTED),
        Some(what) => {
            let message = format!(
                "another actor changed the Auto Scaling group, which the controller corrects: {what}"
            );
            Finding::new(DRIFTED, true, drifted::CORRECTING, message)
        }
    }
}

fn differences<'a>(all: impl Iterator<Item = &'a Difference>) -> Option<String> {
    let what = all.map(|one| format!("{} is {} instead of {}", one.path, one.seen, one.wanted));
    let what: Vec<String> = what.collect();
    (!what.is_empty()).then(|| join_some(&what, "; "))
}

/// The changes that a preview shows. While they are unknown, the condition stays as it was.
fn previewed(input: &Input<'_>) -> Finding {
    let Some(pending) = &input.plan.pending else { return Finding::not_yet_reported(DRIFTED) };
    if pending.is_empty() {
        return Finding::plain(DRIFTED, false, drifted::NOT_DRIFTED);
    }
    if let Some(what) = differences(input.plan.previewed.iter().filter(|difference| difference.is_drift)) {
        let message = format!(
            "another actor changed the Auto Scaling group, which is not corrected because spec.changePolicy \
             is Preview (see status.pendingChanges): {what}"
        );
        return Finding::new(DRIFTED, true, drifted::DRIFTED, message);
    }
    let paths: Vec<String> = pending.iter().map(|change| change.path.clone()).collect();
    let message = format!(
        "{} pending until spec.changePolicy is Apply (see status.pendingChanges): {}",
        counted(pending.len(), "change"),
        some_of(&paths)
    );
    Finding::new(DRIFTED, true, drifted::PREVIEWING, message)
}
