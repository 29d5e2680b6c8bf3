//! The engine `InstanceRefresh`: AWS replaces the outdated instances, our hook holds each until its Node is drained, and
//! this starts, follows and ends the refreshes.
//!
//! All of its state is AWS's own: which refresh is for which wish follows from the configuration that it names, or from
//! when it started. With bootstrap data that stay as they are, a refresh names the wished configuration, and the group's
//! own is left alone until AWS takes it over on success; so there is a way back. Data that rotate need a template that can
//! be updated at any time, which AWS refuses beside such a refresh: then the group's own configuration is refreshed.

use capasg_api::pool::{OnRefreshFailure, Opening, RolloutMode, RolloutType, RolloutWait};
use capasg_cloud::{Group, InstanceRefresh, Launch, RefreshPreferences, RefreshStatus, StartRefresh, Write};
use chrono::TimeDelta;

use super::super::state::{Case, LaunchWish, Plan, RefreshEnd, ReplicaOwner, RolloutPhase, TemplateView};
use super::{
    budget::Budget,
    deadline,
    launch_template::{Pin, stamps},
    members,
    rolling::STABLE,
    rollout::{self, Outdated},
};

/// How often a refresh under way is looked at.
const LOOK: TimeDelta = TimeDelta::seconds(15);
/// The same while it bakes.
const BAKES: TimeDelta = TimeDelta::seconds(60);
/// A listing that is older than this is read again before a refresh is started.
const START: TimeDelta = TimeDelta::seconds(60);
/// Else a listing is believed for this long.
const BELIEVED: TimeDelta = TimeDelta::hours(1);
/// For this long a wish without a version is waited for before it counts as refused.
const HOLD: TimeDelta = TimeDelta::seconds(60);
/// A view of the group that is not younger than a refresh's end by this much may show what was before.
const LIST_LAG: TimeDelta = TimeDelta::seconds(10);
/// Refreshes that succeed and leave instances outdated: the second within this time is the last.
const IN_VAIN: TimeDelta = TimeDelta::hours(1);

/// What is known of the group's refreshes, and what is to come of it.
#[derive(Debug)]
pub struct Refresh<'a> {
    /// The one under way, whoever started it.
    pub active: Option<&'a InstanceRefresh>,
    standing: Standing,
    /// Whether the group's template and policy are to stay as they are.
    holds_launch: bool,
    /// Whether the listing was ever read, and for how long it is believed.
    believed: Option<TimeDelta>,
}

/// Where the engine stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// Nothing is for AWS to replace.
    Idle,
    /// A refresh is under way that is for the wish, or none of our business.
    Active,
    /// One is under way for another wish: it ends first.
    Obsolete,
    /// The same, and the group's own configuration is wished again.
    TakenBack,
    /// What there is was not read, or a view does not show the end of the last refresh yet.
    Unread,
    Paused,
    Closed(Opening),
    Settling(TimeDelta),
    Held,
    Refused,
    OutOfBudget,
    /// The last refresh for the wish did not succeed; it was told.
    Stopped(Option<RefreshEnd>),
    /// It did not succeed, and that is new.
    Failed(RefreshEnd),
    Start,
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
    let was_followed = memory.rollout.as_ref().is_some_and(|told| told.type_ == RolloutType::InstanceRefresh);
    let standing = match active {
        Some(refresh) if is_engine => under_way(case, group, refresh, wished.as_ref(), outdated),
        Some(_) => Standing::Active,
        None if concerned => between(case, group, wished.as_ref()),
        None => Standing::Idle,
    };
    let believed = match (&standing, active) {
        (_, Some(refresh)) if refresh.status == RefreshStatus::Baking => Some(BAKES),
        (_, Some(_)) => Some(LOOK),
        (Standing::Start, _) => Some(START),
        (Standing::Unread, _) => Some(BELIEVED.min(START)),
        _ if concerned || was_followed || memory.launch_refused || (is_engine && differs) => Some(BELIEVED),
        _ => None,
    };
    // An update that AWS would refuse is not tried; one that would take the way back away is not made.
    let holds_launch = active.is_some_and(|refresh| refresh.desired.is_some())
        || (concerned && !desired.rotates)
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
    let Some(wished) = wished else { return Standing::Active };
    // A new wish may change once more, and what is not known here is left alone.
    // A preview holds the wish to what the group launches, which is none to go back to.
    if case.desired.previews || settling(case).is_some() || is_for_wish(case, refresh, wished, outdated) {
        return Standing::Active;
    }
    match refresh.status {
        RefreshStatus::Cancelling | RefreshStatus::Other(_) => Standing::Active,
        RefreshStatus::RollbackInProgress if group.settings.launch == *wished => Standing::Active,
        RefreshStatus::Pending | RefreshStatus::InProgress | RefreshStatus::Baking
            if refresh.desired.is_some()
                && group.settings.launch == *wished
                && !case.memory.rollback_refused =>
        {
            Standing::TakenBack
        }
        _ => Standing::Obsolete,
    }
}

