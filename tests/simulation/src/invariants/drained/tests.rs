//! Each exemption by a history that is made up: what is exempt passes, and what only looks like it does not.

use anyhow::Result;
use capasg_api::{
    ASGMachine, ASGMachineSpec,
    capi::{Machine, MachineSpec, NodeRef},
    names::{TERMINATE_HOOK, machine_name},
    pool::{Drain as DrainSpec, OnCloudTermination, OnPoolDeletion},
    time::to_kubernetes,
};
use capasg_cloud::Clock;
use capasg_controllers::ObjectKey;
use capasg_fake_aws::{Change, End};
use chrono::TimeDelta;

use super::RULE;
use crate::{Drain, Pool, Setup, World, api_server::State, cloud::MANAGER, invariants::Invariants, run};

const ID: &str = "i-0a1b2c3d4e5f60718";

/// A pool with one instance, whose Machine has a Node and is not drained.
struct History {
    world: World,
    pool: Pool,
    machine: ObjectKey,
}

impl History {
    fn begin() -> Self {
        Self::with_drain(DrainSpec::default())
    }

    fn with_drain(drain: DrainSpec) -> Self {
        let mut world = World::new(Setup { watch: false, ..Setup::default() });
        let pool = world.add_pool_with("workers", 1, |spec| spec.drain = Some(drain));
        let machine = pool.key.sibling(machine_name(&pool.key.name, ID));
        let mut object = Machine::new(&machine.name, MachineSpec::default());
        object.metadata.namespace = Some(machine.namespace.clone());
        object.metadata.finalizers = Some(vec!["core".to_owned()]);
        object.status.get_or_insert_default().node_ref = Some(NodeRef { name: "node".to_owned() });
        let history = Self { world, pool, machine };
        history.state(|State { ledger, machines, .. }| drop(machines.create(ledger, object)));
        history
    }

    fn state(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.world.api.state());
    }

    fn invariants(&self) -> &Invariants {
        self.world.invariants().unwrap()
    }

    fn edit(&self, edit: impl FnOnce(&mut Machine)) {
        self.world.edit_machine(&self.machine.name, edit);
    }

    /// The Machine is gone.
    fn remove_machine(&self) {
        self.invariants().look();
        self.edit(|machine| machine.metadata.finalizers = None);
        self.state(|State { ledger, machines, .. }| {
            let _ = machines.delete(ledger, &self.machine, crate::api_server::Expect::default());
        });
    }

    /// Core began to delete the Machine so many seconds ago.
    fn deleting_for(&self, seconds: i64) {
        let since = self.world.now() - TimeDelta::seconds(seconds);
        self.edit(|machine| machine.metadata.deletion_timestamp = Some(to_kubernetes(since)));
    }

    fn core_says(&self, drain: Drain) {
        self.world.core.state().drained.push((self.machine.name.clone(), drain));
    }

    fn limit(&self) -> i64 {
        let pool = self.world.pool(&self.pool).unwrap();
        i64::from(pool.spec.drain(None).timeout_seconds)
    }

    fn called(&self, action: &str, by: Option<&str>) {
        let change = Change {
            action: action.to_owned(),
            by: by.map(str::to_owned),
            group: Some(self.pool.group.clone()),
            instances: vec![ID.to_owned()],
            desired: (None, None),
        };
        let at = self.world.now();
        let invariants = self.invariants();
        invariants.drained_notes(&mut invariants.inner(), &change, at);
    }

    fn end(&self) -> End {
        let group = Some(self.pool.group.clone());
        End {
            id: ID.to_owned(),
            group,
            cause: Some("somebody asked for it".to_owned()),
            held: None,
            timed_out: false,
        }
    }

    /// The end of an instance that our hook has held for so long.
    fn held_for(&self, seconds: i64) -> End {
        let since = self.world.now() - TimeDelta::seconds(seconds);
        End { held: Some((since, vec![TERMINATE_HOOK.to_owned()])), ..self.end() }
    }

    /// Whether this end breaks the rule.
    fn breaks(&self, end: &End) -> bool {
        let invariants = self.invariants();
        let mut inner = invariants.inner();
        let before = inner.broken.len();
        invariants.nothing_ends_undrained(&mut inner, invariants.clock.now(), end);
        let broken = inner.broken.get(before..).unwrap_or_default();
        assert!(broken.iter().all(|one| one.rule == RULE), "{broken:?}");
        !broken.is_empty()
    }

    /// Whether it breaks the rule if a call of ours ends it.
    fn breaks_by_us(&self) -> bool {
        self.called("TerminateInstanceInAutoScalingGroup", Some(MANAGER));
        self.breaks(&self.end())
    }
}

