//! Whether launches succeed: when the group's scaling activities are read, and what they report.
//!
//! For this, activities are read only while instances are missing, or while an instance refresh makes no progress: soon after
//! a launch does not happen, or when an instance that was launched does not enter service, and then at increasing
//! intervals. Nothing is read for a pool that is complete.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use capasg_api::{
    ASGMachinePoolStatus,
    conditions::{self, SCALING_HEALTHY},
};
use capasg_cloud::{ActivityStatus, CloudError, LaunchBlocker, LaunchFailure, Result, ScalingActivity};
use chrono::{DateTime, TimeDelta, Utc};

use crate::backoff::Curve;
use crate::machine_pool::model::memory::capacity_view::{CapacityView, LaunchInputs, RefreshProgress};

/// AWS launches missing instances within seconds: a launch that did not happen by then may have failed.
const MISSING_FOR: TimeDelta = TimeDelta::seconds(10);
/// A launched instance enters service within minutes, or may have terminated.
const STUCK_FOR: TimeDelta = TimeDelta::minutes(3);
/// The delays between two reads while launches fail.
const REREAD: Curve = Curve { first: Duration::from_secs(15), longest: Duration::from_mins(5) };
/// A launch may have failed this long before a poll showed that an instance is missing: the interval of the slow poll,
/// plus the clock skew up to which AWS accepts signatures.
const LOOKBACK: TimeDelta = TimeDelta::minutes(6);
/// Failures that are older than this, counted from the newest, are ignored.
const WINDOW: TimeDelta = TimeDelta::hours(1);
/// A reported failure stays reported while it is among this many newest failures: AWS tries zones and types in turn,
/// and a message that changes with each would be written each time.
const RECURS_WITHIN: usize = 6;
/// A new message about a blocker that is reported already is reported no sooner than this.
const SAME_BLOCKER: TimeDelta = TimeDelta::hours(1);
/// The number of failures whose places are named.
const PLACES_OF: usize = 12;

/// What is known of the launches of one pool.
#[derive(Debug, Clone, Default)]
pub struct LaunchWatch {
    shortage: Option<Shortage>,
    recovered_at: Option<DateTime<Utc>>,
    /// The blockers that events were published for since launches last succeeded, with the last message and its time.
    published: BTreeMap<LaunchBlocker, (String, DateTime<Utc>)>,
    last_update: LaunchUpdate,
}

/// A time in which fewer instances are in service than are desired, or in which an instance refresh replaces instances.
#[derive(Debug, Clone)]
struct Shortage {
    since: DateTime<Utc>,
    missing_since: Option<DateTime<Utc>>,
    progress_at: DateTime<Utc>,
    in_service: i32,
    is_trying: bool,
    /// The furthest progress of an instance refresh.
    refresh: Option<RefreshProgress>,
    /// Whether no instance is missing, while an instance refresh replaces some.
    is_complete: bool,
    inputs: LaunchInputs,
    /// When the group's launch settings changed. Earlier failures do not count once a launch was tried after that.
    changed_at: Option<DateTime<Utc>>,
    read_at: Option<DateTime<Utc>>,
    reads: u32,
    /// The failures that were counted, by activity, with their times.
    counted: BTreeMap<String, DateTime<Utc>>,
    blocked: Option<Blocked>,
    unread: Option<CloudError>,
}

/// What prevents instances from being launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The blocker.
    pub blocker: LaunchBlocker,
    /// AWS's message.
    pub message: String,
    /// The instance types and zones concerned, as far as AWS names them.
    pub places: BTreeSet<Place>,
    /// The first place that AWS named.
    pub first: Place,
    /// When the blocker was first met.
    pub since: DateTime<Utc>,
    /// When AWS first returned this message.
    pub message_at: DateTime<Utc>,
}

/// The instance type and the zone of a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The type.
    pub instance_type: Option<String>,
    /// The zone.
    pub zone: Option<String>,
}

