//! The conditions of a pool, from the wish, the facts, the plan and what AWS refused. Pure.

use capasg_api::{
    conditions::{
        CLOUD_REACHABLE, DELETING, DRIFTED, Finding, GROUP_READY, LAUNCH_TEMPLATE_READY, SCALING_DOWN,
        SCALING_UP, Status, paused,
    },
    reasons::{
        cloud_reachable, deleting, drifted, group_ready, launch_template_ready, scaling_down, scaling_up,
    },
};
use capasg_cloud::{CloudError, ErrorClass};

use super::{Told, capacity::not_offered, launches::scaling_healthy, rollout};
use crate::machine_pool::{
    decide::{group::foreign, launch_template::pinned_version, members},
    desired::replicas,
    memory::PoolMemory,
    state::{DeletionPhase, GroupView, Member, Observed, Obstacle, ReplicaOwner, TemplateView},
};

const TEMPLATE_CALLS: &[&str] =
    &["CreateLaunchTemplate", "CreateLaunchTemplateVersion", "DeleteLaunchTemplate"];
pub(super) const CAPACITY_CALLS: &[&str] = &["capacity", "TerminateInstanceInAutoScalingGroup"];

/// Every condition of the pool but `Ready`, which sums them.
#[must_use]
pub fn findings(told: &Told<'_>, memory: &PoolMemory) -> Vec<Finding> {
    let mut all = vec![
        cloud_reachable(told),
        launch_template(told, memory),
        group(told, memory),
        scaling_healthy(told, memory),
        rollout::up_to_date(told),
        rollout::rolling_out(told),
        rollout::remediating(told),
        drifted(told),
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

pub(super) fn refusal(error: &CloudError) -> String {
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
        Some((TemplateView::Absent, _)) if told.previews() => finding(
            Status::False,
            launch_template_ready::LAUNCH_TEMPLATE_NOT_READY,
            "the launch template is not made, as changePolicy is Preview".to_owned(),
        ),
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
        Some(Obstacle::NotAdoptable { why }) => return no(group_ready::ADOPTION_REFUSED, why.clone()),
        Some(Obstacle::Adopting) => return no(group_ready::ADOPTING, adopting(told)),
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
        Some(GroupView::Absent { .. }) if told.previews() => no(
            group_ready::GROUP_NOT_READY,
            "the Auto Scaling group is not made, as changePolicy is Preview".to_owned(),
        ),
        Some(GroupView::Absent { .. }) => {
            no(group_ready::GROUP_NOT_READY, "the Auto Scaling group is being made".to_owned())
        }
        Some(GroupView::Present { group, .. }) if group.is_deleting() => {
            no(group_ready::GROUP_NOT_READY, "AWS is deleting the Auto Scaling group".to_owned())
        }
        Some(GroupView::Present { group, .. }) => {
            // A template that stands in the way comes first.
            match told.desired.filter(|_| told.is_foreign()).and_then(|desired| foreign(desired, group)) {
                Some(Obstacle::ForeignGroup { found }) => {
                    no(group_ready::GROUP_NOT_OWNED, not_owned("Auto Scaling group", found.as_ref()))
                }
                _ => Finding::plain(GROUP_READY, true, group_ready::GROUP_READY),
            }
        }
    }
}

fn adopting(told: &Told<'_>) -> String {
    let count = told.plan.pending.as_ref().map_or(0, Vec::len);
    let name = told.desired.map_or("", |desired| desired.group.as_str());
    if count == 0 {
        format!("Auto Scaling group {name} is adopted once it is known what the pool launches")
    } else if told.previews() {
        format!(
            "Auto Scaling group {name} would be adopted: {count} changes wait for changePolicy Apply \
             (status.pendingChanges)"
        )
    } else {
        format!("Auto Scaling group {name} is being adopted: {count} changes follow (status.pendingChanges)")
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

fn scaling(told: &Told<'_>) -> [Finding; 2] {
    let ours = told.observed.filter(|o| o.group.present().is_some() && !told.is_foreign());
    let counts = ours.zip(told.desired).map(|(o, d)| {
        let wanted = if told.scene.is_deleting() { 0 } else { d.replicas };
        (wanted, members::in_service_count(o), told.plan.target.unwrap_or(wanted), staying(told, o))
    });
    let Some((wanted, in_service, target, staying)) = counts else {
        return [Finding::not_yet_reported(SCALING_UP), Finding::not_yet_reported(SCALING_DOWN)];
    };
    let up = if wanted > in_service {
        let message = format!("Scaling up from {in_service} to {wanted} replicas");
        Finding::new(SCALING_UP, true, scaling_up::SCALING_UP, message)
    } else {
        Finding::plain(SCALING_UP, false, scaling_up::NOT_SCALING_UP)
    };
    let down = if staying > target.max(wanted) {
        let message = format!("Scaling down from {staying} to {wanted} replicas");
        Finding::new(SCALING_DOWN, true, scaling_down::SCALING_DOWN, message)
    } else {
        Finding::plain(SCALING_DOWN, false, scaling_down::NOT_SCALING_DOWN)
    };
    [up, down]
}

/// Instances that count towards a scale-in: one that a rollout takes away is replaced, or was the surge.
fn staying(told: &Told<'_>, observed: &Observed) -> i32 {
    let replaced = |id: &String, member: &Member| {
        member.is_leaving() && told.outdated.is_outdated(id) && !told.scene.is_deleting()
    };
    members::count(members::live(observed).filter(|(id, member)| !replaced(id, member)))
}

/// Names at most this many Machines in a message.
const NAMES: usize = 5;

/// The first few names, and how many more there are.
pub(super) fn some_of(names: &[String]) -> String {
    list_of(names, ", ")
}

fn list_of(names: &[String], separator: &str) -> String {
    let shown = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(separator);
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What somebody else changed in AWS, until a view shows it put right.
fn drifted(told: &Told<'_>) -> Finding {
    if told.previews() {
        return previewed(told);
    }
    let what: Vec<String> = told
        .plan
        .drift()
        .map(|difference| {
            format!("{} is {} instead of {}", difference.path, difference.seen, difference.wanted)
        })
        .collect();
    if what.is_empty() {
        return Finding::plain(DRIFTED, false, drifted::NOT_DRIFTED);
    }
    let message = format!("changed by somebody else, and put right: {}", list_of(&what, "; "));
    Finding::new(DRIFTED, true, drifted::CORRECTING, message)
}

/// What would change, as far as it is known: until then the condition stays as it was.
fn previewed(told: &Told<'_>) -> Finding {
    let Some(pending) = &told.plan.pending else { return Finding::not_yet_reported(DRIFTED) };
    if pending.is_empty() {
        return Finding::plain(DRIFTED, false, drifted::NOT_DRIFTED);
    }
    let paths: Vec<String> = pending.iter().map(|change| change.path.clone()).collect();
    let message = format!(
        "{} changes wait for changePolicy Apply (status.pendingChanges): {}",
        pending.len(),
        some_of(&paths)
    );
    Finding::new(DRIFTED, true, drifted::PREVIEWING, message)
}

fn deleting(told: &Told<'_>) -> Finding {
    if !told.scene.is_deleting() {
        return Finding::plain(DELETING, false, deleting::NOT_DELETING);
    }
    let (reason, message) = match &told.plan.deletion {
        None => (deleting::DELETING, String::new()),
        Some(DeletionPhase::DrainingMachines(names)) => {
            (deleting::DRAINING_MACHINES, format!("waiting for {}", some_of(names)))
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
