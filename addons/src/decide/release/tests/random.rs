//! Random histories: kills, failures, other actors, changes. Whatever happened, the release becomes as requested once nothing
//! more happens, and releases of other actors are never changed.

use proptest::prelude::*;

use super::*;

/// What happens between two steps.
#[derive(Debug, Clone)]
enum Event {
    /// The manager is killed in the middle of the next operation.
    Kill,
    /// The next operation fails.
    Fail,
    /// A user changes the spec.
    Version(u8),
    Values(u8),
    /// Another actor uninstalls the release.
    OtherUninstalls,
    /// Another actor upgrades the release by hand.
    OtherUpgrades,
    /// Another actor is killed in the middle of an upgrade.
    OtherIsKilled,
    /// The Cluster does not respond in the next step.
    Unreachable,
    /// The memory of the manager is lost.
    Restart,
    /// A step without an event.
    Quiet,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Kill),
        Just(Event::Fail),
        (0..3_u8).prop_map(Event::Version),
        (0..3_u8).prop_map(Event::Values),
        Just(Event::OtherUninstalls),
        Just(Event::OtherUpgrades),
        Just(Event::OtherIsKilled),
        Just(Event::Unreachable),
        Just(Event::Restart),
        Just(Event::Quiet),
    ]
}

/// An object and the real release.
struct World {
    case: Case,
    release: Option<Found>,
    history: i64,
    is_released: bool,
}

impl World {
    fn happens(&mut self, event: &Event) {
        match event {
            Event::Version(version) => self.case.spec.version = format!("1.17.{version}"),
            Event::Values(replicas) => self.case.values = map(json!({"replicas": replicas})),
            Event::OtherUninstalls => self.release = None,
            Event::OtherUpgrades | Event::OtherIsKilled => {
                if let Some(found) = &mut self.release {
                    self.history += 1;
                    found.release.revision = self.history;
                    found.release.values = map(json!({"by": "hand"}));
                    let is_killed = matches!(event, Event::OtherIsKilled);
                    found.release.state =
                        if is_killed { ReleaseState::PendingUpgrade } else { ReleaseState::Deployed };
                    found.created_at = self.case.now;
                }
            }
            Event::Restart => self.case.memory = Memory::default(),
            Event::Kill | Event::Fail | Event::Unreachable | Event::Quiet => {}
        }
    }

    /// One reconcile.
    fn step(&mut self, event: &Event) -> Step {
        self.case.cluster = match event {
            Event::Unreachable => Cluster::Unreachable { since: self.case.now },
            _ => Cluster::Reachable(self.release.clone()),
        };
        let step = self.case.step();
        match &step {
            Step::Record { id, name } => {
                self.case.id = Some(id.clone());
                if let Some(name) = name {
                    self.case.spec.release_name.clone_from(name);
                }
            }
            Step::RecordInstalled => self.case.is_installed = true,
            Step::Install { .. } => {
                assert!(self.release.is_none(), "installed over a release");
                self.operate(event, ReleaseState::PendingInstall);
            }
            Step::Upgrade(_) => {
                assert!(!self.release.as_ref().unwrap().release.state.is_pending());
                self.operate(event, ReleaseState::PendingUpgrade);
            }
            Step::MarkFailed { revision } => {
                let found = self.release.as_mut().unwrap();
                assert_eq!(found.release.revision, *revision);
                found.release.state = ReleaseState::Failed;
            }
            Step::Uninstall(_) => match event {
                Event::Kill => self.release.as_mut().unwrap().release.state = ReleaseState::Uninstalling,
                Event::Fail => self.case.memory.failed("1", "HookFailed", String::new(), self.case.now),
                _ => self.release = None,
            },
            Step::Release => self.is_released = true,
            Step::Nothing | Step::Wait(_) | Step::Reject(_) => {}
        }
        step
    }

    /// An installation or an upgrade, which may not end well.
    fn operate(&mut self, event: &Event, pending: ReleaseState) {
        self.history = self.release.as_ref().map_or(0, |found| found.release.revision) + 1;
        let mut found = self.case.found();
        found.labels = labels(&self.case.desired(), self.history);
        found.release.revision = self.history;
        found.release.chart.version.clone_from(&self.case.spec.version);
        found.created_at = self.case.now;
        found.release.state = match event {
            Event::Kill => pending,
            Event::Fail => ReleaseState::Failed,
            _ => ReleaseState::Deployed,
        };
        match event {
            Event::Kill => self.case.memory = Memory::default(),
            Event::Fail => self.case.memory.failed("1", "HookFailed", String::new(), self.case.now),
            _ => self.case.memory.succeeded(),
        }
        self.release = Some(found);
    }

    /// Steps without further events until nothing is left to do, or the object is released.
    fn settle(&mut self) -> Step {
        for _ in 0..20 {
            // Longer than any wait.
            self.case.now += TimeDelta::hours(2);
            let step = self.step(&Event::Quiet);
            if self.is_released || step == Step::Nothing {
                return step;
            }
        }
        panic!("not settled: {:?} {:?}", self.case, self.release)
    }
}

fn world() -> World {
    let mut case = Case::new();
    case.spec.release_name.clear();
    World { case, release: None, history: 0, is_released: false }
}

proptest! {
    #[test]
    fn a_release_becomes_as_requested(events in proptest::collection::vec(event(), 0..40)) {
        let mut world = world();
        for event in &events {
            world.happens(event);
            world.step(event);
            world.case.now += TimeDelta::seconds(20);
        }
        world.settle();
        let found = world.release.as_ref().unwrap();
        prop_assert_eq!(found.release.state, ReleaseState::Deployed);
        prop_assert_eq!(&found.release.values, &world.case.values);
        prop_assert_eq!(&found.release.chart.version, &world.case.spec.version);
        prop_assert!(world.case.is_installed && !world.case.spec.release_name.is_empty());
        let revision = found.release.revision;
        for _ in 0..3 {
            prop_assert_eq!(world.step(&Event::Quiet), Step::Nothing);
        }
        prop_assert_eq!(world.release.unwrap().release.revision, revision);
    }

    #[test]
    fn a_deletion_ends_without_the_release(events in proptest::collection::vec(event(), 0..40), from in 0..40_usize) {
        let mut world = world();
        for (number, event) in events.iter().enumerate() {
            if number >= from {
                world.case.deleted_at.get_or_insert(world.case.now);
            }
            if world.is_released {
                break;
            }
            world.happens(event);
            world.step(event);
            world.case.now += TimeDelta::seconds(20);
        }
        world.case.deleted_at.get_or_insert(world.case.now);
        if !world.is_released {
            prop_assert_eq!(world.settle(), Step::Release);
        }
        prop_assert_eq!(world.release, None);
    }

    #[test]
    fn releases_of_other_actors_never_change(
        id in proptest::option::of("[a-z]{4}"), label in proptest::option::of("[A-Z]{4}"), deleted: bool, version in 0..3_u8,
        state in proptest::sample::select(vec![ReleaseState::Deployed, ReleaseState::Failed, ReleaseState::PendingInstall]),
        seconds in 0..1_000_000_i64,
    ) {
        let mut case = Case { is_installed: false, ..Case::installed().with(no_labels) };
        case.id = id;
        case.spec.version = format!("1.17.{version}");
        case.deleted_at = deleted.then(|| at(0));
        case.now = at(seconds);
        let case = case.with(|found| {
            found.release.state = state;
            found.labels.extend(label.map(|label| (names::RELEASE_ID.to_owned(), label)));
        });
        prop_assert!(matches!(case.step(), Step::Reject(_) | Step::Release), "{:?}", case.step());
    }
}
