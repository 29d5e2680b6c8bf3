//! The instance refreshes of a group: how they are read, started and stopped.

use capasg_api::pool::Opening;
use capasg_cloud::{Group, InstanceRefresh, Launch, RefreshStatus, StartRefresh, Write};
use chrono::TimeDelta;

use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::rollout::instance_refresh::failure::RefreshFailure;
use crate::machine_pool::decide::rollout::instance_refresh::listing::{
    POLL, is_as_old_as, is_behind, is_fresh,
};
use crate::machine_pool::decide::rollout::instance_refresh::state::State;
use crate::machine_pool::decide::rollout::instance_refresh::{outcome, preferences};
use crate::machine_pool::decide::timing::HOLD;
use crate::machine_pool::model::{Input, LIST_LAG, Needs, Part};

/// An instance refresh is stopped this long after the status reported that it will be.
const REPORTED_WITHIN: TimeDelta = TimeDelta::seconds(1);
/// AWS did not receive a request that listings do not show after this long.
const ANSWERED_WITHIN: TimeDelta = TimeDelta::seconds(30);

/// The state of the group's instance refreshes.
#[derive(Debug)]
pub struct Refresh<'a> {
    /// The one in progress, whichever actor started it.
    pub active: Option<&'a InstanceRefresh>,
    pub(super) state: State,
    /// Whether the group's launch template and mixed instances policy are not to be changed.
    pub(super) holds_launch: bool,
    /// How old the listing may be; `None` if it is not read.
    pub(super) max_age: Option<TimeDelta>,
}

/// The launch template version and policy that the group is to have.
pub(super) fn desired_launch(input: &Input<'_>, pin: &Pin) -> Option<Launch> {
    let Pin::Version(version) = pin else { return None };
    Some(input.desired.settings.with_template(version.clone()).launch)
}

