//! The events that a pool publishes: each thing that a person cares about once, however often it is seen.

use capasg_api::{
    names::{annotations, events},
    pool::ChangePolicy,
};
use capasg_cloud::Write;
use chrono::TimeDelta;

use super::{
    act::Site,
    decide::{adoption, rollout::OutdatedReason},
    memory::{PoolMemory, kind},
    observe::Scene,
    report::Told,
    state::{Difference, Obstacle, Plan},
};
use crate::{
    Context,
    kubernetes::{DeletionReason, EventKind, KubeEvent, KubeWrite},
};

/// One event when a foreign group stands in the way, not one for each reconcile.
pub(super) async fn obstacle(context: &Context, scene: &Scene, plan: &Plan, memory: &mut PoolMemory) {
    let news = plan.obstacle.as_ref().filter(|o| o.is_foreign()).and_then(|obstacle| {
        Some(match obstacle {
            // A preview only shows it.
            Obstacle::Adopting if scene.pool.spec.change_policy() == ChangePolicy::Preview => return None,
            Obstacle::Adopting => (EventKind::Normal, events::ADOPTING_GROUP, adoption::words(plan)?),
            Obstacle::NotAdoptable { why } => (EventKind::Warning, events::ADOPTION_REFUSED, why.clone()),
            _ => {
                let message =
                    "the cloud holds something of this pool's name that is not ours; nothing is changed";
                (EventKind::Warning, events::GROUP_NOT_OWNED, message.to_owned())
            }
        })
    });
    let key = news.as_ref().map(|(_, _, message)| format!("{:?} {message}", plan.obstacle));
    if let Some((kind, reason, message)) = news.filter(|_| key != memory.announced) {
        event(context, scene, kind, reason, message).await;
    }
    memory.announced = key;
}

/// Tells that a group became the pool's: it is, and the pool has not recorded it yet.
pub(super) async fn adoption(context: &Context, told: &Told<'_>, memory: &mut PoolMemory) {
    let group = told.observed.and_then(|observed| observed.group.present());
    let recorded = told.scene.pool.spec.provider_id.is_some();
    let Some(group) = group.filter(|_| !recorded && !told.is_foreign()) else { return };
    if adoption::adopted_from(Some(group)).is_empty() || std::mem::replace(&mut memory.adoption_told, true) {
        return;
    }
    let message = format!(
        "adopted Auto Scaling group {} with {} instances; they are outdated, and replaced as spec.rollout says",
        group.name,
        group.instances.len()
    );
    event(context, told.scene, EventKind::Normal, events::GROUP_ADOPTED, message).await;
}

/// One event when a rollout starts and one when it is over. They follow the status, so that a new process repeats none.
pub(super) async fn rollout(context: &Context, told: &Told<'_>, memory: &mut PoolMemory) {
    let (reported, now) = told.rolling_out();
    let before = memory.rolling_out.replace(now).unwrap_or(reported);
    let (reason, message) = match (before, now) {
        (false, true) => {
            let reasons: Vec<&str> =
                told.outdated.reasons().into_iter().map(OutdatedReason::as_str).collect();
            let message =
                format!("{} instances are outdated ({})", told.outdated.count(), reasons.join(", "));
            (events::ROLLOUT_STARTED, message)
        }
        (true, false) if told.outdated.count() == 0 => {
            (events::ROLLOUT_COMPLETED, "no instance is outdated any more".to_owned())
        }
        _ => return,
    };
    event(context, told.scene, EventKind::Normal, reason, message).await;
}

/// One event for each write to the API server that a person cares about.
pub(super) async fn recorded(context: &Context, scene: &Scene, write: &KubeWrite) {
    let (kind, reason, message) = match write {
        KubeWrite::ReleaseAsgMachine { instance, .. } => {
            (EventKind::Normal, events::INSTANCE_ENDED, format!("{instance} is gone"))
        }
        KubeWrite::RolloutStopped { revision: Some(_), why, rolled_back, .. } => {
            let message = format!(
                "{why}, so the rollout stops. Correct the spec, or remove the annotation {} to let it go on",
                annotations::ROLLOUT_STOPPED
            );
            let reason = if *rolled_back { events::ROLLOUT_ROLLED_BACK } else { events::ROLLOUT_STALLED };
            (EventKind::Warning, reason, message)
        }
        KubeWrite::MarkMachine { machine, marked: true, .. } => {
            let message =
                format!("Machine {} was chosen to go: it is drained, then its instance ends", machine.name);
            (EventKind::Normal, events::SCALING_DOWN, message)
        }
        KubeWrite::DeleteMachine { machine, why, .. } => {
            let what = match why {
                DeletionReason::Outdated => "is outdated",
                DeletionReason::Unhealthy => "was found unhealthy by a MachineHealthCheck",
                DeletionReason::ScaleIn | DeletionReason::Ended | DeletionReason::PoolDeleted => return,
            };
            let message =
                format!("Machine {} {what}: it is drained, then its instance is replaced", machine.name);
            (EventKind::Normal, events::REPLACING_MACHINE, message)
        }
        _ => return,
    };
    event(context, scene, kind, reason, message).await;
}

