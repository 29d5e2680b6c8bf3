//! Instance refreshes: how one goes on, step by step, until it succeeds, fails, or is rolled back.
//!
//! What AWS does not document is guessed, and told in the README: the pace of steps, that one instance at a time is
//! replaced where percentages would allow none, which instance goes first, and that a drain behind a terminate hook does
//! not count as progress.

use std::collections::BTreeSet;

use chrono::Duration;

use super::{
    Group, Lifecycle, Membership, ends,
    launch_source::LaunchSource,
    members,
    refresh::{Odd, Refresh, RefreshStatus, Rollback},
};
use crate::{
    ec2::Instance,
    events::Event,
    region::{Region, State},
    time::timestamp,
};

/// Without progress for this long a refresh fails.
const STALLED: Duration = Duration::hours(1);
/// A refresh lasts this long at most.
const LONGEST: Duration = Duration::days(14);

/// The next step of a refresh, if it is still under way.
pub(crate) fn step(region: &mut Region, name: &str, id: &str) {
    let Some(group) = region.state.groups.get(name).filter(|group| !group.deleting()) else { return };
    let Some(refresh) = group.refresh().filter(|refresh| refresh.id == id) else { return };
    let before = refresh.status;
    match refresh.status {
        RefreshStatus::Cancelling => settle_cancel(region, name, true),
        _ if group.is_suspended("InstanceRefresh") => {
            // Paused, not failed: the time does not count.
            let now = region.now;
            with(region, name, |refresh| refresh.progressed = now);
        }
        RefreshStatus::Pending => begin(region, name),
        _ => go_on(region, name),
    }
    let active = region.state.groups.get(name).and_then(Group::refresh).filter(|own| own.id == id);
    if let Some(status) = active.map(|own| own.status) {
        // A way back is told of where it begins.
        if status != before && status != RefreshStatus::RollbackInProgress {
            region.emit_refresh(name, id, status);
        }
        region.schedule(region.settings.refresh_millis, Event::Refresh(name.to_owned(), id.to_owned()));
    }
}

fn with(region: &mut Region, name: &str, change: impl FnOnce(&mut Refresh)) {
    if let Some(refresh) = region.state.groups.get_mut(name).and_then(Group::refresh_mut) {
        change(refresh);
    }
}

/// Chooses what is to be replaced; with nothing to replace it succeeds at once.
fn begin(region: &mut Region, name: &str) {
    let now = region.now;
    let Some(group) = region.state.groups.get(name) else { return };
    let Some(refresh) = group.refresh() else { return };
    let target = group.launches_from();
    let skipped = |instance: &Instance, own: &Membership| {
        refresh.preferences.skip_matching && matches(&region.state, target, instance, own)
    };
    let left_out = |own: &Membership| match own.lifecycle {
        Lifecycle::Standby | Lifecycle::EnteringStandby => refresh.preferences.standby == Odd::Ignore,
        _ => own.protected && refresh.preferences.protected == Odd::Ignore,
    };
    let old: BTreeSet<String> = members(&region.state, group)
        .filter(|(instance, own)| {
            !own.lifecycle.ending()
                && own.lifecycle != Lifecycle::Detaching
                && !skipped(instance, own)
                && !left_out(own)
        })
        .map(|(instance, _)| instance.id.clone())
        .collect();
    with(region, name, |refresh| {
        refresh.status = RefreshStatus::InProgress;
        refresh.started = Some(now);
        refresh.progressed = now;
        refresh.left = old.len();
        refresh.old = old;
    });
    go_on(region, name);
}

/// Whether an instance is as the configuration would launch it: template, version and type.
fn matches(state: &State, target: &LaunchSource, instance: &Instance, own: &Membership) -> bool {
    target.candidates().iter().any(|(specification, kind)| {
        let template = state.template(Some(&specification.id), None);
        let Some((number, version)) = template.and_then(|own| own.version(&specification.version)) else {
            return false;
        };
        let kind = kind.or_else(|| version.data.text_of("InstanceType")).unwrap_or_default();
        own.template.as_ref().is_some_and(|from| from.id == specification.id && from.number == number)
            && instance.kind == kind
    })
}

