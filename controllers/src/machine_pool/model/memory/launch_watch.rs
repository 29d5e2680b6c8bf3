//! When scaling activities are worth a read, and what stands in the way of launches by them. Pure.
//!
//! Activities are read only while instances lack: soon after one that should be launched is not there, or when one that
//! was does not enter service, then ever more seldom. A pool that is complete reads none.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use capasg_api::{
    ASGMachinePoolStatus,
    conditions::{self, SCALING_HEALTHY},
    names::annotations,
};
use capasg_cloud::{CloudError, LaunchBlocker, LaunchFailure, Result, ScalingActivity};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use crate::backoff::Curve;
use crate::machine_pool::model::template_versions::pinned_stamp;
use crate::machine_pool::model::{Observed, PoolObjects, instances};

/// AWS launches what lacks within seconds: what is still missing after this may have failed.
const LACKS_FOR: TimeDelta = TimeDelta::seconds(10);
/// What is launched enters service within minutes, or may have died.
const STUCK_FOR: TimeDelta = TimeDelta::minutes(3);
/// Between two reads while launches fail.
const AGAIN: Curve = Curve { first: Duration::from_secs(15), longest: Duration::from_mins(5) };
/// A launch may have failed this long before a poll showed that something lacks: the slow poll's pace, and as far as AWS's
/// clock may differ from ours before it refuses our signatures.
const UNSEEN: TimeDelta = TimeDelta::minutes(6);
/// Older failures than this, counted from the newest, are of another time.
const MEMORY: TimeDelta = TimeDelta::hours(1);
/// What was told stays told while it is among this many newest failures: AWS tries zones and types in turn, and a message
/// that changes with each would be written each time.
const RECURS_IN: usize = 6;
/// Other words for what stands in the way already are told no sooner than this.
const SAME_OBSTACLE: TimeDelta = TimeDelta::hours(1);
/// The failures whose places are named.
const PLACES_IN: usize = 12;

/// What the watch of one pool knows.
#[derive(Debug, Clone, Default)]
pub struct LaunchWatch {
    short: Option<Short>,
    healed_at: Option<DateTime<Utc>>,
    /// What an event was published for since launches last succeeded, its last words and when.
    told: BTreeMap<LaunchBlocker, (String, DateTime<Utc>)>,
    learnt: Learnt,
}

/// A time in which instances lack.
#[derive(Debug, Clone)]
struct Short {
    since: DateTime<Utc>,
    lacking_since: Option<DateTime<Utc>>,
    progress_at: DateTime<Utc>,
    in_service: i32,
    is_trying: bool,
    wish: Wish,
    /// What is launched, or where, changed since: what failed before says nothing any more once a launch was tried after.
    changed_at: Option<DateTime<Utc>>,
    read_at: Option<DateTime<Utc>>,
    reads: u32,
    counted: BTreeSet<String>,
    blocked: Option<Blocked>,
    unread: Option<CloudError>,
}

/// What a person can change about launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// What AWS launches and where, as the group has it; not the bootstrap data, whose tokens rotate.
    pub launch: String,
    /// The annotation that asks for another try.
    pub retry: Option<String>,
}

/// A look at the group.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Desired capacity.
    pub desired: i32,
    /// Instances that count towards it.
    pub live: i32,
    /// Instances in service.
    pub in_service: i32,
    /// Whether AWS tries: its process `Launch` runs.
    pub is_trying: bool,
    /// What a person can change.
    pub wish: Wish,
}

impl Seen {
    /// What there is to see of a pool whose group is to have instances; `None` for any other.
    #[must_use]
    pub fn of(objects: &PoolObjects, observed: &Observed) -> Option<Self> {
        let group =
            observed.group.present().filter(|group| !objects.is_deleting() && !group.is_deleting())?;
        let stamp = pinned_stamp(observed).map(|stamp| stamp.rollout);
        let launch = format!("{:?} {:?} {stamp:?}", group.settings.launch.mixed, group.settings.subnets);
        Some(Self {
            desired: group.capacity.desired,
            live: instances::live_count(observed),
            in_service: instances::in_service_count(observed),
            is_trying: !group.suspended_processes.contains_key("Launch"),
            wish: Wish { launch, retry: objects.pool.annotations().get(annotations::RETRY).cloned() },
        })
    }
}

/// What keeps instances from being launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// What it is.
    pub obstacle: LaunchBlocker,
    /// AWS's words.
    pub words: String,
    /// The types and zones concerned, as far as AWS names them.
    pub places: BTreeSet<Place>,
    /// The first place that AWS named.
    pub first: Place,
    /// When it was first met.
    pub since: DateTime<Utc>,
    /// When AWS said so in these words first.
    pub words_at: DateTime<Utc>,
}