fn lived(story: impl AsyncFnOnce()) -> Result<()> {
    run(story())
}

#[test]
fn terminations_by_us_or_our_hook_need_a_finished_drain() -> Result<()> {
    lived(async || {
        let history = History::begin();
        assert!(!history.breaks(&history.end()), "neither we nor our hook had a part in it");
        assert!(history.breaks(&history.held_for(10)), "our hook held it");
        assert!(history.breaks_by_us(), "we ended it");
        let forced = History::begin();
        forced.called("DeleteAutoScalingGroup", Some(MANAGER));
        assert!(forced.breaks(&forced.end()), "we ended its group");
        history.core_says(Drain::Done(history.world.now()));
        assert!(!history.breaks_by_us(), "it is drained");
        let late = History::begin();
        late.core_says(Drain::TimedOut(late.world.now()));
        assert!(!late.breaks_by_us(), "core gave up at its limit");
    })
}

#[test]
fn a_machine_that_had_stopped_already_is_exempt() -> Result<()> {
    lived(async || {
        let history = History::begin();
        assert!(history.breaks_by_us());
        // Also a spot machine past its notice: EC2 took it, its group had no part in it.
        assert!(!history.breaks(&End { cause: None, ..history.end() }));
    })
}

#[test]
fn an_expired_drain_timeout_is_exempt() -> Result<()> {
    lived(async || {
        let history = History::begin();
        history.deleting_for(history.limit() - 1);
        assert!(history.breaks_by_us(), "a second is left");
        let history = History::begin();
        history.deleting_for(history.limit());
        assert!(!history.breaks_by_us());
        let history = History::begin();
        assert!(history.breaks(&history.held_for(history.limit())), "nobody waited for a drain");
        let timed_out = |seconds| End { timed_out: true, ..history.held_for(seconds) };
        assert!(history.breaks(&timed_out(history.limit() - 1)), "a second is left");
        assert!(!history.breaks(&timed_out(history.limit())), "held for the whole limit");
    })
}

#[test]
fn an_instance_that_never_joined_is_exempt() -> Result<()> {
    lived(async || {
        let history = History::begin();
        history.core_says(Drain::Skipped("the infrastructure is being deleted"));
        assert!(history.breaks_by_us(), "a drain that was skipped for another reason");
        let history = History::begin();
        history.core_says(Drain::Skipped("no Node has joined"));
        assert!(!history.breaks_by_us());
        let history = History::begin();
        history.edit(|machine| machine.status = None);
        assert!(!history.breaks_by_us(), "it has no Node");
        let history = History::begin();
        history.edit(|machine| machine.status = None);
        history.remove_machine();
        assert!(!history.breaks_by_us(), "it has no Machine, and no Node was seen");
    })
}

#[test]
fn a_joined_instance_without_a_machine_is_not_exempt() -> Result<()> {
    lived(async || {
        let history = History::begin();
        history.remove_machine();
        assert!(history.breaks_by_us(), "its Machine had a Node");
        let history = History::begin();
        history.edit(|machine| machine.status = None);
        history.remove_machine();
        assert!(!history.breaks_by_us(), "no Node joined");
        history.world.core.state().join(ID);
        assert!(history.breaks_by_us(), "core has not made its Machine");
        history.world.edit_machine_pool(&history.pool, |own| {
            own.metadata.finalizers = Some(vec!["core".to_owned()]);
        });
        history.world.delete_machine_pool(&history.pool);
        assert!(!history.breaks_by_us(), "core makes no Machine any more");
    })
}