/// What a step goes by.
struct Picture {
    desired: usize,
    /// Counted in desired capacity.
    counted: usize,
    /// In service, healthy, warmed up if new.
    ready: usize,
    /// To be replaced and not on their way out, in the order in which they go.
    left: Vec<String>,
    /// Of these, the ones that wait for somebody.
    waiting: usize,
    /// New ones that are not ready, and old ones that still end.
    moving: usize,
    /// Of these, the new ones.
    warming: Vec<String>,
    total: usize,
}

fn picture(region: &Region, group: &Group, refresh: &Refresh) -> Picture {
    let own_warmup = refresh.preferences.warmup;
    let warmup = own_warmup
        .or_else(|| group.number("DefaultInstanceWarmup").filter(|seconds| *seconds >= 0))
        .or_else(|| group.number("HealthCheckGracePeriod"));
    let warmup = Duration::seconds(warmup.unwrap_or(0));
    let mut picture = Picture {
        desired: usize::try_from(group.desired).unwrap_or_default(),
        counted: 0,
        ready: 0,
        left: Vec::new(),
        waiting: 0,
        moving: 0,
        warming: Vec::new(),
        total: refresh.old.len(),
    };
    let mut left = Vec::new();
    for (instance, own) in members(&region.state, group) {
        let old = refresh.old.contains(&instance.id);
        picture.counted += usize::from(own.lifecycle.counts());
        let warm = old
            || own.in_service.is_some_and(|since| {
                refresh.started.is_some_and(|started| since < started) || region.since(since) >= warmup
            });
        let ready = own.lifecycle == Lifecycle::InService && own.healthy && warm;
        picture.ready += usize::from(ready);
        let in_standby = matches!(own.lifecycle, Lifecycle::Standby | Lifecycle::EnteringStandby);
        if old && (own.lifecycle.counts() || in_standby) {
            let odd = if in_standby { refresh.preferences.standby } else { refresh.preferences.protected };
            if (in_standby || own.protected) && odd == Odd::Wait {
                picture.waiting += 1;
            }
            left.push((own.healthy, instance.launched, instance.id.clone()));
        } else if old || (own.lifecycle.counts() && !ready) {
            picture.moving += 1;
            if !old {
                picture.warming.push(instance.id.clone());
            }
        }
    }
    left.sort();
    picture.left = left.into_iter().map(|(.., id)| id).collect();
    picture
}

/// One step of a refresh or of its rollback.
fn go_on(region: &mut Region, name: &str) {
    let now = region.now;
    let Some(group) = region.state.groups.get(name) else { return };
    let Some(refresh) = group.refresh().cloned() else { return };
    let rolling_back = refresh.rollback.is_some();
    if let Some(alarm) = refresh.preferences.alarms.iter().find(|alarm| region.alarms.contains(*alarm))
        && !rolling_back
    {
        let why = format!("Alarm {alarm} went into the ALARM state.");
        return fail(region, name, &why);
    }
    let picture = picture(region, group, &refresh);
    let updated = picture.total.saturating_sub(picture.left.len() + picture.moving);
    let percentage = (100 * updated).checked_div(picture.total).unwrap_or(100);
    // A rollback's own percentage decreases.
    let moved = picture.left.len() != refresh.left || (!rolling_back && percentage != refresh.percentage);
    with(region, name, |refresh| {
        refresh.percentage = if rolling_back { refresh.percentage.min(100 - percentage) } else { percentage };
        refresh.left = picture.left.len();
        refresh.extra = refresh.extra.min(picture.left.len());
        if moved || refresh.until.is_some() {
            refresh.progressed = now;
        }
        if refresh.until.is_none() && !rolling_back {
            refresh.reason = example(&picture, now.timestamp());
        }
    });
    if picture.left.is_empty() && picture.moving == 0 && picture.counted >= picture.desired {
        return finish(region, name, &refresh);
    }
    if refresh.started.is_some_and(|started| now - started >= LONGEST) {
        return fail(region, name, "The instance refresh took longer than 14 days.");
    }
    if !moved && refresh.until.is_none() && now - refresh.progressed >= STALLED {
        let why = if picture.waiting > 0 {
            "Instances that are protected from scale in or in Standby were waited for, for one hour."
        } else {
            "The instance refresh made no progress for one hour."
        };
        return fail(region, name, why);
    }
    let Some(room) = checkpoint(region, name, &refresh, &picture) else { return };
    replace(region, name, &refresh, &picture, room);
}