/// Where a launch was tried, and what.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The type.
    pub instance_type: Option<String>,
    /// The zone.
    pub zone: Option<String>,
}

/// What names of AWS mean in this pool.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The pool's types.
    pub types: &'a [String],
    /// Zones by subnet.
    pub zones: &'a BTreeMap<String, String>,
}

/// What a read taught.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Learnt {
    /// Failures that were not counted yet.
    pub counted: Vec<LaunchBlocker>,
    /// Whether an event is due.
    pub is_news: bool,
}

impl LaunchWatch {
    /// Takes a look at the group into account. A new process goes on with what the status says.
    pub(super) fn see(&mut self, seen: &Seen, status: Option<&ASGMachinePoolStatus>, now: DateTime<Utc>) {
        if seen.in_service >= seen.desired {
            self.rest(now);
            return;
        }
        let (told, healed) = (&mut self.told, self.healed_at);
        let short = self.short.get_or_insert_with(|| {
            let restored = status.filter(|_| healed.is_none()).and_then(restored);
            if let Some(blocked) = &restored {
                told.insert(blocked.obstacle, (blocked.words.clone(), now));
            }
            Short {
                since: restored.as_ref().map_or(now, |blocked| blocked.since.min(now)),
                lacking_since: None,
                progress_at: now,
                in_service: seen.in_service,
                is_trying: seen.is_trying,
                wish: seen.wish.clone(),
                changed_at: None,
                read_at: restored.is_some().then_some(now),
                reads: 0,
                counted: BTreeSet::new(),
                blocked: restored,
                unread: None,
            }
        });
        if short.wish != seen.wish {
            if short.wish.launch != seen.wish.launch {
                short.changed_at = Some(now);
            }
            short.wish = seen.wish.clone();
            // Also when nothing has failed yet: somebody waits for an answer.
            short.reads = 0;
            if short.blocked.is_some() {
                short.read_at = Some(now);
            }
        }
        if seen.in_service > short.in_service {
            short.progress_at = now;
        }
        short.in_service = seen.in_service;
        short.is_trying = seen.is_trying;
        if seen.live < seen.desired {
            short.lacking_since.get_or_insert(now);
        } else {
            short.lacking_since = None;
        }
    }

    /// Nothing lacks, or nobody wants to know.
    pub(super) fn rest(&mut self, now: DateTime<Utc>) {
        if self.short.take().is_some() {
            self.healed_at = Some(now);
        }
        self.told.clear();
    }