/// The end of the drain limit is in the API reference; core is late or down.
#[test]
fn an_instance_for_which_core_makes_no_machine_within_the_limit_is_exempt() -> Result<()> {
    for (existed, short, exempt) in
        [(Some(60), 1, true), (Some(59), 0, false), (Some(60), 2, false), (None, 0, false)]
    {
        lived(async || {
            let history = History::begin();
            history.remove_machine();
            if existed.is_some() {
                let mut own = ASGMachine::new(&history.machine.name, ASGMachineSpec::default());
                own.metadata.namespace = Some(history.machine.namespace.clone());
                history.state(|State { ledger, asg_machines, .. }| drop(asg_machines.create(ledger, own)));
            }
            let clock = &history.world.clock;
            clock.sleep_until(clock.now() + TimeDelta::seconds(existed.unwrap_or(60))).await;
            let end = history.held_for(history.limit() - short);
            assert_eq!(!history.breaks(&end), exempt, "existed for {existed:?} s, {short} s are left");
        })?;
    }
    Ok(())
}

#[test]
fn a_hook_that_somebody_deleted_is_an_excuse_until_it_is_read_again() -> Result<()> {
    for (minutes, by_others, exempt) in
        [(2, false, true), (4, false, false), (68, true, true), (70, true, false)]
    {
        lived(async || {
            let history = History::begin();
            let clock = &history.world.clock;
            let now = clock.now();
            if by_others {
                history.called("DeleteLifecycleHook", None);
            }
            history.invariants().inner().drained.hooked.insert(history.pool.group.clone(), now);
            clock.sleep_until(now + TimeDelta::minutes(minutes)).await;
            assert_eq!(!history.breaks(&history.end()), exempt, "missing for {minutes} min");
            let failed = |history: &History| {
                history.invariants().inner().failures.failed("PutLifecycleHook", true, clock.now());
            };
            failed(&history);
            assert!(!history.breaks(&history.end()), "AWS rejects it");
        })?;
    }
    Ok(())
}

#[test]
fn failures_before_a_hook_timed_out_are_no_excuse_once_the_call_is_repeated() -> Result<()> {
    for (seconds, exempt) in [(170, true), (190, false)] {
        lived(async || {
            let history = History::begin();
            let clock = &history.world.clock;
            let failed = |api| history.invariants().inner().failures.failed(api, false, clock.now());
            failed("RecordLifecycleActionHeartbeat");
            failed("DescribeAutoScalingGroups");
            clock.sleep_until(clock.now() + TimeDelta::seconds(seconds)).await;
            let end = End { timed_out: true, ..history.held_for(200) };
            assert_eq!(!history.breaks(&end), exempt, "{seconds} s after the failure");
        })?;
    }
    Ok(())
}

#[test]
fn a_pool_that_is_gone_drains_as_its_spec_said() -> Result<()> {
    for (how, exempt) in [(OnPoolDeletion::Drain, false), (OnPoolDeletion::Terminate, true)] {
        lived(async || {
            let drain = DrainSpec { on_pool_deletion: Some(how), ..DrainSpec::default() };
            let history = History::with_drain(drain);
            let invariants = history.invariants();
            invariants.note_hooks(&mut invariants.inner(), history.world.now());
            history.world.delete_pool(&history.pool);
            assert!(history.world.pool(&history.pool).is_none(), "nothing kept it");
            assert_eq!(!history.breaks_by_us(), exempt, "{how:?}");
        })?;
    }
    Ok(())
}

