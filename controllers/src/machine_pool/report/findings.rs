//! The conditions of a pool, from the wish, the facts, the plan and what AWS refused. Pure.

use capasg_api::{
    conditions::{
        CLOUD_REACHABLE, DELETING, DRIFTED, Finding, GROUP_READY, LAUNCH_TEMPLATE_READY, REMEDIATING,
        ROLLING_OUT, SCALING_DOWN, SCALING_HEALTHY, SCALING_UP, Status, UP_TO_DATE, paused,
    },
    reasons::{
        cloud_reachable, deleting, drifted, group_ready, launch_template_ready, remediating, rolling_out,
        scaling_down, scaling_healthy, scaling_up, up_to_date,
    },
};
use capasg_cloud::{CloudError, ErrorClass};

use super::{Told, capacity::not_offered};
use crate::machine_pool::{
    decide::{launch_template::pinned_version, members},
    desired::replicas,
    memory::PoolMemory,
    state::{DeletionPhase, GroupView, Obstacle, ReplicaOwner, TemplateView},
};

const TEMPLATE_CALLS: &[&str] =
    &["CreateLaunchTemplate", "CreateLaunchTemplateVersion", "DeleteLaunchTemplate"];
const CAPACITY_CALLS: &[&str] = &["capacity", "TerminateInstanceInAutoScalingGroup"];

/// Every condition of the pool but `Ready`, which sums them.
#[must_use]
pub fn findings(told: &Told<'_>, memory: &PoolMemory) -> Vec<Finding> {
    let mut all = vec![
        cloud_reachable(told),
        launch_template(told, memory),
        group(told, memory),
        scaling_healthy(told, memory),
        up_to_date(told),
        Finding::plain(ROLLING_OUT, false, rolling_out::NOT_ROLLING_OUT),
        Finding::plain(REMEDIATING, false, remediating::NOT_REMEDIATING),
        Finding::plain(DRIFTED, false, drifted::NOT_DRIFTED),
        deleting(told),
        paused(told.scene.pause, "ASGMachinePool"),
    ];
    all.extend(scaling(told));
    for found in &told.findings {
        if let Some(finding) = all.iter_mut().find(|finding| finding.type_ == found.type_) {
            *finding = found.clone();
        }
    }
    all
}

fn cloud_reachable(told: &Told<'_>) -> Finding {
    if let Some(Obstacle::WrongAccount { credentials, group }) = &told.plan.obstacle {
        let message = format!(
            "the credentials belong to account {credentials}, the Auto Scaling group to {group}. Nothing is changed; \
             give the controller credentials for {group}."
        );
        return Finding::new(CLOUD_REACHABLE, false, cloud_reachable::ACCESS_DENIED, message);
    }
    if let Some(error) = &told.unreachable {
        let reason = match error.class {
            ErrorClass::Denied => cloud_reachable::ACCESS_DENIED,
            ErrorClass::Throttled => cloud_reachable::THROTTLED,
            _ => cloud_reachable::CLOUD_NOT_REACHABLE,
        };
        return Finding::new(CLOUD_REACHABLE, false, reason, error.to_string());
    }
    match told.observed.map(|o| &o.group) {
        None | Some(GroupView::Unknown) => Finding::not_yet_reported(CLOUD_REACHABLE),
        Some(_) => Finding::plain(CLOUD_REACHABLE, true, cloud_reachable::CLOUD_REACHABLE),
    }
}

fn refusal(error: &CloudError) -> String {
    let advice = match error.class {
        ErrorClass::Denied => {
            "Allow the call to the controller's role (docs/iam-policy.json); it is tried again"
        }
        ErrorClass::Quota => "Ask AWS for a higher quota, or ask for less; it is tried again",
        _ => "Correct the spec: edits are tried at once",
    };
    let words = error.to_string();
    format!("{}. {advice}.", words.trim_end_matches('.'))
}

