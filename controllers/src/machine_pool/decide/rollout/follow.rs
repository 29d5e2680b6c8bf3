//! Follows a rollout, whether by rolling update or by instance refresh: its progress, its status, and whether it has
//! waited for new instances for longer than its progress deadline. Then it is stopped: the annotation of the pool
//! survives a restart and a move.

use capasg_api::pool::RolloutStatus;
use capasg_cloud::Group;
use chrono::TimeDelta;

use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::rollout::instance_refresh::{self, Refresh};
use crate::machine_pool::decide::rollout::outdated::to_replace;
use crate::machine_pool::decide::rollout::permission::{Permission, permission};
use crate::machine_pool::decide::rollout::rolling_update_phase::phase as rolling_update_phase;
use crate::machine_pool::decide::rollout::status::{Counts, left, status as status_of};
use crate::machine_pool::decide::rollout::{arrivals, outdated, stopped, surge};
use crate::machine_pool::model::memory::rollout_progress::RolloutFacts;
use crate::machine_pool::model::revision::revision;
use crate::machine_pool::model::template_versions::pinned_version;
use crate::machine_pool::model::{Input, Outdated, Part, RolloutPhase};

/// The state of a rollout.
#[derive(Debug)]
pub struct Followed {
    /// Records that it stopped, or removes the record.
    pub record: Part,
    /// Whether a rolling update may replace instances now, and why not.
    pub permission: Permission,
    /// Its phase, for conditions; `None` if there is nothing to replace.
    pub phase: Option<RolloutPhase>,
    /// What `status.rollout` reports.
    pub status: Option<RolloutStatus>,
    /// What memory records of its progress.
    pub facts: Option<RolloutFacts>,
}

/// Follows the rollout, and stops it if its progress deadline has passed.
#[must_use]
pub fn follow(
    input: &Input<'_>,
    group: &Group,
    pin: &Pin,
    outdated: &Outdated,
    refresh: &Refresh<'_>,
) -> Followed {
    let permission =
        if refresh.takes_over() { Permission::Refreshing } else { permission(input, group, pin) };
    let phase = instance_refresh::phase(input, refresh, outdated)
        .or_else(|| rolling_update_phase(input, outdated, permission));
    let counts = Counts::of(input, outdated);
    let status = status_of(input, outdated, &counts, phase.as_ref());
    let failed = refresh.failed().and_then(|failure| stopped::stop(input, outdated, Some(failure)));
    let mut followed = Followed { record: Part::of_all(failed), permission, phase, status, facts: None };
    let left = left(input, followed.status.as_ref());
    // New instances may exist while AWS is unreachable.
    let is_late =
        left.is_some_and(|left| left <= TimeDelta::zero()) && !input.memory.rollout.is_aws_unreachable();
    let is_futile = permission == Permission::Open && arrivals::are_too_many(input, outdated);
    if is_late || is_futile {
        // The record is written first: what follows from it is done only once it is written.
        if let Some(stop) = stopped::stop(input, outdated, None) {
            followed.record.push(stop);
            followed.permission = Permission::Stopped;
            followed.phase = rolling_update_phase(input, outdated, followed.permission);
            followed.status = status_of(input, outdated, &counts, followed.phase.as_ref());
        }
    } else if let Some(left) = left.filter(|left| *left > TimeDelta::zero()) {
        followed.record.requeue_within(left);
    }
    if let Some(status) = &mut followed.status {
        status.ended_refresh_id = refresh.stopped_by_us(input);
    }
    // A preview rolls out nothing, so that no rollout completes.
    if !input.desired.previews {
        followed.record.merge(Part::of_all(stopped::resume(input, followed.phase.as_ref())));
    }
    if let Some(wait) = outdated::until_next(input) {
        followed.record.requeue_within(wait);
    }
    if to_replace(input, outdated).next().is_some() {
        let permission = followed.permission;
        let waits = [permission.until_next(input), surge::until_next(input, permission)];
        waits.into_iter().flatten().for_each(|wait| followed.record.requeue_within(wait));
    }
    followed.facts = facts(input, outdated, counts, followed.permission);
    followed
}

/// What memory records of a rollout's progress.
fn facts(
    input: &Input<'_>,
    outdated: &Outdated,
    counts: Counts,
    permission: Permission,
) -> Option<RolloutFacts> {
    Some(RolloutFacts {
        revision: revision(input.desired, input.observed)?,
        is_open: permission == Permission::Open,
        // Before the record is written, the rollout goes on: it must be stopped again.
        is_stopped: permission == Permission::Stopped && input.is_rollout_stopped(),
        instances: input.observed.instances.keys().cloned().collect(),
        available: counts.available,
        outdated_on_arrival: arrivals::outdated_on_arrival(input, outdated),
        launched_as_pinned: arrivals::launched_as_pinned(input),
        pinned: pinned_version(input.observed),
        outdated: counts.outdated,
    })
}
