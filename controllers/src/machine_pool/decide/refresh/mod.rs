//! The engine `InstanceRefresh`: AWS replaces the outdated instances, our hook holds each until its Node is drained, and
//! this starts, follows and ends the refreshes.
//!
//! All of its state is AWS's own, but for one fact that AWS does not tell: which refresh we ended ourselves. The status
//! says so before the call is made. Which refresh is for which wish follows from the configuration that it names, or from
//! when it started. With bootstrap data that stay as they are, a refresh names the wished configuration, and the group's
//! own is left alone until AWS takes it over on success; so there is a way back. Data that rotate need a template that can
//! be updated at any time, which AWS refuses beside such a refresh: then the group's own configuration is refreshed.

mod ends;
mod listing;
mod phase;
mod share;

use capasg_api::pool::{Opening, RolloutMode, RolloutType};
use capasg_cloud::{Group, InstanceRefresh, Launch, RefreshStatus, StartRefresh, Write};
use chrono::TimeDelta;
use listing::{LOOK, is_as_old_as, is_behind, is_fresh};

use super::super::state::{Case, LaunchWish, Plan, RefreshEnd, ReplicaOwner};
use super::{
    budget::Budget,
    deadline,
    launch_template::Pin,
    machines::LIST_LAG,
    members,
    rolling::{HOLD, STABLE},
    rollout::{self, Outdated},
};

/// A refresh that we end is ended this long after the status said so.
const TOLD: TimeDelta = TimeDelta::seconds(1);
/// What we asked of AWS, and listings do not show after this, was not heard.
const HEARD: TimeDelta = TimeDelta::seconds(30);

/// What is known of the group's refreshes, and what is to come of it.
#[derive(Debug)]
pub struct Refresh<'a> {
    /// The one under way, whoever started it.
    pub active: Option<&'a InstanceRefresh>,
    standing: Standing,
    /// Whether the group's template and policy are to stay as they are.
    holds_launch: bool,
    /// For how long the listing is believed; `None` if none is asked for.
    believed: Option<TimeDelta>,
}

/// Where the engine stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// Nothing is for AWS to replace.
    Idle,
    /// A refresh is under way that is for the wish, or none of our business.
    Active,
    /// One is under way that is to replace nothing more.
    Unwanted(Unwanted),
    /// One is under way for another wish, and the group's own configuration is wished again.
    TakenBack,
    /// What there is was not read, or a view does not show the end of the last refresh yet.
    Unread,
    Paused,
    Closed(Opening),
    Settling(TimeDelta),
    Held,
    Refused,
    OutOfBudget,
    /// One was just asked for, and a listing may not show it yet.
    Asked,
    /// The last refresh for the wish did not succeed; it was told.
    Stopped(Option<RefreshEnd>),
    /// It did not succeed, and that is new.
    Failed(RefreshEnd),
    Start,
}

/// Why a refresh is to replace nothing more.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unwanted {
    /// It is for another wish.
    Obsolete,
    /// It replaces more at once than the budget allows by now.
    Budget,
    /// The spec pauses rollouts.
    Paused,
    /// No window is open any more.
    Closed(Opening),
}

/// Looks at the refreshes of a group.
#[must_use]
pub fn look<'a>(case: &Case<'a>, group: &Group, pin: &Pin, outdated: &Outdated) -> Refresh<'a> {
    let Case { desired, observed, memory, .. } = *case;
    let view = observed.refreshes.as_ref();
    let active = view.and_then(|view| view.refreshes.iter().find(|refresh| !refresh.status.is_over()));
    let is_engine = desired.rollout.type_ == RolloutType::InstanceRefresh;
    let wished = wished(case, pin);
    let differs = wished.as_ref().is_none_or(|wished| *wished != group.settings.launch);
    let concerned = is_engine
        && members::live(observed)
            .any(|(id, _)| outdated.reason(id).is_some_and(rollout::OutdatedReason::is_of_the_template));
    // What cannot be launched is nothing to go back to.
    let starves = memory.launches_fail && members::live_count(observed) < group.capacity.desired;
    let standing = match active {
        Some(refresh) if is_engine => under_way(case, group, refresh, wished.as_ref(), outdated),
        Some(_) => Standing::Active,
        None if concerned => between(case, group, wished.as_ref()),
        None => Standing::Idle,
    };
    let believed = listing::believed(case, &standing, active, concerned || (is_engine && differs));
    // An update that AWS would refuse is not tried; one that would take the way back away is not made.
    let holds_launch = active.is_some_and(|refresh| refresh.desired.is_some())
        || (concerned && !desired.rotates && !starves)
        || (is_engine && differs && view.is_none());
    Refresh { active, standing, holds_launch, believed }
}

/// What the group is to launch in the end.
fn wished(case: &Case<'_>, pin: &Pin) -> Option<Launch> {
    let Pin::Version(version) = pin else { return None };
    Some(case.desired.settings.with_template(version.clone()).launch)
}