/// What AWS says while instances warm up: it names one of them, and not always the same.
fn example(picture: &Picture, seconds: i64) -> Option<String> {
    let turn = usize::try_from(seconds / 10).unwrap_or_default();
    let id = picture.warming.get(turn.checked_rem(picture.warming.len())?)?;
    Some(format!(
        "Waiting for instances to warm up before continuing. For example: {} is warming up.",
        id.trim_start_matches("i-")
    ))
}

/// How many more may be replaced before the next checkpoint; `None` while one is waited at.
fn checkpoint(region: &mut Region, name: &str, refresh: &Refresh, picture: &Picture) -> Option<usize> {
    let now = region.now;
    let begun = picture.total - picture.left.len();
    let next = refresh.preferences.checkpoints.get(refresh.passed).filter(|_| refresh.rollback.is_none());
    let Some(percentage) = next.and_then(|own| usize::try_from(*own).ok()) else {
        let ends = refresh.preferences.checkpoints.last().is_some_and(|last| *last < 100);
        if ends && refresh.rollback.is_none() {
            finish(region, name, refresh);
            return None;
        }
        return Some(picture.left.len());
    };
    let allowed = (picture.total * percentage).div_ceil(100);
    if begun < allowed || picture.moving > 0 || percentage >= 100 {
        return Some(allowed.saturating_sub(begun));
    }
    match refresh.until {
        None => {
            let until = now + refresh.preferences.checkpoint_delay;
            with(region, name, |refresh| {
                refresh.until = Some(until);
                refresh.reason =
                    Some(format!("Waiting at the checkpoint of {percentage}% until {}.", timestamp(until)));
            });
            None
        }
        Some(until) if now < until => None,
        Some(_) => {
            with(region, name, |refresh| {
                refresh.until = None;
                refresh.reason = None;
                refresh.passed += 1;
            });
            None
        }
    }
}

/// Ends old instances and launches new ones before, as far as the percentages go.
fn replace(region: &mut Region, name: &str, refresh: &Refresh, picture: &Picture, room: usize) {
    let Some(group) = region.state.groups.get(name) else { return };
    if group.is_suspended("Launch") || group.is_suspended("Terminate") {
        return;
    }
    let share = |percentage: i64| usize::try_from(percentage).unwrap_or_default() * picture.desired;
    let least = share(refresh.preferences.min).div_ceil(100);
    let mut may_end = picture.ready.saturating_sub(least);
    if let Some(max) = refresh.preferences.max {
        // Where the two leave no room, one is launched first.
        let beyond = (share(max) / 100).saturating_sub(picture.desired);
        let beyond = beyond.max(usize::from(least >= picture.desired)).min(picture.left.len()).min(room);
        if beyond > refresh.extra && may_end <= refresh.extra {
            with(region, name, |refresh| refresh.extra = beyond);
            region.reconsider(name);
        }
    } else if may_end == 0 && picture.moving == 0 && picture.counted >= picture.desired {
        may_end = 1;
    }
    let waits = |own: &Membership| match own.lifecycle {
        Lifecycle::Standby | Lifecycle::EnteringStandby => refresh.preferences.standby == Odd::Wait,
        _ => own.protected && refresh.preferences.protected == Odd::Wait,
    };
    let victims: Vec<(String, bool)> = picture
        .left
        .iter()
        .filter_map(|id| {
            let own = region.state.instances.get(id)?.group.as_ref()?;
            (!waits(own)).then(|| (id.clone(), own.lifecycle.counts()))
        })
        .take(may_end.min(room))
        .collect();
    let now = region.now;
    let cause = format!(
        "At {} an instance was taken out of service in response to an instance refresh.",
        timestamp(now)
    );
    for (id, counts) in victims {
        with(region, name, |refresh| {
            if counts {
                refresh.extra = refresh.extra.saturating_sub(1);
            }
            refresh.progressed = now;
        });
        ends::begin(region, &id, &cause);
    }
}