/// The instance types and subnets of a pool, by which the place of a failure is completed.
#[derive(Debug, Clone, Copy)]
pub struct PlaceNames<'a> {
    /// The pool's types.
    pub types: &'a [String],
    /// Zones by subnet.
    pub zones: &'a BTreeMap<String, String>,
}

/// The result of one read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchUpdate {
    /// Failures that were not counted yet.
    pub new_failures: Vec<LaunchBlocker>,
    /// Whether an event is due.
    pub event_due: bool,
}

impl LaunchWatch {
    /// Records the capacity of the group as it is observed now. A new leader continues with what the status reports.
    pub(super) fn observe(
        &mut self,
        view: &CapacityView,
        status: Option<&ASGMachinePoolStatus>,
        now: DateTime<Utc>,
    ) {
        if view.in_service >= view.desired && view.refresh.is_none() {
            self.reset(now);
            return;
        }
        let (published, recovered) = (&mut self.published, self.recovered_at);
        let shortage = self.shortage.get_or_insert_with(|| {
            let restored = status.filter(|_| recovered.is_none()).and_then(restored);
            if let Some(blocked) = &restored {
                published.insert(blocked.blocker, (blocked.message.clone(), now));
            }
            Shortage {
                since: restored.as_ref().map_or(now, |blocked| blocked.since.min(now)),
                missing_since: None,
                progress_at: now,
                in_service: view.in_service,
                is_trying: view.is_trying,
                refresh: view.refresh.clone(),
                is_complete: view.in_service >= view.desired,
                inputs: view.inputs.clone(),
                changed_at: None,
                read_at: restored.is_some().then_some(now),
                reads: 0,
                counted: BTreeMap::new(),
                blocked: restored,
                unread: None,
            }
        });
        if shortage.inputs != view.inputs {
            if shortage.inputs.launch != view.inputs.launch {
                shortage.changed_at = Some(now);
            }
            shortage.inputs = view.inputs.clone();
            // Also if nothing has failed yet: a user waits for the result of the change.
            shortage.reads = 0;
            if shortage.blocked.is_some() {
                shortage.read_at = Some(now);
            }
        }
        let refresh = view.refresh.as_ref().filter(|refresh| refresh.exceeds(shortage.refresh.as_ref()));
        if view.in_service > shortage.in_service || refresh.is_some() {
            shortage.progress_at = now;
            shortage.refresh = refresh.cloned().or(shortage.refresh.take());
            // A launch may have succeeded.
            if shortage.is_complete && shortage.blocked.is_some() {
                shortage.read_at = Some(now);
            }
        }
        shortage.is_complete = view.in_service >= view.desired;
        shortage.in_service = view.in_service;
        shortage.is_trying = view.is_trying;
        if view.live < view.desired {
            shortage.missing_since.get_or_insert(now);
        } else {
            shortage.missing_since = None;
        }
    }

    /// Forgets launch failures: no instance is missing or replaced by a refresh, or the pool does not own the group.
    pub(super) fn reset(&mut self, now: DateTime<Utc>) {
        if self.shortage.take().is_some() {
            self.recovered_at = Some(now);
        }
        self.published.clear();
    }

    /// When activities are to be read next; `None` while no instance is missing, or AWS tries no launch.
    fn due(&self) -> Option<DateTime<Utc>> {
        let shortage = self.shortage.as_ref().filter(|shortage| shortage.is_trying)?;
        let stuck = shortage.progress_at + STUCK_FOR;
        let first = shortage.missing_since.map_or(stuck, |since| stuck.min(since + MISSING_FOR));
        Some(shortage.read_at.unwrap_or(first))
    }

    /// Whether activities are to be read now.
    #[must_use]
    pub fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// How long until activities are to be read.
    #[must_use]
    pub fn wait(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        Some((self.due()? - now).max(TimeDelta::zero()))
    }