impl Refresh<'_> {
    /// Whether AWS replaces outdated instances now, so that there is no rolling update.
    #[must_use]
    pub fn takes_over(&self) -> bool {
        self.state != State::Idle
    }

    /// Whether the group's launch template and mixed instances policy are not to be changed.
    #[must_use]
    pub fn holds_launch(&self) -> bool {
        self.holds_launch
    }

    /// Requires the listing if it is missing or too old, and determines when to requeue.
    #[must_use]
    pub fn read(&self, input: &Input<'_>) -> Part {
        let mut part = Part::default();
        let Some(max_age) = self.max_age else { return part };
        part.needs.refreshes = is_as_old_as(input, max_age);
        let is_moving =
            !matches!(self.active.map(|refresh| &refresh.status), None | Some(RefreshStatus::Baking));
        part.in_transition = is_moving || matches!(self.state, State::Unread | State::Requested);
        if self.active.is_some() {
            part.requeue_within(max_age);
            // It must be cancelled when the window closes.
            if let Opening::Open { until, .. } = input.desired.disruption.opening(input.now) {
                part.requeue_within(until - input.now);
            }
        }
        if self.to_stop().is_some_and(|refresh| refresh.status != RefreshStatus::Cancelling) {
            part.needs.refreshes |= !is_fresh(input);
        }
        if max_age == LIST_LAG {
            part.requeue_within(max_age);
        }
        match &self.state {
            State::ToStop(_) | State::RollBack if self.is_to_be_reported(input) => {
                part.requeue_within(REPORTED_WITHIN);
            }
            State::Settling(wait) => part.requeue_within(*wait),
            State::Held | State::OutOfBudget => part.requeue_within(HOLD),
            State::Closed(Opening::Closed { next: Some((at, _)) }) => {
                part.requeue_within(*at - input.now);
            }
            _ => {}
        }
        part
    }

    /// The instance refresh that this controller stops, or stopped last: the status reports it before the call is made,
    /// so that its end never counts as a failure. One that ended before the call was made was stopped by another actor.
    #[must_use]
    pub fn stopped_by_us(&self, input: &Input<'_>) -> Option<String> {
        let ours = self.to_stop().filter(|_| is_fresh(input)).map(|refresh| refresh.id.clone());
        let reported = input.memory.rollout.reported().and_then(|status| status.ended_refresh_id.clone());
        let has_ended_before = |id: &String| {
            let mut listed = input.observed.refreshes.iter().flat_map(|view| view.refreshes.iter());
            input.memory.refreshes.is_only_announced(id)
                && listed.any(|refresh| refresh.id == *id && refresh.status.is_finished())
        };
        ours.or_else(|| reported.filter(|id| !self.continues(input) && !has_ended_before(id)))
    }

    /// Whether the instance refresh that the status reports as stopped continues: it is for the desired state again,
    /// and AWS was not requested to stop it, or did not receive the request. Then its end counts.
    fn continues(&self, input: &Input<'_>) -> bool {
        let may_be_answered = is_behind(
            input,
            input.memory.refreshes.stop_requested_at().max(input.memory.began()),
            ANSWERED_WITHIN,
        );
        let is_under_way = |status: &RefreshStatus| {
            matches!(status, RefreshStatus::Pending | RefreshStatus::InProgress | RefreshStatus::Baking)
        };
        self.state == State::Active
            && !may_be_answered
            && self
                .active
                .is_some_and(|refresh| outcome::is_by_us(input, refresh) && is_under_way(&refresh.status))
    }

    fn to_stop(&self) -> Option<&InstanceRefresh> {
        let is_to_stop = matches!(self.state, State::ToStop(_) | State::RollBack);
        self.active.filter(|_| is_to_stop)
    }

    /// Whether an instance refresh is to be stopped and the status does not report so yet. Capacity is not changed
    /// before: with more replicas AWS would terminate more at once.
    #[must_use]
    pub fn is_to_be_reported(&self, input: &Input<'_>) -> bool {
        self.to_stop().is_some_and(|refresh| !outcome::is_by_us(input, refresh))
    }

    /// The call that stops the instance refresh, if it is to be stopped and the status reports so.
    fn stopping(&self, input: &Input<'_>) -> Option<Write> {
        let refresh = self.active.filter(|refresh| outcome::is_by_us(input, refresh))?;
        let group = input.desired.group.clone();
        match &self.state {
            // It is being stopped already.
            _ if refresh.status == RefreshStatus::Cancelling => None,
            State::ToStop(_) => Some(Write::CancelInstanceRefresh { group }),
            State::RollBack => Some(Write::RollbackInstanceRefresh { group }),
            _ => None,
        }
    }

    /// Cancels an instance refresh, or rolls it back, once the status reports so and the listing is `complete`.
    #[must_use]
    pub fn stop(&self, input: &Input<'_>, complete: bool) -> Part {
        Part::of_all(self.stopping(input).filter(|_| complete))
    }

    /// The failure to record, so that the same desired state is not tried again without a user's action.
    #[must_use]
    pub fn failed(&self) -> Option<&RefreshFailure> {
        match &self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// Starts an instance refresh, if one is due and the listing is `complete`.
    #[must_use]
    pub fn start(&self, input: &Input<'_>, group: &Group, pin: &Pin, complete: bool) -> Part {
        if self.state != State::Start || !complete {
            return Part::default();
        }
        if !input.observed.fresh_hook {
            // Another actor may have deleted it since.
            return Part::needing(Needs { fresh_hook: true, ..Needs::default() });
        }
        let Some(wanted) = desired_launch(input, pin) else { return Part::default() };
        let has_rollback = group.settings.launch.template.version.is_some();
        let start = StartRefresh {
            group: input.desired.group.clone(),
            preferences: preferences::preferences(input, !input.desired.rotates && has_rollback),
            desired: (!input.desired.rotates).then_some(wanted),
        };
        Part { in_transition: true, ..Part::of(Write::StartInstanceRefresh(Box::new(start))) }
    }

    /// Whether a recent listing shows that no instance refresh is in progress, and what must be read for that.
    #[must_use]
    pub fn is_known_to_be_none(&self, input: &Input<'_>) -> (bool, Part) {
        if self.active.is_some() {
            return (false, Part::default());
        }
        if is_behind(input, input.memory.refreshes.start_requested_at(), LIST_LAG) {
            return (false, Part::requeue(LIST_LAG));
        }
        let is_unknown = is_as_old_as(input, POLL);
        let needs = Needs { refreshes: is_unknown, ..Needs::default() };
        (!is_unknown, Part::needing(needs))
    }
}
