//! The record of a stopped rollout: an annotation of the pool, which survives a restart and a move.

use capasg_api::pool::RolloutType;
use kube::ResourceExt;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::decide::rollout::arrivals;
use crate::machine_pool::decide::rollout::instance_refresh::RefreshFailure;
use crate::machine_pool::model::revision::revision;
use crate::machine_pool::model::stopped_rollout;
use crate::machine_pool::model::template_versions::pinned_stamp;
use crate::machine_pool::model::{DesiredLaunch, Input, Outdated, RolloutPhase, StopCause, instances};

/// Stops the rollout: after a failed instance refresh if there is one, after too many instances that were outdated on
/// arrival, else after the progress deadline.
#[must_use]
pub fn stop(input: &Input<'_>, outdated: &Outdated, refresh: Option<&RefreshFailure>) -> Option<KubeWrite> {
    let revision = revision(input.desired, input.observed)?;
    let (cause, reason) = cause(input, outdated, refresh);
    let cancelled = refresh.is_some_and(|failure| failure.cancelled);
    Some(KubeWrite::AnnotateRolloutStopped {
        pool: input.desired.pool.clone(),
        resource_version: input.objects.pool.resource_version(),
        revision: Some(stopped_rollout::value(revision, cancelled)),
        reason,
        rolled_back: cause == StopCause::RolledBack,
    })
}

/// Removes the annotation if it names another revision than the desired one, or if there is nothing to roll out, so
/// that it does not stop the next rollout. The cancellation of another actor stays until the desired state or the strategy
/// changes, or a user removes it.
#[must_use]
pub fn resume(input: &Input<'_>, phase: Option<&RolloutPhase>) -> Option<KubeWrite> {
    let stopped = input.desired.stopped.as_ref()?;
    // Only a known desired state can differ, and only if the launch template was read.
    if !matches!(input.desired.launch, DesiredLaunch::Known { .. }) || !input.observed.group.is_settled() {
        return None;
    }
    pinned_stamp(input.observed)?;
    let revision = revision(input.desired, input.observed)?;
    let is_over = if stopped_rollout::is_cancellation(stopped) {
        // It concerns instance refreshes alone: another strategy is another decision of the user.
        input.desired.rollout.type_ != RolloutType::InstanceRefresh
    } else {
        phase.is_none() && is_all_known(input)
    };
    (is_over || !stopped_rollout::stops(stopped, &revision)).then(|| KubeWrite::AnnotateRolloutStopped {
        pool: input.desired.pool.clone(),
        resource_version: input.objects.pool.resource_version(),
        revision: None,
        reason: String::new(),
        rolled_back: false,
    })
}

/// Whether all facts about outdated instances are known: none is paused, and the age and the version of each were read.
fn is_all_known(input: &Input<'_>) -> bool {
    input.memory.unknown_versions.missing(input.observed, input.now).is_none()
        && instances::live(input.observed)
            .all(|(_, instance)| instance.ec2.is_some() && !instance.is_paused())
}

/// The phase of a stopped rollout.
#[must_use]
pub fn phase(
    input: &Input<'_>,
    outdated: &Outdated,
    draining: Vec<String>,
    refresh: Option<&RefreshFailure>,
) -> RolloutPhase {
    let (cause, reason) = cause(input, outdated, refresh);
    RolloutPhase::Stopped { draining, reason, cause }
}

/// Why a rollout is stopped, for users as well.
fn cause(input: &Input<'_>, outdated: &Outdated, refresh: Option<&RefreshFailure>) -> (StopCause, String) {
    if let Some(failure) = refresh {
        let cause = if failure.rolled_back { StopCause::RolledBack } else { StopCause::RefreshFailed };
        return (cause, failure.message.clone());
    }
    if arrivals::are_too_many(input, outdated) || (input.is_rollout_stopped() && arrivals::stopped_it(input))
    {
        let reason = "AWS launched new instances from a launch template version other than the one that the \
                      Auto Scaling group specifies";
        return (StopCause::OutdatedOnArrival, reason.to_owned());
    }
    let deadline = input.desired.rollout.progress_deadline.num_seconds();
    (StopCause::ProgressDeadline, format!("no new instance became available for {deadline} s"))
}