    /// Whether launches are known to fail, so that missing instances are not about to be launched.
    #[must_use]
    pub fn are_failing(&self) -> bool {
        self.blocked().is_some()
    }

    /// What prevents instances from being launched.
    #[must_use]
    pub fn blocked(&self) -> Option<&Blocked> {
        self.shortage.as_ref()?.blocked.as_ref()
    }

    /// Why it is not known what prevents instances from being launched.
    #[must_use]
    pub fn unread(&self) -> Option<&CloudError> {
        self.shortage.as_ref()?.unread.as_ref()
    }

    /// The result of the last read.
    #[must_use]
    pub fn last_update(&self) -> &LaunchUpdate {
        &self.last_update
    }

    /// Records that the group's activities were read, newest first.
    pub(super) fn record_read(
        &mut self,
        read: Result<Vec<ScalingActivity>>,
        names: PlaceNames<'_>,
        now: DateTime<Utc>,
    ) {
        self.last_update = self.update(read, names, now);
    }

    fn update(
        &mut self,
        read: Result<Vec<ScalingActivity>>,
        names: PlaceNames<'_>,
        now: DateTime<Utc>,
    ) -> LaunchUpdate {
        let recovered = self.recovered_at;
        let Some(shortage) = self.shortage.as_mut() else { return LaunchUpdate::default() };
        shortage.reads = shortage.reads.saturating_add(1);
        let is_missing = shortage.missing_since.is_some();
        let pause = if is_missing { REREAD.delay(shortage.reads) } else { REREAD.longest };
        shortage.read_at = Some(now + pause);
        let activities = match read {
            Ok(activities) => activities,
            Err(error) => {
                shortage.unread = Some(error);
                return LaunchUpdate::default();
            }
        };
        shortage.unread = None;
        let earliest = shortage.since - LOOKBACK;
        let since = recovered.map_or(earliest, |recovered| recovered.max(earliest));
        let mut failures: Vec<LaunchFailure> =
            activities.iter().filter_map(LaunchFailure::of).filter(|failure| failure.at >= since).collect();
        failures.sort_by_key(|failure| Reverse(failure.at));
        let is_recent = |at: DateTime<Utc>| now - at <= WINDOW;
        let is_new = |failure: &&LaunchFailure| {
            is_recent(failure.at) && shortage.counted.insert(failure.activity.clone(), failure.at).is_none()
        };
        let new_failures: Vec<LaunchBlocker> =
            failures.iter().filter(is_new).map(|failure| failure.blocker).collect();
        shortage.counted.retain(|_, at| is_recent(*at));
        // Those in progress may fill the listing, which then tells nothing about launches.
        let changed = shortage.changed_at;
        let is_later = |a: &ScalingActivity| changed.is_none_or(|changed| a.started_at >= changed);
        if !activities.iter().any(|activity| activity.is_finished_launch() && is_later(activity)) {
            return LaunchUpdate { new_failures, event_due: false };
        }
        if let Some(changed) = changed {
            failures.retain(|failure| failure.started_at >= changed);
            // A user waits for the result of the change, so that the same message is reported again.
            if let Some(old) = shortage.blocked.take_if(|blocked| blocked.message_at < changed) {
                self.published.remove(&old.blocker);
            }
        }
        if shortage.is_complete {
            let launched = |a: &&ScalingActivity| a.is_launch() && a.status == ActivityStatus::Successful;
            let last = activities.iter().filter(launched).map(ScalingActivity::ended_or_started_at).max();
            failures.retain(|failure| last.is_none_or(|last| failure.at > last));
        }
        let newest = failures.first().map(|failure| failure.at);
        failures.retain(|failure| newest.is_some_and(|newest| newest - failure.at <= WINDOW));
        shortage.blocked = blocked(&failures, shortage.blocked.take(), names);
        let event_due =
            shortage.blocked.as_ref().is_some_and(|blocked| event_due(&mut self.published, blocked, now));
        LaunchUpdate { new_failures, event_due }
    }
}