/// None is under way and some instances are outdated.
fn between(case: &Case<'_>, group: &Group, wished: Option<&Launch>) -> Standing {
    let Case { desired, observed, .. } = *case;
    let newest = observed.refreshes.as_ref().and_then(|view| view.refreshes.first());
    let ended = newest.zip(wished).filter(|(refresh, wished)| {
        refresh.status.is_over() && is_for_wish(case, refresh, wished, &Outdated::default())
    });
    let ended = ended.map(|(refresh, _)| refresh);
    if desired.rollout.mode == RolloutMode::Paused {
        return Standing::Paused;
    }
    if deadline::is_stopped(case) {
        return Standing::Stopped(ended.and_then(RefreshEnd::of));
    }
    if matches!(desired.launch, LaunchWish::Unknown) {
        return Standing::Held;
    }
    if let Some(wait) = settling(case) {
        return Standing::Settling(wait);
    }
    let Some(wished) = wished else {
        return if age(case) < HOLD { Standing::Held } else { Standing::Refused };
    };
    let may_size = matches!(desired.owner, ReplicaOwner::MachinePool | ReplicaOwner::External(_));
    if !may_size || !observed.group.is_settled() || (desired.rotates && group.settings.launch != *wished) {
        return Standing::Held;
    }
    if observed.refreshes.is_none() {
        return Standing::Unread;
    }
    if let Some(refresh) = ended.filter(|refresh| counts(case, refresh)) {
        match RefreshEnd::of(refresh) {
            Some(end) => return Standing::Failed(end),
            None if !shows_the_end(case, refresh) => return Standing::Unread,
            None if is_in_vain(case, wished) => return Standing::Failed(RefreshEnd::in_vain()),
            None => {}
        }
    }
    let opening = desired.disruption.opening(case.now);
    if !opening.is_open() {
        return Standing::Closed(opening);
    }
    if Budget::of(case).room_of_rollouts() == 0 { Standing::OutOfBudget } else { Standing::Start }
}

/// How much longer a wish may change with what belongs to it.
fn settling(case: &Case<'_>) -> Option<TimeDelta> {
    Some(STABLE - age(case)).filter(|wait| *wait > TimeDelta::zero())
}

/// For how long the wish has been the same, as far as this process knows.
fn age(case: &Case<'_>) -> TimeDelta {
    let identity = rollout::identity(case.desired, case.observed);
    let since = case.memory.wish.as_ref().filter(|(known, _)| Some(known) == identity.as_ref());
    since.map_or(TimeDelta::zero(), |(_, since)| case.now - *since)
}