#[test]
fn what_a_user_excluded_or_deleted_by_hand_is_exempt() -> Result<()> {
    lived(async || {
        let history = History::begin();
        let invariants = history.invariants();
        invariants.exempt(|exempt, _| exempt.drain_excluded("workers-i-0another"));
        invariants.exempt(|exempt, _| exempt.deleted_by_hand("workers-i-0another"));
        assert!(history.breaks_by_us(), "another one's");
        invariants.exempt(|exempt, _| exempt.drain_excluded(&history.machine.name));
        assert!(!history.breaks_by_us());
        let history = History::begin();
        history.invariants().exempt(|exempt, _| exempt.deleted_by_hand(&history.machine.name));
        assert!(!history.breaks_by_us());
    })
}

#[test]
fn the_deletion_of_the_cluster_is_exempt() -> Result<()> {
    lived(async || {
        let history = History::begin();
        history.world.edit_cluster(|cluster| cluster.spec.paused = Some(true));
        assert!(history.breaks_by_us(), "a Cluster that stays");
        history.world.delete_cluster();
        assert!(!history.breaks_by_us());
        let history = History::begin();
        history.world.vanish_cluster();
        assert!(!history.breaks_by_us());
    })
}

#[test]
fn a_pause_that_kept_us_from_completing_the_hook_is_exempt() -> Result<()> {
    for (paused, exempt) in [(90, false), (110, true)] {
        lived(async || {
            let history = History::begin();
            let pause = |pause: bool| {
                history.world.edit_cluster(|cluster| cluster.spec.paused = Some(pause));
                history.invariants().look();
            };
            pause(true);
            let clock = &history.world.clock;
            clock.sleep_until(clock.now() + TimeDelta::seconds(paused)).await;
            pause(false);
            clock.sleep_until(clock.now() + TimeDelta::seconds(300 - paused)).await;
            let end = history.held_for(300);
            assert!(history.breaks(&end), "{paused} s: it was let go before its time, so by us");
            let end = End { timed_out: true, ..end };
            assert_eq!(!history.breaks(&end), exempt, "{paused} s of 300");
            history.remove_machine();
            assert_eq!(!history.breaks(&end), exempt, "{paused} s of 300, without a Machine");
        })?;
    }
    Ok(())
}

#[test]
fn a_pool_that_is_deleted_without_drains_is_exempt() -> Result<()> {
    for (how, exempt) in [(OnPoolDeletion::Drain, false), (OnPoolDeletion::Terminate, true)] {
        lived(async || {
            let drain = DrainSpec { on_pool_deletion: Some(how), ..DrainSpec::default() };
            let history = History::with_drain(drain);
            history.world.edit_pool(&history.pool, |pool| {
                pool.metadata.finalizers = Some(vec!["ours".to_owned()]);
            });
            assert!(history.breaks_by_us(), "{how:?}: it is not being deleted");
            history.world.delete_pool(&history.pool);
            assert_eq!(!history.breaks_by_us(), exempt, "{how:?}");
        })?;
    }
    Ok(())
}

#[test]
fn an_instance_whose_hook_another_actor_deleted_is_exempt() -> Result<()> {
    lived(async || {
        let history = History::begin();
        history.called("DeleteLifecycleHook", Some(MANAGER));
        assert!(history.breaks(&history.held_for(10)), "we took it away");
        history.called("DeleteLifecycleHook", None);
        assert!(!history.breaks(&history.held_for(10)));
        let clock = &history.world.clock;
        clock.sleep_until(clock.now() + TimeDelta::seconds(11)).await;
        assert!(history.breaks(&history.held_for(10)), "it let go of what it held at once");
        assert!(history.breaks_by_us(), "the hook has nothing to do with ends of ours");
        let history = History::begin();
        history.called("DeleteLifecycleHook", None);
        history.called("PutLifecycleHook", Some(MANAGER));
        assert!(history.breaks(&history.held_for(10)), "it is there again");
    })
}

#[test]
fn terminations_that_the_spec_ignores_are_exempt() -> Result<()> {
    lived(async || {
        let ignore = OnCloudTermination::Ignore;
        let drain = DrainSpec { on_cloud_termination: Some(ignore), ..DrainSpec::default() };
        let history = History::with_drain(drain);
        assert!(!history.breaks(&history.held_for(10)));
        assert!(history.breaks_by_us(), "but not those that we make");
    })
}