/// Whether activities show how the last launches ended.
#[must_use]
pub fn show_launches(activities: &[ScalingActivity]) -> bool {
    activities.iter().filter(|activity| activity.is_finished_launch()).count() >= RECURS_WITHIN
}

/// Whether an event is due for a blocker. Messages that name prices, zones or types change with each try.
fn event_due(
    published: &mut BTreeMap<LaunchBlocker, (String, DateTime<Utc>)>,
    blocked: &Blocked,
    now: DateTime<Utc>,
) -> bool {
    let known = published
        .get(&blocked.blocker)
        .is_some_and(|(message, at)| *message == blocked.message || now - *at < SAME_BLOCKER);
    if !known {
        published.insert(blocked.blocker, (blocked.message.clone(), now));
    }
    !known
}

/// What prevents launches, by failures that are given newest first.
fn blocked(failures: &[LaunchFailure], before: Option<Blocked>, names: PlaceNames<'_>) -> Option<Blocked> {
    let newest = failures.first()?;
    let recurs = |blocked: &Blocked| {
        let same = |f: &LaunchFailure| f.blocker == blocked.blocker;
        let recent = newest.at - blocked.message_at < SAME_BLOCKER;
        failures.iter().take(RECURS_WITHIN).any(|f| same(f) && (recent || f.message == blocked.message))
    };
    let since = before.as_ref().filter(|b| b.blocker == newest.blocker).map_or(newest.at, |b| b.since);
    let mut blocked = before.filter(recurs).unwrap_or_else(|| Blocked {
        blocker: newest.blocker,
        message: newest.message.clone(),
        places: BTreeSet::new(),
        first: names.place(newest),
        since,
        message_at: newest.at,
    });
    let of_kind = failures.iter().filter(|failure| failure.blocker == blocked.blocker);
    blocked.places = of_kind.take(PLACES_OF).map(|failure| names.place(failure)).collect();
    Some(blocked)
}

impl PlaceNames<'_> {
    fn place(&self, failure: &LaunchFailure) -> Place {
        let only = || self.types.first().filter(|_| self.types.len() == 1).cloned();
        let zone_of = |subnet: &String| self.zones.get(subnet).cloned();
        Place {
            instance_type: failure.instance_type.clone().or_else(only),
            zone: failure.zone.clone().or_else(|| failure.subnet.as_ref().and_then(zone_of)),
        }
    }
}

/// What the status reports, if its condition still reports the same.
fn restored(status: &ASGMachinePoolStatus) -> Option<Blocked> {
    let last = status.last_launch_failure.as_ref()?;
    let condition = conditions::get(&status.conditions, SCALING_HEALTHY)?;
    if condition.status != "False" || condition.reason != last.reason {
        return None;
    }
    let first = Place { instance_type: last.instance_type.clone(), zone: last.availability_zone.clone() };
    Some(Blocked {
        blocker: LaunchBlocker::of(&last.message),
        message: last.message.clone(),
        places: [first.clone()].into(),
        first,
        since: capasg_api::time::from_kubernetes(&last.time),
        message_at: capasg_api::time::from_kubernetes(&last.time),
    })
}

#[cfg(test)]
impl LaunchWatch {
    /// Launches fail.
    pub fn fail(&mut self) {
        let now = DateTime::UNIX_EPOCH;
        let inputs = LaunchInputs { launch: String::new(), retry: None };
        let view =
            CapacityView { desired: 1, live: 0, in_service: 0, is_trying: true, refresh: None, inputs };
        self.observe(&view, None, now);
        if let Some(shortage) = &mut self.shortage {
            shortage.blocked = Some(Blocked {
                blocker: LaunchBlocker::Capacity,
                message: String::new(),
                places: BTreeSet::new(),
                first: Place::default(),
                since: now,
                message_at: now,
            });
        }
    }
}

#[cfg(test)]
#[path = "launch_watch_tests.rs"]
mod tests;