/// Everything is replaced: a bake time, then success; the group takes over the desired configuration.
fn finish(region: &mut Region, name: &str, refresh: &Refresh) {
    let now = region.now;
    let rolling_back = refresh.rollback.is_some();
    if !rolling_back && !refresh.preferences.bake.is_zero() {
        match refresh.until.filter(|_| refresh.status == RefreshStatus::Baking) {
            None => {
                return with(region, name, |own| {
                    own.status = RefreshStatus::Baking;
                    own.until = Some(now + own.preferences.bake);
                });
            }
            Some(until) if now < until => return,
            Some(_) => {}
        }
    }
    let Some(group) = region.state.groups.get_mut(name) else { return };
    if let Some((source, _)) = refresh.desired.clone().filter(|_| !rolling_back) {
        group.source = source;
    }
    let status = if rolling_back { RefreshStatus::RollbackSuccessful } else { RefreshStatus::Successful };
    over(region, name, status, None);
}

fn fail(region: &mut Region, name: &str, why: &str) {
    let refresh = region.state.groups.get(name).and_then(Group::refresh);
    let (rolling_back, automatic) =
        refresh.map_or((false, false), |own| (own.rollback.is_some(), own.preferences.auto_rollback));
    if rolling_back {
        over(region, name, RefreshStatus::RollbackFailed, Some(why));
    } else if automatic {
        roll_back(region, name, why);
    } else {
        over(region, name, RefreshStatus::Failed, Some(why));
    }
}

fn over(region: &mut Region, name: &str, status: RefreshStatus, why: Option<&str>) {
    let now = region.now;
    let id = region.state.groups.get(name).and_then(Group::refresh).map(|refresh| refresh.id.clone());
    with(region, name, |refresh| {
        refresh.ended = Some(now);
        refresh.extra = 0;
        if let Some(why) = why {
            refresh.reason = Some(why.to_owned());
        }
        // Last: one that is over is not changed any more.
        refresh.status = status;
    });
    if let Some(id) = id {
        region.emit_refresh(name, &id, status);
    }
    region.reconsider(name);
}

/// Turns round: what was launched since the start is replaced from the group's own configuration.
pub(crate) fn roll_back(region: &mut Region, name: &str, why: &str) {
    let now = region.now;
    let Some(group) = region.state.groups.get(name) else { return };
    let Some(refresh) = group.refresh() else { return };
    let (id, started) = (refresh.id.clone(), refresh.started.unwrap_or(now));
    let new: BTreeSet<String> = members(&region.state, group)
        .filter(|(instance, own)| instance.launched >= started && !own.lifecycle.ending())
        .map(|(instance, _)| instance.id.clone())
        .collect();
    with(region, name, |refresh| {
        refresh.rollback = Some(Rollback {
            reason: why.to_owned(),
            started: now,
            percentage: refresh.percentage,
            left: refresh.left,
        });
        refresh.status = RefreshStatus::RollbackInProgress;
        refresh.reason = Some(why.to_owned());
        refresh.started.get_or_insert(now);
        refresh.old = new;
        refresh.extra = 0;
        refresh.until = None;
        refresh.progressed = now;
    });
    region.emit_refresh(name, &id, RefreshStatus::RollbackInProgress);
    region.reconsider(name);
}

/// A cancelled refresh is over once nothing is on its way, or at once.
pub(crate) fn settle_cancel(region: &mut Region, name: &str, wait: bool) {
    let Some(group) = region.state.groups.get(name) else { return };
    let moving = members(&region.state, group)
        .any(|(_, own)| !matches!(own.lifecycle, Lifecycle::InService | Lifecycle::Standby));
    if !(wait && moving) {
        over(region, name, RefreshStatus::Cancelled, None);
    }
}