/// Whether a refresh replaces by the wish.
///
/// One with a desired configuration does if its version would not make an instance outdated and it launches the same
/// types. One without launches whatever the group launches; it is for the wish if a version of the wish was there when it
/// started. A wish that went back to an older version is not told apart from that: such a refresh goes on, and what it
/// leaves outdated is refreshed after it.
fn is_for_wish(case: &Case<'_>, refresh: &InstanceRefresh, wished: &Launch, outdated: &Outdated) -> bool {
    let (Some(wish), TemplateView::Present { id, versions, .. }) =
        (rollout::wish(case.desired, case.observed), &case.observed.template)
    else {
        return true;
    };
    let stamps = stamps(case.observed);
    let Some(launch) = &refresh.desired else {
        let Some(started) = refresh.started_at else { return true };
        return stamps.iter().any(|(number, stamp)| {
            let created = versions.get(number).map(|version| version.created_at);
            !stamp.outdated_under(&wish) && created.is_some_and(|created| created <= started)
        });
    };
    if launch == wished {
        return true;
    }
    let version = launch.template.version.filter(|_| launch.template.id == *id);
    let same = version.and_then(|version| stamps.get(&version)).is_some_and(|it| !it.outdated_under(&wish));
    let types = |launch: &Launch| launch.mixed.as_ref().map(|mixed| mixed.instance_types.clone());
    // Without a policy the type is in the version, and shows in what it launched.
    let launched_others = members::live(case.observed).any(|(member, m)| {
        let from = m.instance.as_ref().and_then(|instance| instance.template.as_ref());
        from.is_some_and(|(_, from)| Some(*from) == version) && outdated.is_outdated(member)
    });
    same && types(launch) == types(wished) && !launched_others
}

/// Whether the end of a refresh is one of the rollout that is under way: a wish that comes back later, or that a person
/// lets go on by taking the mark off, begins anew.
fn counts(case: &Case<'_>, refresh: &InstanceRefresh) -> bool {
    let revision = rollout::revision(case.desired, case.observed);
    let told = case.memory.rollout.as_ref().filter(|told| told.to_hash == revision);
    let told = told.filter(|told| told.waiting_for != Some(RolloutWait::Correction));
    told.and_then(|told| told.started_at)
        .zip(refresh.ended_at)
        .is_some_and(|(started, ended)| ended >= started)
}

fn shows_the_end(case: &Case<'_>, refresh: &InstanceRefresh) -> bool {
    let seen = case.observed.group.as_of();
    refresh.ended_at.zip(seen).is_none_or(|(ended, seen)| seen - ended >= LIST_LAG)
}

