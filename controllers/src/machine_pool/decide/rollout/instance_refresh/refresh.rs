//! The instance refresh of a group: how it is read, started and stopped.

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

/// A refresh that we stop is stopped this long after the status said so.
const REPORTED_WITHIN: TimeDelta = TimeDelta::seconds(1);
/// What we requested of AWS, and listings do not show after this, was not received.
const ANSWERED_WITHIN: TimeDelta = TimeDelta::seconds(30);

/// What is known of the group's refreshes, and what is to come of it.
#[derive(Debug)]
pub struct Refresh<'a> {
    /// The one under way, whoever started it.
    pub active: Option<&'a InstanceRefresh>,
    pub(super) state: State,
    /// Whether the group's template and policy are to stay as they are.
    pub(super) holds_launch: bool,
    /// For how long the listing is believed; `None` if none is read.
    pub(super) believed: Option<TimeDelta>,
}

/// What the group is to launch in the end.
pub(super) fn desired_launch(input: &Input<'_>, pin: &Pin) -> Option<Launch> {
    let Pin::Version(version) = pin else { return None };
    Some(input.desired.settings.with_template(version.clone()).launch)
}

impl Refresh<'_> {
    /// Whether outdated instances are AWS's to replace now, so that we add or terminate none for a rollout.
    #[must_use]
    pub fn takes_over(&self) -> bool {
        self.state != State::Idle
    }

    /// Whether the group's template and policy are to stay as they are.
    #[must_use]
    pub fn holds_launch(&self) -> bool {
        self.holds_launch
    }

    /// Reads the listing where it is missing or too old, and says when to requeue.
    #[must_use]
    pub fn read(&self, input: &Input<'_>) -> Part {
        let mut part = Part::default();
        let Some(believed) = self.believed else { return part };
        part.needs.refreshes = is_as_old_as(input, believed);
        let is_moving =
            !matches!(self.active.map(|refresh| &refresh.status), None | Some(RefreshStatus::Baking));
        part.in_transition = is_moving || matches!(self.state, State::Unread | State::Requested);
        if self.active.is_some() {
            part.requeue_within(believed);
            // It has to stop where it is once that closes.
            if let Opening::Open { until, .. } = input.desired.disruption.opening(input.now) {
                part.requeue_within(until - input.now);
            }
        }
        if self.unwanted().is_some_and(|refresh| refresh.status != RefreshStatus::Cancelling) {
            part.needs.refreshes |= !is_fresh(input);
        }
        if believed == LIST_LAG {
            part.requeue_within(believed);
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

    /// The refresh that we stop, or stopped last: the status names it before the call is made, so that its end is never
    /// taken for a failure.
    #[must_use]
    pub fn stopped_by_us(&self, input: &Input<'_>) -> Option<String> {
        let ours = self.unwanted().filter(|_| is_fresh(input)).map(|refresh| refresh.id.clone());
        let reported = input.memory.rollout.reported().and_then(|status| status.ended_refresh_id.clone());
        ours.or_else(|| reported.filter(|_| !self.continues(input)))
    }

    /// Whether the refresh that the status names is wanted again and was never requested to stop, or AWS did not receive the
    /// request: from here on its end is none of ours.
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

    fn unwanted(&self) -> Option<&InstanceRefresh> {
        let is_to_stop = matches!(self.state, State::ToStop(_) | State::RollBack);
        self.active.filter(|_| is_to_stop)
    }

    /// Whether a refresh is to be stopped and the status does not say so yet. Nothing is launched before that: with more
    /// replicas AWS would take more away at once.
    #[must_use]
    pub fn is_to_be_reported(&self, input: &Input<'_>) -> bool {
        self.unwanted().is_some_and(|refresh| !outcome::is_by_us(input, refresh))
    }

    /// The call that stops the refresh, if it is to be stopped and the status said so.
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

    /// Stops a refresh that is to replace nothing more, or rolls it back. All that this waits for is that it is reported, and
    /// that the listing is `complete`.
    #[must_use]
    pub fn stop(&self, input: &Input<'_>, complete: bool) -> Part {
        Part::of_all(self.stopping(input).filter(|_| complete))
    }

    /// The failure that is to be recorded, so that the same desired state is not tried again by itself.
    #[must_use]
    pub fn failed(&self) -> Option<&RefreshFailure> {
        match &self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// Starts a refresh, if one is due and the listing is `complete`.
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

    /// Whether a listing that is not too old says that no refresh is under way, and what must be read to tell.
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