/// A drain that was given up.
pub(super) async fn drain_timed_out(site: &Site<'_>, instance: &str) {
    let seconds = site.desired.drain_limit.num_seconds();
    let message = format!(
        "{instance} ends although its Node is not drained: AWS asked for its end, and the drain has taken longer than \
         {seconds} seconds"
    );
    event(site.context, site.scene, EventKind::Warning, events::DRAIN_TIMED_OUT, message).await;
}

/// What somebody else changes again and again is told this often.
const SAME_DRIFT: TimeDelta = TimeDelta::hours(1);
/// Of one attribute that has another value each time, this many are told within that time.
const OTHER_VALUES: usize = 3;

/// One event for each write to the cloud that a person cares about.
pub(super) async fn written(site: &Site<'_>, plan: &Plan, write: &Write, memory: &mut PoolMemory) {
    let Site { context, scene, desired, observed, .. } = site;
    let mends = |difference: &&Difference| difference.calls.contains(kind(write));
    let (drift, wish): (Vec<&Difference>, Vec<&Difference>) =
        plan.differences.iter().filter(mends).partition(|difference| difference.outside);
    let wish = changes(&wish);
    if !drift.is_empty() {
        let now = context.clock.now();
        let message = format!("put right what somebody else changed: {}", changes(&drift));
        let paths = drift.iter().map(|difference| difference.path.as_str()).collect::<Vec<_>>().join("; ");
        memory.drift_told.retain(|(_, at)| now - *at < SAME_DRIFT);
        let before = memory.drift_told.iter().filter(|((about, _), _)| *about == paths);
        let is_news = before.clone().all(|((_, said), _)| *said != message) && before.count() < OTHER_VALUES;
        if is_news {
            memory.drift_told.push(((paths, message.clone()), now));
            event(context, scene, EventKind::Normal, events::DRIFT_CORRECTED, message).await;
        }
        if wish.is_empty() && !matches!(write, Write::UpdateGroup { change, .. } if change.desired.is_some())
        {
            return;
        }
    }
    let before = observed.group.present().map_or(0, |group| group.capacity.desired);
    let (reason, message) = match write {
        Write::CreateLaunchTemplate { name, .. } => {
            (events::LAUNCH_TEMPLATE_CREATED, format!("created launch template {name}"))
        }
        Write::CreateLaunchTemplateVersion { .. } => (
            events::LAUNCH_TEMPLATE_UPDATED,
            format!("made a new version of launch template {}", desired.template),
        ),
        Write::CreateGroup(create) => (
            events::GROUP_CREATED,
            format!("created Auto Scaling group {} for {} instances", create.name, create.capacity.desired),
        ),
        Write::UpdateGroup { change, .. } => match change.desired {
            Some(wanted) if wanted > before => (events::SCALED_UP, scaled(before, wanted)),
            Some(_) => return,
            None => (events::GROUP_UPDATED, updated(&desired.group, &wish)),
        },
        Write::TagGroup { .. }
        | Write::UntagGroup { .. }
        | Write::SuspendProcesses { .. }
        | Write::ResumeProcesses { .. }
        | Write::PutLifecycleHook { .. }
        | Write::DeleteLifecycleHook { .. }
            if !wish.is_empty() =>
        {
            (events::GROUP_UPDATED, updated(&desired.group, &wish))
        }
        Write::SetDesiredCapacity { desired: wanted, .. } if *wanted > before => {
            (events::SCALED_UP, scaled(before, *wanted))
        }
        Write::TerminateInstances { instances, decrement, .. } => {
            let ids: Vec<&str> = instances.iter().map(String::as_str).collect();
            let how = if *decrement { "the group shrinks" } else { "the group replaces it" };
            (events::INSTANCE_ENDING, format!("ending {}; {how}", ids.join(", ")))
        }
        Write::StartInstanceRefresh(start) => {
            let kept = start.preferences.min_healthy_percentage;
            let message = format!("AWS replaces outdated instances; {kept}% stay in service");
            (events::INSTANCE_REFRESH_STARTED, message)
        }
        Write::CancelInstanceRefresh { .. } => {
            let message =
                "cancelling the instance refresh: what AWS has begun goes on; see RollingOut and UpToDate";
            (events::INSTANCE_REFRESH_ENDING, message.to_owned())
        }
        Write::RollbackInstanceRefresh { .. } => {
            let message =
                "rolling the instance refresh back: the spec is again what the group launched before it";
            (events::INSTANCE_REFRESH_ENDING, message.to_owned())
        }
        Write::DeleteGroup { group, .. } => {
            (events::GROUP_DELETED, format!("deleting Auto Scaling group {group}"))
        }
        _ => return,
    };
    event(context, scene, EventKind::Normal, reason, message).await;
}

fn updated(group: &str, wish: &str) -> String {
    let what = if wish.is_empty() { String::new() } else { format!(": {wish}") };
    format!("updated Auto Scaling group {group}{what}")
}

fn changes(differences: &[&Difference]) -> String {
    let one = |difference: &&Difference| {
        let Difference { path, seen, wanted, .. } = difference;
        format!("{path} {seen} -> {wanted}")
    };
    differences.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn scaled(before: i32, wanted: i32) -> String {
    format!("desired capacity {before} -> {wanted}")
}

/// Publishes an event about the pool.
pub async fn event(context: &Context, scene: &Scene, kind: EventKind, reason: &'static str, message: String) {
    let about = scene.pool.clone();
    context.kubernetes.event(KubeEvent { about, kind, reason, message }).await;
}
