//! Follows a rollout, whoever carries it out: how far it may go, what is reported of it, and whether it has waited for new
//! instances for longer than its progress deadline. Then it stops for good: the annotation of the pool outlives a restart
//! and a move.

use capasg_api::pool::RolloutStatus;
use capasg_cloud::Group;
use chrono::TimeDelta;

use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::rollout::instance_refresh::{self, Refresh};
use crate::machine_pool::decide::rollout::phase::phase as phase_of_ours;
use crate::machine_pool::decide::rollout::progress::{Progress, progress};
use crate::machine_pool::decide::rollout::status::{left, status as status_of};
use crate::machine_pool::decide::rollout::{outdated, stopped};
use crate::machine_pool::model::{Input, Outdated, Part, RolloutPhase};

/// Where a rollout stands.
#[derive(Debug)]
pub struct Followed {
    /// Records that it stopped, or removes the record.
    pub record: Part,
    /// How far a rollout by us may go.
    pub progress: Progress,
    /// Where it stands, for conditions; `None` if there is nothing to replace.
    pub phase: Option<RolloutPhase>,
    /// What `status.rollout` reports.
    pub status: Option<RolloutStatus>,
}

/// Follows the rollout, and stops it where its progress deadline has passed.
#[must_use]
pub fn follow(
    input: &Input<'_>,
    group: &Group,
    pin: &Pin,
    outdated: &Outdated,
    refresh: &Refresh<'_>,
) -> Followed {
    let progress = if refresh.takes_over() { Progress::Refreshing } else { progress(input, group, pin) };
    let phase = instance_refresh::phase(input, refresh, outdated)
        .or_else(|| phase_of_ours(input, outdated, progress));
    let status = status_of(input, outdated, phase.as_ref());
    let failed = refresh.failed().and_then(|failure| stopped::stop(input, Some(failure)));
    let mut followed = Followed { record: Part::of_all(failed), progress, phase, status };
    match left(input, followed.status.as_ref()) {
        // What AWS does not answer may be there.
        Some(left) if left <= TimeDelta::zero() && !input.memory.rollout.is_aws_unreachable() => {
            // The record comes first: nothing that follows from it is done unless it is there.
            if let Some(stop) = stopped::stop(input, None) {
                followed.record.push(stop);
                followed.progress = Progress::Stopped;
                followed.phase = phase_of_ours(input, outdated, followed.progress);
                followed.status = status_of(input, outdated, followed.phase.as_ref());
            }
        }
        Some(left) => followed.record.requeue_within(left),
        None => {}
    }
    if let Some(status) = &mut followed.status {
        status.ended_refresh_id = refresh.stopped_by_us(input);
    }
    // A preview rolls out nothing, so that nothing of a rollout is over.
    if !input.desired.previews {
        followed.record.merge(Part::of_all(stopped::resume(input, followed.phase.as_ref())));
    }
    if let Some(wait) = outdated::until_next(input) {
        followed.record.requeue_within(wait);
    }
    followed
}