fn launch_template(told: &Told<'_>, memory: &PoolMemory) -> Finding {
    let finding = |status: Status, reason, message: String| {
        Finding::new(LAUNCH_TEMPLATE_READY, status, reason, message)
    };
    if let Some(Obstacle::ForeignTemplate { found }) = &told.plan.obstacle {
        return finding(
            Status::False,
            launch_template_ready::REJECTED,
            not_owned("launch template", found.as_ref()),
        );
    }
    if let Some(error) = memory.refused.of(TEMPLATE_CALLS) {
        return finding(Status::False, launch_template_ready::REJECTED, refusal(error));
    }
    match told.observed.map(|o| (&o.template, pinned_version(o))) {
        None | Some((TemplateView::Unknown, _)) => Finding::not_yet_reported(LAUNCH_TEMPLATE_READY),
        Some((TemplateView::Present { .. }, Some(_))) => {
            Finding::plain(LAUNCH_TEMPLATE_READY, true, launch_template_ready::LAUNCH_TEMPLATE_READY)
        }
        Some(_) => finding(
            Status::False,
            launch_template_ready::LAUNCH_TEMPLATE_NOT_READY,
            "the launch template is being made".to_owned(),
        ),
    }
}

fn not_owned(what: &str, found: Option<&String>) -> String {
    let owner = found.map_or_else(|| "nobody that we know".to_owned(), |id| format!("owner id {id}"));
    format!(
        "the {what} of this name belongs to {owner}. Nothing is changed; rename the pool or remove the {what}."
    )
}

fn group(told: &Told<'_>, memory: &PoolMemory) -> Finding {
    let no = |reason, message: String| Finding::new(GROUP_READY, false, reason, message);
    match &told.plan.obstacle {
        Some(Obstacle::ForeignGroup { found }) => {
            return no(group_ready::GROUP_NOT_OWNED, not_owned("Auto Scaling group", found.as_ref()));
        }
        Some(Obstacle::GroupGoneInstancesRun { instances }) => {
            let message = format!(
                "the Auto Scaling group is gone but {} still run. Nothing is made anew until they ended.",
                instances.join(", ")
            );
            return no(group_ready::GROUP_NOT_READY, message);
        }
        Some(Obstacle::Detached { instances }) => {
            let message = format!(
                "{} run but left the Auto Scaling group. Attach them again, or end them; their Machines are kept.",
                instances.join(", ")
            );
            return no(group_ready::GROUP_NOT_READY, message);
        }
        _ => {}
    }
    if let Some(error) = memory.refused.beside(&[TEMPLATE_CALLS, CAPACITY_CALLS]) {
        let subnet = error.message.to_ascii_lowercase().contains("subnet");
        let reason = if subnet { group_ready::SUBNET_NOT_FOUND } else { group_ready::REJECTED };
        return no(reason, refusal(error));
    }
    if let Some(finding) =
        out_of_bounds(told).or_else(|| not_offered(&told.scene.pool.spec.region, told.types?))
    {
        return finding;
    }
    match told.observed.map(|o| &o.group) {
        None | Some(GroupView::Unknown) => Finding::not_yet_reported(GROUP_READY),
        Some(GroupView::Absent { .. }) => {
            no(group_ready::GROUP_NOT_READY, "the Auto Scaling group is being made".to_owned())
        }
        Some(GroupView::Present { group, .. }) if group.is_deleting() => {
            no(group_ready::GROUP_NOT_READY, "AWS is deleting the Auto Scaling group".to_owned())
        }
        Some(GroupView::Present { .. }) => Finding::plain(GROUP_READY, true, group_ready::GROUP_READY),
    }
}

fn out_of_bounds(told: &Told<'_>) -> Option<Finding> {
    let owner = told.scene.machine_pool.as_ref()?;
    let (kept, limits) = replicas(&told.scene.pool.spec, owner);
    // The group's bounds keep somebody else's wish within the limits.
    let is_bound = told
        .desired
        .is_some_and(|desired| matches!(desired.owner, ReplicaOwner::External(_) | ReplicaOwner::Announced));
    if is_bound || limits.contain(owner.replicas()) {
        return None;
    }
    let max = limits.max.map_or_else(|| "none".to_owned(), |max| max.to_string());
    let message = format!(
        "the MachinePool asks for {} replicas, outside minSize {} and maxSize {max}; {kept} are kept. Change \
         spec.replicas of the MachinePool or the limits.",
        owner.replicas(),
        limits.min
    );
    Some(Finding::new(GROUP_READY, false, group_ready::REPLICAS_OUT_OF_BOUNDS, message))
}