/// A refresh is under way while AWS is the one to replace outdated instances.
fn under_way(
    case: &Case<'_>,
    group: &Group,
    refresh: &InstanceRefresh,
    wished: Option<&Launch>,
    outdated: &Outdated,
) -> Standing {
    // A preview holds the wish to what the group launches, which is none to go back to: nothing is ended by it.
    if case.desired.previews {
        return Standing::Active;
    }
    if let Some(why) = share::is_out_of_turn(case, refresh) {
        return Standing::Unwanted(why);
    }
    let Some(wished) = wished else { return Standing::Active };
    // A new wish may change once more, and what is not known here is left alone.
    if settling(case).is_some() {
        return Standing::Active;
    }
    if ends::is_for_wish(case, refresh, wished, outdated) {
        return if share::is_too_large(case, refresh) {
            Standing::Unwanted(Unwanted::Budget)
        } else {
            Standing::Active
        };
    }
    match refresh.status {
        RefreshStatus::Cancelling | RefreshStatus::Other(_) => Standing::Active,
        RefreshStatus::RollbackInProgress if group.settings.launch == *wished => Standing::Active,
        RefreshStatus::Pending | RefreshStatus::InProgress | RefreshStatus::Baking
            if refresh.desired.is_some()
                && group.settings.launch == *wished
                && !case.memory.rollback_refused
                && may_begin(case) =>
        {
            Standing::TakenBack
        }
        _ => Standing::Unwanted(Unwanted::Obsolete),
    }
}

/// None is under way and some instances are outdated.
fn between(case: &Case<'_>, group: &Group, wished: Option<&Launch>) -> Standing {
    let Case { desired, observed, .. } = *case;
    let ended = ends::last(case, wished);
    if desired.rollout.mode == RolloutMode::Paused {
        return Standing::Paused;
    }
    if deadline::is_stopped(case) {
        return Standing::Stopped(Some(ended.and_then(RefreshEnd::of).unwrap_or_else(RefreshEnd::unknown)));
    }
    if matches!(desired.launch, LaunchWish::Unknown) {
        return Standing::Held;
    }
    if let Some(wait) = settling(case) {
        return Standing::Settling(wait);
    }
    let Some(wished) = wished else {
        return if rollout::wish_age(case) < HOLD { Standing::Held } else { Standing::Refused };
    };
    let counted = ended.filter(|refresh| ends::counts(case, refresh));
    let asked = is_behind(case, case.memory.refresh_asked, LIST_LAG);
    if asked && counted.is_none() {
        // It is told as begun, so that its end counts, whatever else is not known yet.
        return Standing::Asked;
    }
    let may_size = matches!(desired.owner, ReplicaOwner::MachinePool | ReplicaOwner::External(_));
    if !may_size || !observed.group.is_settled() || (desired.rotates && group.settings.launch != *wished) {
        return Standing::Held;
    }
    if observed.refreshes.is_none() {
        return Standing::Unread;
    }
    if let Some(refresh) = counted {
        match RefreshEnd::of(refresh).filter(|_| !ends::was_by_us(case, refresh)) {
            Some(end) => return Standing::Failed(end),
            None if !ends::is_shown(case, refresh) => return Standing::Unread,
            None if ends::is_in_vain(case, wished) => return Standing::Failed(RefreshEnd::in_vain()),
            None => {}
        }
    }
    if asked {
        return Standing::Asked;
    }
    let opening = desired.disruption.opening(case.now);
    if !opening.is_open() {
        return Standing::Closed(opening);
    }
    if observed.hook.as_ref().is_none_or(|hook| *hook != desired.hook) {
        // What AWS ends without our hook ends undrained.
        return Standing::Held;
    }
    if Budget::of(case).room_of_refreshes() == 0 { Standing::OutOfBudget } else { Standing::Start }
}

/// Whether rollouts may take instances away at all now.
fn may_begin(case: &Case<'_>) -> bool {
    let desired = case.desired;
    desired.rollout.mode != RolloutMode::Paused && desired.disruption.opening(case.now).is_open()
}

/// How much longer a wish may change with what belongs to it.
fn settling(case: &Case<'_>) -> Option<TimeDelta> {
    Some(STABLE - rollout::wish_age(case)).filter(|wait| *wait > TimeDelta::zero())
}