/// Whether refreshes for the wish succeeded twice not long ago, and instances are outdated all the same.
fn is_in_vain(case: &Case<'_>, wished: &Launch) -> bool {
    let all = case.observed.refreshes.iter().flat_map(|view| view.refreshes.iter());
    let lately = |refresh: &&InstanceRefresh| {
        refresh.status == RefreshStatus::Successful
            && refresh.ended_at.is_some_and(|ended| case.now - ended < IN_VAIN)
            && counts(case, refresh)
            && is_for_wish(case, refresh, wished, &Outdated::default())
    };
    all.filter(lately).count() >= 2
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
        let as_of = case.observed.refreshes.as_ref().map(|view| view.as_of);
        if as_of.is_none_or(|as_of| case.now - as_of >= believed) {
            plan.needs.refreshes = true;
        }
        let is_moving =
            !matches!(self.active.map(|refresh| &refresh.status), None | Some(RefreshStatus::Baking));
        plan.in_transition |= is_moving;
        if self.active.is_some() {
            plan.look_again_within(believed);
        }
        match &self.standing {
            Standing::Unread => {
                plan.in_transition = true;
                plan.look_again_within(LIST_LAG);
            }
            Standing::Settling(wait) => plan.look_again_within(*wait),
            Standing::Held | Standing::OutOfBudget => plan.look_again_within(HOLD),
            Standing::Closed(Opening::Closed { next: Some((at, _)) }) => {
                plan.look_again_within(*at - case.now);
            }
            _ => {}
        }
    }

    /// Ends a refresh that is for another wish, and marks a rollout whose refresh did not succeed. Nothing of this
    /// takes an instance away, so that it waits for nothing.
    pub fn end(&self, case: &Case<'_>, plan: &mut Plan) {
        let group = case.desired.group.clone();
        match &self.standing {
            Standing::Obsolete => plan.cloud(Write::CancelInstanceRefresh { group }),
            Standing::TakenBack => plan.cloud(Write::RollbackInstanceRefresh { group }),
            _ => {}
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
        let Some(wished) = wished(case, pin) else { return };
        let way_back = group.settings.launch.template.version.is_some();
        let start = StartRefresh {
            group: case.desired.group.clone(),
            preferences: preferences(case, !case.desired.rotates && way_back),
            desired: (!case.desired.rotates).then_some(wished),
        };
        plan.in_transition = true;
        plan.cloud(Write::StartInstanceRefresh(Box::new(start)));
    }

    /// Where the rollout stands, for conditions; `None` if there is none of AWS's.
    #[must_use]
    pub fn phase(&self, case: &Case<'_>, outdated: &Outdated) -> Option<RolloutPhase> {
        let leaving = case.observed.members.iter().filter(|(id, m)| {
            let ending = m.lifecycle().is_some_and(capasg_cloud::LifecycleState::is_terminating);
            m.is_leaving() && (ending || outdated.is_outdated(id))
        });
        let draining: Vec<String> =
            leaving.filter_map(|(_, m)| Some(m.machine.as_ref()?.name.clone())).collect();
        Some(match &self.standing {
            Standing::Idle => return None,
            Standing::Active | Standing::Obsolete | Standing::TakenBack => {
                let refresh = self.active?;
                let one_way = case.desired.rollout.type_ == RolloutType::InstanceRefresh
                    && case.desired.refresh.on_failure == OnRefreshFailure::RollBack
                    && refresh.desired.is_none();
                RolloutPhase::Refreshing {
                    status: refresh.status.as_str().to_owned(),
                    percentage: refresh.percentage,
                    words: refresh.reason.clone().or_else(|| refresh.rollback_reason.clone()),
                    draining,
                    obsolete: self.standing == Standing::Obsolete,
                    one_way,
                }
            }
            Standing::Start => RolloutPhase::Refreshing {
                status: RefreshStatus::Pending.as_str().to_owned(),
                percentage: None,
                words: None,
                draining,
                obsolete: false,
                one_way: case.desired.rotates
                    && case.desired.refresh.on_failure == OnRefreshFailure::RollBack,
            },
            Standing::Unread | Standing::Held | Standing::OutOfBudget => RolloutPhase::Held,
            Standing::Settling(_) => RolloutPhase::Settling,
            Standing::Refused => RolloutPhase::Refused,
            Standing::Paused => RolloutPhase::Paused { draining },
            Standing::Closed(opening) => {
                let next = match opening {
                    Opening::Closed { next } => *next,
                    _ => None,
                };
                RolloutPhase::Closed { draining, next }
            }
            Standing::Stopped(end) => RolloutPhase::Stopped { draining, refresh: end.clone() },
            Standing::Failed(end) => RolloutPhase::Stopped { draining, refresh: Some(end.clone()) },
        })
    }

    /// Whether a listing that is not too old says that no refresh is under way. Asks for it where it is missing.
    #[must_use]
    pub fn is_known_to_be_none(&self, case: &Case<'_>, plan: &mut Plan) -> bool {
        if self.active.is_some() {
            return false;
        }
        let as_of = case.observed.refreshes.as_ref().map(|view| view.as_of);
        let known = as_of.is_some_and(|as_of| case.now - as_of < LOOK);
        plan.needs.refreshes |= !known;
        known
    }
}

/// The preferences of the spec, with the pool's budget kept: AWS may take away no more at once than that.
fn preferences(case: &Case<'_>, way_back: bool) -> RefreshPreferences {
    let wanted = &case.desired.refresh;
    let least = Budget::of(case).most_of_rollouts().map(|most| {
        let replicas = i64::from(case.desired.replicas.max(1));
        let kept = (replicas - i64::try_from(most).unwrap_or(replicas)).max(0);
        i32::try_from((kept * 100 + replicas - 1) / replicas).unwrap_or(100)
    });
    RefreshPreferences {
        min_healthy_percentage: wanted.min_healthy_percentage.max(least.unwrap_or(0)),
        max_healthy_percentage: wanted.max_healthy_percentage,
        instance_warmup: wanted.instance_warmup_seconds,
        checkpoint_percentages: wanted.checkpoint_percentages.clone(),
        checkpoint_delay: wanted.checkpoint_delay_seconds,
        bake_time: wanted.bake_time_seconds,
        alarms: wanted.alarms.clone(),
        skip_matching: true,
        auto_rollback: way_back && wanted.on_failure == OnRefreshFailure::RollBack,
        // All instances of a pool are protected: AWS would wait an hour and fail (aws-facts.md 0.4).
        protected_instances: "Refresh".to_owned(),
        standby_instances: wanted.standby_instances.as_str().to_owned(),
    }
}