fn scaling_healthy(told: &Told<'_>, memory: &PoolMemory) -> Finding {
    if let Some(error) = memory.refused.of(CAPACITY_CALLS) {
        let reason = match error.class {
            ErrorClass::Quota => scaling_healthy::QUOTA_EXCEEDED,
            ErrorClass::Capacity => scaling_healthy::INSUFFICIENT_CAPACITY,
            _ => scaling_healthy::LAUNCH_FAILED,
        };
        return Finding::new(SCALING_HEALTHY, false, reason, refusal(error));
    }
    let Some(group) = told.observed.and_then(|o| o.group.present()) else {
        return Finding::not_yet_reported(SCALING_HEALTHY);
    };
    let launch = group.suspended_processes.get("Launch");
    let wished = told.desired.is_some_and(|d| d.suspended_processes.contains("Launch"));
    match launch {
        Some(why) if !wished && !told.scene.is_deleting() => Finding::new(
            SCALING_HEALTHY,
            false,
            scaling_healthy::PROCESSES_SUSPENDED,
            format!("process Launch is suspended: {why}. Resume it in AWS to let the group grow."),
        ),
        _ => Finding::plain(SCALING_HEALTHY, true, scaling_healthy::SCALING_HEALTHY),
    }
}

fn up_to_date(told: &Told<'_>) -> Finding {
    if told.is_foreign() || told.observed.is_none_or(|o| o.group.present().is_none()) {
        return Finding::not_yet_reported(UP_TO_DATE);
    }
    match told.outdated.count() {
        0 => Finding::plain(UP_TO_DATE, true, up_to_date::UP_TO_DATE),
        outdated => {
            let all = told.observed.map_or(0, members::live_count);
            let message =
                format!("{outdated} of {all} outdated. Delete a Machine to have its instance replaced.");
            Finding::new(UP_TO_DATE, false, up_to_date::WAITING_FOR_DELETE, message)
        }
    }
}

fn scaling(told: &Told<'_>) -> [Finding; 2] {
    let ours = told.observed.filter(|o| o.group.present().is_some() && !told.is_foreign());
    let counts = ours.zip(told.desired).map(|(o, d)| {
        let wanted = if told.scene.is_deleting() { 0 } else { d.replicas };
        let in_service = members::in_service(o).count();
        (wanted, i32::try_from(in_service).unwrap_or(i32::MAX), members::live_count(o))
    });
    let Some((wanted, in_service, live)) = counts else {
        return [Finding::not_yet_reported(SCALING_UP), Finding::not_yet_reported(SCALING_DOWN)];
    };
    let up = if wanted > in_service {
        let message = format!("Scaling up from {in_service} to {wanted} replicas");
        Finding::new(SCALING_UP, true, scaling_up::SCALING_UP, message)
    } else {
        Finding::plain(SCALING_UP, false, scaling_up::NOT_SCALING_UP)
    };
    let down = if live > wanted {
        let message = format!("Scaling down from {live} to {wanted} replicas");
        Finding::new(SCALING_DOWN, true, scaling_down::SCALING_DOWN, message)
    } else {
        Finding::plain(SCALING_DOWN, false, scaling_down::NOT_SCALING_DOWN)
    };
    [up, down]
}

/// Names at most this many Machines in a message.
const NAMES: usize = 5;

fn deleting(told: &Told<'_>) -> Finding {
    if !told.scene.is_deleting() {
        return Finding::plain(DELETING, false, deleting::NOT_DELETING);
    }
    let (reason, message) = match &told.plan.deletion {
        None => (deleting::DELETING, String::new()),
        Some(DeletionPhase::DrainingMachines(names)) => {
            let more = names.len().saturating_sub(NAMES);
            let mut shown = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
            if more > 0 {
                shown = format!("{shown} and {more} more");
            }
            (deleting::DRAINING_MACHINES, format!("waiting for {shown}"))
        }
        Some(DeletionPhase::DeletingGroup) => {
            (deleting::DELETING_GROUP, "AWS is deleting the Auto Scaling group".to_owned())
        }
        Some(DeletionPhase::DeletingLaunchTemplate) => {
            (deleting::DELETING_LAUNCH_TEMPLATE, "deleting the launch template".to_owned())
        }
        Some(DeletionPhase::Done) => (deleting::DELETION_COMPLETED, String::new()),
    };
    Finding::new(DELETING, true, reason, message)
}