    /// When activities are to be read next; `None` while nothing lacks, or nothing is tried.
    fn due(&self) -> Option<DateTime<Utc>> {
        let short = self.short.as_ref().filter(|short| short.is_trying)?;
        let stuck = short.progress_at + STUCK_FOR;
        let first = short.lacking_since.map_or(stuck, |since| stuck.min(since + LACKS_FOR));
        Some(short.read_at.unwrap_or(first))
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

    /// Whether launches are known to fail: what is missing is not about to come.
    #[must_use]
    pub fn are_failing(&self) -> bool {
        self.blocked().is_some()
    }

    /// What keeps instances from being launched.
    #[must_use]
    pub fn blocked(&self) -> Option<&Blocked> {
        self.short.as_ref()?.blocked.as_ref()
    }

    /// Why it is not known what keeps instances from being launched.
    #[must_use]
    pub fn unread(&self) -> Option<&CloudError> {
        self.short.as_ref()?.unread.as_ref()
    }

    /// What the last read taught.
    #[must_use]
    pub fn learnt(&self) -> &Learnt {
        &self.learnt
    }

    /// Takes in a read of the group's activities, newest first.
    pub(super) fn learn(&mut self, read: Result<Vec<ScalingActivity>>, names: Names<'_>, now: DateTime<Utc>) {
        self.learnt = self.read(read, names, now);
    }

    fn read(&mut self, read: Result<Vec<ScalingActivity>>, names: Names<'_>, now: DateTime<Utc>) -> Learnt {
        let healed = self.healed_at;
        let Some(short) = self.short.as_mut() else { return Learnt::default() };
        short.reads = short.reads.saturating_add(1);
        let pause = if short.lacking_since.is_some() { AGAIN.delay(short.reads) } else { AGAIN.longest };
        short.read_at = Some(now + pause);
        let activities = match read {
            Ok(activities) => activities,
            Err(error) => {
                short.unread = Some(error);
                return Learnt::default();
            }
        };
        short.unread = None;
        let since = healed.map_or(short.since - UNSEEN, |healed| healed.max(short.since - UNSEEN));
        let mut failures: Vec<LaunchFailure> =
            activities.iter().filter_map(LaunchFailure::of).filter(|failure| failure.at >= since).collect();
        let counted = failures.iter().filter(|failure| short.counted.insert(failure.activity.clone()));
        let counted: Vec<LaunchBlocker> = counted.map(|failure| failure.blocker).collect();
        let listed: BTreeSet<&str> = activities.iter().map(|activity| activity.id.as_str()).collect();
        short.counted.retain(|id| listed.contains(id.as_str()));
        if let Some(changed) = short.changed_at {
            let tried =
                |a: &ScalingActivity| a.is_launch() && a.status.is_finished() && a.started_at >= changed;
            if !activities.iter().any(tried) {
                return Learnt { counted, is_news: false };
            }
            failures.retain(|failure| failure.at >= changed);
            // Somebody waits for what AWS says of the change.
            if let Some(old) = short.blocked.take_if(|blocked| blocked.words_at < changed) {
                self.told.remove(&old.obstacle);
            }
        }
        let newest = failures.first().map(|failure| failure.at);
        failures.retain(|failure| newest.is_some_and(|newest| newest - failure.at <= MEMORY));
        short.blocked = blocked(&failures, short.blocked.take(), names);
        let is_news = short.blocked.as_ref().is_some_and(|blocked| is_news(&mut self.told, blocked, now));
        Learnt { counted, is_news }
    }
}

/// Whether a person does not know of an obstacle yet. Words that name prices, zones or types change with each try.
fn is_news(
    told: &mut BTreeMap<LaunchBlocker, (String, DateTime<Utc>)>,
    blocked: &Blocked,
    now: DateTime<Utc>,
) -> bool {
    let known = told
        .get(&blocked.obstacle)
        .is_some_and(|(words, at)| *words == blocked.words || now - *at < SAME_OBSTACLE);
    if !known {
        told.insert(blocked.obstacle, (blocked.words.clone(), now));
    }
    !known
}

/// What failures of a time come to, newest first.
fn blocked(failures: &[LaunchFailure], before: Option<Blocked>, names: Names<'_>) -> Option<Blocked> {
    let newest = failures.first()?;
    let recurs = |blocked: &Blocked| {
        let same = |f: &LaunchFailure| f.blocker == blocked.obstacle;
        let recent = newest.at - blocked.words_at < SAME_OBSTACLE;
        failures.iter().take(RECURS_IN).any(|f| same(f) && (recent || f.message == blocked.words))
    };
    let since = before.as_ref().filter(|b| b.obstacle == newest.blocker).map_or(newest.at, |b| b.since);
    let mut blocked = before.filter(recurs).unwrap_or_else(|| Blocked {
        obstacle: newest.blocker,
        words: newest.message.clone(),
        places: BTreeSet::new(),
        first: names.place(newest),
        since,
        words_at: newest.at,
    });
    let of_kind = failures.iter().filter(|failure| failure.blocker == blocked.obstacle);
    blocked.places = of_kind.take(PLACES_IN).map(|failure| names.place(failure)).collect();
    Some(blocked)
}

impl Names<'_> {
    fn place(&self, failure: &LaunchFailure) -> Place {
        let only = || self.types.first().filter(|_| self.types.len() == 1).cloned();
        let zone_of = |subnet: &String| self.zones.get(subnet).cloned();
        Place {
            instance_type: failure.instance_type.clone().or_else(only),
            zone: failure.zone.clone().or_else(|| failure.subnet.as_ref().and_then(zone_of)),
        }
    }
}

/// What the last process told, if it is still told.
fn restored(status: &ASGMachinePoolStatus) -> Option<Blocked> {
    let last = status.last_launch_failure.as_ref()?;
    let told = conditions::get(&status.conditions, SCALING_HEALTHY)?;
    if told.status != "False" || told.reason != last.reason {
        return None;
    }
    let first = Place { instance_type: last.instance_type.clone(), zone: last.availability_zone.clone() };
    Some(Blocked {
        obstacle: LaunchBlocker::of(&last.message),
        words: last.message.clone(),
        places: [first.clone()].into(),
        first,
        since: capasg_api::time::from_kubernetes(&last.time),
        words_at: capasg_api::time::from_kubernetes(&last.time),
    })
}

#[cfg(test)]
impl LaunchWatch {
    /// Launches fail, for a test of what follows from it.
    pub fn fail(&mut self) {
        let now = DateTime::UNIX_EPOCH;
        let wish = Wish { launch: String::new(), retry: None };
        self.see(&Seen { desired: 1, live: 0, in_service: 0, is_trying: true, wish }, None, now);
        if let Some(short) = &mut self.short {
            short.blocked = Some(Blocked {
                obstacle: LaunchBlocker::Capacity,
                words: String::new(),
                places: BTreeSet::new(),
                first: Place::default(),
                since: now,
                words_at: now,
            });
        }
    }
}

#[cfg(test)]
#[path = "launch_watch_tests.rs"]
mod tests;