impl Refresh<'_> {
    /// Whether outdated instances are AWS's to replace now, so that nobody else adds or ends any for a rollout.
    #[must_use]
    pub fn takes_over(&self) -> bool {
        self.standing != Standing::Idle
    }

    /// Whether the group's template and policy are to stay as they are.
    #[must_use]
    pub fn holds_launch(&self) -> bool {
        self.holds_launch
    }

    /// Asks for the listing where it is missing or too old, and tells when to look again.
    pub fn ask(&self, case: &Case<'_>, plan: &mut Plan) {
        let Some(believed) = self.believed else { return };
        plan.needs.refreshes |= is_as_old_as(case, believed);
        let is_moving =
            !matches!(self.active.map(|refresh| &refresh.status), None | Some(RefreshStatus::Baking));
        plan.in_transition |= is_moving;
        if self.active.is_some() {
            plan.look_again_within(believed);
            // It is to stop where it is once that closes.
            if let Opening::Open { until, .. } = case.desired.disruption.opening(case.now) {
                plan.look_again_within(until - case.now);
            }
        }
        if self.unwanted().is_some_and(|refresh| refresh.status != RefreshStatus::Cancelling) {
            plan.needs.refreshes |= !is_fresh(case);
        }
        plan.in_transition |= matches!(self.standing, Standing::Unread | Standing::Asked);
        if believed == LIST_LAG {
            plan.look_again_within(believed);
        }
        match &self.standing {
            Standing::Unwanted(_) | Standing::TakenBack if self.is_news(case) => {
                plan.look_again_within(TOLD);
            }
            Standing::Settling(wait) => plan.look_again_within(*wait),
            Standing::Held | Standing::OutOfBudget => plan.look_again_within(HOLD),
            Standing::Closed(Opening::Closed { next: Some((at, _)) }) => {
                plan.look_again_within(*at - case.now);
            }
            _ => {}
        }
    }

    /// The refresh that we end, or ended last: the status names it before the call is made, so that its end is never
    /// taken for a failure.
    #[must_use]
    pub fn ended(&self, case: &Case<'_>) -> Option<String> {
        let ours = self.unwanted().filter(|_| is_fresh(case)).map(|refresh| refresh.id.clone());
        let told = case.memory.rollout.as_ref().and_then(|told| told.ended_refresh_id.clone());
        ours.or_else(|| told.filter(|_| !self.goes_on_after_all(case)))
    }

    /// Whether the refresh that the status names is wanted again and was never asked to end, or AWS did not hear it: from
    /// here on its end is none of ours.
    fn goes_on_after_all(&self, case: &Case<'_>) -> bool {
        let may_be_heard = is_behind(case, case.memory.refresh_end_asked.max(case.memory.began), HEARD);
        let goes_on = |status: &RefreshStatus| {
            matches!(status, RefreshStatus::Pending | RefreshStatus::InProgress | RefreshStatus::Baking)
        };
        self.standing == Standing::Active
            && !may_be_heard
            && self.active.is_some_and(|refresh| ends::is_by_us(case, refresh) && goes_on(&refresh.status))
    }

    fn unwanted(&self) -> Option<&InstanceRefresh> {
        let is_to_end = matches!(self.standing, Standing::Unwanted(_) | Standing::TakenBack);
        self.active.filter(|_| is_to_end)
    }

    /// Whether a refresh is to end and the status does not say so yet. Nothing is launched before that: with more
    /// replicas AWS would take more away at once.
    #[must_use]
    pub fn is_news(&self, case: &Case<'_>) -> bool {
        self.unwanted().is_some_and(|refresh| !ends::is_by_us(case, refresh))
    }

    /// The call that ends the refresh, if it is one to end and the status said so.
    fn ending(&self, case: &Case<'_>) -> Option<Write> {
        let refresh = self.active.filter(|refresh| ends::is_by_us(case, refresh))?;
        let group = case.desired.group.clone();
        match &self.standing {
            // It ends already.
            _ if refresh.status == RefreshStatus::Cancelling => None,
            Standing::Unwanted(_) => Some(Write::CancelInstanceRefresh { group }),
            Standing::TakenBack => Some(Write::RollbackInstanceRefresh { group }),
            _ => None,
        }
    }

    /// Ends a refresh that is to replace nothing more, or goes back. That it is told is all that this waits for.
    pub fn end(&self, case: &Case<'_>, plan: &mut Plan) {
        if let Some(write) = self.ending(case).filter(|_| !plan.needs.refreshes) {
            plan.cloud(write);
        }
    }

    /// The end that is to be marked, so that the same wish is not tried again by itself.
    #[must_use]
    pub fn failed(&self) -> Option<&RefreshEnd> {
        match &self.standing {
            Standing::Failed(end) => Some(end),
            _ => None,
        }
    }

    /// Starts a refresh, if one is due.
    pub fn start(&self, case: &Case<'_>, group: &Group, pin: &Pin, plan: &mut Plan) {
        if self.standing != Standing::Start || plan.needs.refreshes {
            return;
        }
        if !case.observed.fresh_hook {
            // Somebody may have deleted it since.
            plan.needs.fresh_hook = true;
            return;
        }
        let Some(wished) = wished(case, pin) else { return };
        let way_back = group.settings.launch.template.version.is_some();
        let start = StartRefresh {
            group: case.desired.group.clone(),
            preferences: share::preferences(case, !case.desired.rotates && way_back),
            desired: (!case.desired.rotates).then_some(wished),
        };
        plan.in_transition = true;
        plan.cloud(Write::StartInstanceRefresh(Box::new(start)));
    }

    /// Whether a listing that is not too old says that no refresh is under way. Asks for it where it is missing.
    #[must_use]
    pub fn is_known_to_be_none(&self, case: &Case<'_>, plan: &mut Plan) -> bool {
        if self.active.is_some() {
            return false;
        }
        if is_behind(case, case.memory.refresh_asked, LIST_LAG) {
            plan.look_again_within(LIST_LAG);
            return false;
        }
        let unknown = is_as_old_as(case, LOOK);
        plan.needs.refreshes |= unknown;
        !unknown
    }
}
