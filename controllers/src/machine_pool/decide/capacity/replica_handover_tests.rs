//! The rules of an external owner of the replicas, by example and by property (G2).

use capasg_api::{
    ASGMachinePoolSpec, ASGMachinePoolStatus,
    capi::MachinePool,
    names::annotations::{AUTOSCALER_MAX_SIZE, AUTOSCALER_MIN_SIZE, REPLICAS_MANAGED_BY},
    pool::GroupStatus,
};
use capasg_cloud::{Capacity, GroupChange, Write};
use chrono::TimeDelta;
use kube::ResourceExt;
use proptest::prelude::*;

use crate::machine_pool::decide::capacity::replica_handover;
use crate::machine_pool::decide::testing::{Stage, cloud, kubernetes, now, set_desired, terminations};
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::memory::record::{Answer, Entry, Report};
use crate::machine_pool::model::{Bounds, GroupView, MachinePoolRef, Plan, ReplicaOwner};
use crate::machine_pool::report::replica_owner::replica_owner as report;

/// One pool with its MachinePool and its last report.
struct Pool {
    stage: Stage,
    spec: ASGMachinePoolSpec,
    owner: MachinePool,
    status: Option<ASGMachinePoolStatus>,
}

impl Pool {
    /// A pool of the MachinePool's, with `replicas` of them and as many instances.
    fn new(replicas: i32) -> Self {
        let mut owner = MachinePool::new("pool", capasg_api::capi::MachinePoolSpec::default());
        owner.spec.replicas = Some(replicas);
        let status = ASGMachinePoolStatus {
            desired_replicas: replicas,
            group: Some(GroupStatus::default()),
            ..ASGMachinePoolStatus::default()
        };
        Self {
            stage: Stage::new(replicas),
            spec: ASGMachinePoolSpec { max_size: Some(9), ..ASGMachinePoolSpec::default() },
            owner,
            status: Some(status),
        }
    }

    /// The same, managed by another actor for a long time.
    fn theirs(replicas: i32) -> Self {
        let mut pool = Self::new(replicas);
        pool.annotate("autoscaler");
        pool.status.as_mut().unwrap().replicas_managed_by = Some("autoscaler".into());
        pool.stage.group().capacity = Capacity { min: 0, max: 9, desired: replicas };
        pool
    }

    fn annotate(&mut self, by: &str) {
        self.owner.annotations_mut().insert(REPLICAS_MANAGED_BY.to_owned(), by.to_owned());
    }

    fn plan(&mut self) -> Plan {
        let replicas = self.owner.replicas();
        self.stage.desired.machine_pool = Some(MachinePoolRef {
            name: "pool".into(),
            uid: "uid".into(),
            resource_version: "7".into(),
            replicas,
        });
        self.stage.desired.replicas = replicas;
        let is_behind = replica_handover::own_write_is_hidden(&self.stage.input()).is_some();
        let Stage { desired, observed, .. } = &self.stage;
        let before = self.stage.memory.replicas.reported_external();
        let told = replica_handover::Reported { status: self.status.as_ref(), before, is_behind };
        self.stage.desired = replica_handover::settled(desired, observed, &self.spec, &self.owner, told);
        self.stage.plan()
    }

    /// The status after a plan.
    fn report(&self) -> ASGMachinePoolStatus {
        let mut status = self.status.clone().unwrap_or_default();
        let handed_back = self.stage.plan().handed_back;
        report(&mut status, &self.owner, Some(&self.stage.desired), handed_back);
        status
    }
}

const WRITE_BACK: &str = "writing replicas of MachinePool ns/pool";

fn bounds(min: i32, max: i32) -> Write {
    let change = GroupChange { min: Some(min), max: Some(max), ..GroupChange::default() };
    Write::UpdateGroup { group: "g".into(), change: Box::new(change) }
}

/// Whether a plan sets or shrinks desired capacity.
fn sizes(plan: &Plan) -> bool {
    cloud(plan).iter().any(|write| match write {
        Write::SetDesiredCapacity { .. } => true,
        Write::UpdateGroup { change, .. } => change.desired.is_some(),
        Write::TerminateInstances { decrement, .. } => *decrement,
        _ => false,
    })
}

#[test]
fn g2_an_externally_managed_pool_that_is_settled_needs_nothing() {
    let mut pool = Pool::theirs(3);
    let plan = pool.plan();
    assert!(plan.is_empty() && plan.needs.is_empty() && !plan.in_transition, "{plan:?}");
    assert_eq!(pool.report(), pool.status.clone().unwrap(), "and reports nothing new");
}

#[test]
fn g2_bounds_are_sent_without_desired_capacity() {
    let mut pool = Pool::new(3);
    pool.annotate("autoscaler");
    let plan = pool.plan();
    assert!(plan.is_empty(), "it is reported before another actor can set more");
    assert_eq!(plan.requeue_after, Some(TimeDelta::seconds(1)), "the reply to the report may be lost");
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::ExternalUnreported);
    let status = pool.report();
    assert_eq!(status.replicas_managed_by.as_deref(), Some("autoscaler"));
    pool.status = Some(status);
    let plan = pool.plan();
    assert_eq!(cloud(&plan), [&bounds(0, 9)]);
    assert!(kubernetes(&plan).is_empty());
}

#[test]
fn g2_g3_bounds_are_the_specs_or_the_annotations_or_none() {
    let mut pool = Pool::theirs(3);
    pool.spec.max_size = None;
    assert_eq!(cloud(&pool.plan()), [&bounds(0, 10_000)]);
    pool.owner.annotations_mut().insert(AUTOSCALER_MIN_SIZE.to_owned(), "2".to_owned());
    pool.owner.annotations_mut().insert(AUTOSCALER_MAX_SIZE.to_owned(), "6".to_owned());
    assert_eq!(cloud(&pool.plan()), [&bounds(2, 6)]);
    pool.spec.min_size = Some(7);
    assert_eq!(cloud(&pool.plan()), [&bounds(7, 7)], "bounds that cross are none");
}

#[test]
fn g2_desired_capacity_becomes_replicas_zero_included() {
    for has in [0, 2, 5] {
        let mut pool = Pool::theirs(3);
        pool.stage.group().capacity.desired = has;
        let plan = pool.plan();
        assert!(kubernetes(&plan).contains(&WRITE_BACK.to_owned()), "{plan:?}");
        assert!(!sizes(&plan));
    }
}

#[test]
fn g2_nothing_is_written_back_from_a_view_that_is_about_to_change() {
    let mut pool = Pool::theirs(3);
    pool.stage.group().capacity.desired = 5;
    pool.stage.unsettled();
    assert!(pool.plan().is_empty(), "our own write is not in it");
    let mut pool = Pool::theirs(3);
    pool.stage.group().capacity.desired = 5;
    pool.spec.max_size = Some(4);
    let plan = pool.plan();
    assert_eq!(cloud(&plan), [&bounds(0, 4)]);
    assert!(kubernetes(&plan).is_empty(), "AWS will move it into the bounds");
}

#[test]
fn g2_surplus_is_chosen_by_a_fresh_view_and_not_decremented() {
    let mut pool = Pool::theirs(3);
    pool.owner.spec.replicas = Some(2);
    pool.stage.group().capacity.desired = 2;
    pool.stage.observed.group_was_read = false;
    let plan = pool.plan();
    assert!(plan.is_empty() && plan.needs.fresh_group, "they may have raised it again");
    pool.stage.observed.group_was_read = true;
    assert_eq!(kubernetes(&pool.plan()), ["annotate p-i-1", "delete p-i-1"]);
    pool.stage.drained("i-1");
    assert_eq!(terminations(&pool.plan()), [(vec!["i-1"], false)]);
}

#[test]
fn g2_a_deleted_machine_is_replaced() {
    let mut pool = Pool::theirs(3);
    pool.stage.drained("i-2");
    assert_eq!(terminations(&pool.plan()), [(vec!["i-2"], false)]);
}

/// A surge or a scale-in of ours is in desired capacity: it is finished, and not written back.
#[test]
fn g2_scaling_for_the_machine_pool_is_completed_first() {
    let mut pool = Pool::new(4);
    pool.annotate("autoscaler");
    pool.owner.spec.replicas = Some(3);
    pool.stage.drained("i-1");
    let plan = pool.plan();
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::ExternalPending);
    assert_eq!(terminations(&plan), [(vec!["i-1"], true)], "the scale-in continues");
    assert!(!kubernetes(&plan).contains(&WRITE_BACK.to_owned()));
    assert_eq!(pool.report().replicas_managed_by, None);

    let mut pool = Pool::new(3);
    pool.annotate("autoscaler");
    pool.stage.unsettled();
    pool.plan();
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::ExternalPending, "this view may not show a surge");
    pool.stage.observed.group = GroupView::Unknown;
    pool.plan();
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::ExternalPending, "a new process knows nothing yet");
}

/// A status that was lost by a move: the bounds show that the other actor managed the group before.
#[test]
fn g2_m4_after_a_move_the_bounds_show_who_manages_the_replicas() {
    let mut pool = Pool::theirs(3);
    pool.status = None;
    // The process begins: it cannot know what the previous leader wrote.
    *pool.stage.memory.began_mut() = Some(now());
    for desired in [2, 5] {
        pool.owner.spec.replicas = Some(3);
        pool.stage.group().capacity.desired = desired;
        let plan = pool.plan();
        assert_eq!(pool.stage.desired.owner, ReplicaOwner::ExternalUnreported, "{desired}");
        assert!(!sizes(&plan));
    }
    pool.spec.max_size = Some(8);
    pool.plan();
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::ExternalPending, "other bounds show nothing");
}

#[test]
fn g2_handing_back_reads_the_group_and_writes_replicas_first() {
    let mut pool = Pool::theirs(3);
    pool.owner.annotations_mut().clear();
    pool.stage.group().capacity.desired = 5;
    pool.stage.observed.group_was_read = false;
    let plan = pool.plan();
    assert!(plan.needs.fresh_group && plan.is_empty(), "{plan:?}");
    pool.stage.observed.group_was_read = true;
    let plan = pool.plan();
    assert_eq!(kubernetes(&plan), [WRITE_BACK]);
    assert!(cloud(&plan).is_empty());
    assert_eq!(pool.report(), pool.status.clone().unwrap(), "nothing is reported before it is done");
    pool.owner.spec.replicas = Some(5);
    let plan = pool.plan();
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::MachinePool);
    assert_eq!(pool.report().replicas_managed_by, None);
    assert!(kubernetes(&plan).is_empty());
}

/// The cache names the other actor until it shows what was reported.
#[test]
fn g2_a_cache_that_is_behind_hands_no_replicas_back_again() {
    let mut pool = Pool::theirs(3);
    pool.owner.annotations_mut().clear();
    let plan = pool.plan();
    // The status may say so already: then its report wakes nothing.
    assert!(plan.handed_back && plan.requeue_after == Some(TimeDelta::zero()), "{plan:?}");
    let report =
        Report::Status { provisioned: None, rollout: None, rolling_out: false, nodes: None, external: false };
    pool.stage.memory.record(Entry::Reported(report), now());
    pool.plan();
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::MachinePool);
    assert_eq!(pool.report().replicas_managed_by, None);
}

#[test]
fn g2_g3_replicas_are_handed_back_within_the_bounds_of_the_spec() {
    for (min, max, has, replicas) in [(0, 2, 5, 2), (4, 9, 3, 4)] {
        let mut pool = Pool::theirs(3);
        pool.owner.annotations_mut().clear();
        (pool.spec.min_size, pool.spec.max_size) = (Some(min), Some(max));
        // Another actor changed the bounds of the group with its desired capacity.
        pool.stage.group().capacity.desired = has;
        pool.stage.observed.group_was_read = true;
        assert_eq!(kubernetes(&pool.plan()), [WRITE_BACK]);
        assert_eq!(pool.stage.desired.replicas, replicas);
        pool.owner.spec.replicas = Some(replicas);
        pool.plan();
        assert_eq!(pool.report().desired_replicas, replicas);
    }
}

#[test]
fn g2_what_this_controller_wrote_last_is_not_handed_back_before_reads_show_it() {
    let mut pool = Pool::theirs(3);
    pool.owner.annotations_mut().clear();
    pool.stage.group().capacity.desired = 5;
    pool.stage.observed.group_was_read = true;
    for (seconds, waits) in [(1, true), (14, true), (16, false)] {
        let at = now() - TimeDelta::seconds(seconds);
        let answer = Answer::Made { adopts: false };
        pool.stage.memory = PoolMemory::default();
        pool.stage.memory.record(Entry::Answered { write: &set_desired(3), answer }, at);
        let plan = pool.plan();
        assert_eq!(kubernetes(&plan).is_empty() && !plan.handed_back, waits, "after {seconds} s: {plan:?}");
        assert_eq!(plan.requeue_after.is_some(), waits);

        pool.stage.memory = PoolMemory::default();
        *pool.stage.memory.began_mut() = Some(at);
        assert_eq!(kubernetes(&pool.plan()).is_empty(), waits, "after a change of leaders");
    }
}

/// The view shows the replicas, although a surge of ours is being launched: it would become theirs with the next view.
#[test]
fn g2_what_this_controller_wrote_last_is_not_taken_over_before_reads_show_it() {
    let mut pool = Pool::new(3);
    pool.annotate("autoscaler");
    for (seconds, waits) in [(1, true), (14, true), (16, false)] {
        let at = now() - TimeDelta::seconds(seconds);
        pool.stage.memory = PoolMemory::default();
        pool.stage
            .memory
            .record(Entry::Answered { write: &set_desired(4), answer: Answer::Made { adopts: false } }, at);
        let plan = pool.plan();
        let is_pending = pool.stage.desired.owner == ReplicaOwner::ExternalPending;
        assert_eq!(is_pending, waits, "after {seconds} s: {:?}", pool.stage.desired.owner);
        assert!(!waits || plan.requeue_after.is_some(), "{plan:?}");
        assert_eq!(pool.report().replicas_managed_by.is_none(), waits);
    }
}

/// The annotation is removed while no manager runs; the view of the new leader is unknown at first.
#[test]
fn g2_what_the_other_actor_set_last_is_handed_back_by_a_new_leader() {
    let mut pool = Pool::theirs(3);
    pool.owner.annotations_mut().clear();
    let group = std::mem::replace(&mut pool.stage.observed.group, GroupView::Unknown);
    let plan = pool.plan();
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::MachinePoolPending);
    assert_eq!(pool.report(), pool.status.clone().unwrap(), "it is theirs still");
    assert!(pool.stage.desired.owner.is_reported_external(plan.handed_back));
    pool.stage.observed.group = group;
    pool.stage.group().capacity.desired = 5;
    assert_eq!(kubernetes(&pool.plan()), [WRITE_BACK]);
    pool.stage.observed.group = GroupView::Absent { as_of: now(), settled: true };
    pool.plan();
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::MachinePool, "there is no group");
}

/// The number that equals the replicas now may not be the last one that was set.
#[test]
fn g2_an_older_view_reverts_nothing() {
    let mut pool = Pool::theirs(3);
    pool.owner.annotations_mut().clear();
    pool.stage.unsettled();
    let plan = pool.plan();
    assert!(!plan.handed_back && plan.is_empty(), "{plan:?}");
    assert_eq!(pool.report(), pool.status.clone().unwrap(), "it is theirs still");
    assert!(pool.stage.desired.owner.is_reported_external(plan.handed_back));

    let mut pool = Pool::theirs(3);
    pool.owner.annotations_mut().clear();
    let plan = pool.plan();
    assert!(plan.handed_back && !pool.stage.desired.owner.is_reported_external(plan.handed_back));
    assert_eq!(pool.report().replicas_managed_by, None);
}

/// The answer to the report of the hand-over was lost: what the user requests afterwards is not compared with the group.
#[test]
fn g2_a_report_without_an_answer_does_not_repeat_the_hand_over() {
    let mut pool = Pool::theirs(3);
    let status = |external| Report::Status {
        provisioned: None,
        rollout: None,
        rolling_out: false,
        nodes: None,
        external,
    };
    let record = |pool: &mut Pool, report| pool.stage.memory.record(Entry::Reported(report), now());
    record(&mut pool, status(true));
    pool.owner.annotations_mut().clear();
    assert!(pool.plan().handed_back);
    pool.status = Some(pool.report());
    record(&mut pool, Report::Unanswered { external: false });
    pool.owner.spec.replicas = Some(5);
    pool.status.as_mut().unwrap().desired_replicas = 5;
    let plan = pool.plan();
    assert_eq!((pool.stage.desired.owner, pool.stage.desired.replicas), (ReplicaOwner::MachinePool, 5));
    assert!(sizes(&plan), "{plan:?}");
    // What was reported before is known.
    record(&mut pool, status(false));
    record(&mut pool, Report::Unanswered { external: false });
    assert_eq!(pool.stage.memory.replicas.reported_external(), Some(false));
}

#[test]
fn g2_replicas_that_were_edited_with_the_annotation_count() {
    let mut pool = Pool::theirs(3);
    pool.owner.annotations_mut().clear();
    pool.owner.spec.replicas = Some(2);
    let plan = pool.plan();
    assert_eq!(pool.stage.desired.owner, ReplicaOwner::MachinePool);
    assert_eq!(kubernetes(&plan), ["annotate p-i-1", "delete p-i-1"]);
}

#[test]
fn g2_an_empty_value_counts_and_a_long_one_is_cut() {
    let mut pool = Pool::theirs(3);
    pool.annotate("");
    pool.plan();
    assert_eq!(pool.report().replicas_managed_by.as_deref(), Some("true"));
    pool.annotate(&"x".repeat(1000));
    pool.plan();
    assert_eq!(pool.report().replicas_managed_by.map(|by| by.len()), Some(256));
}

#[test]
fn g2_a_group_begins_with_the_replicas_of_the_machine_pool() {
    let mut pool = Pool::new(3);
    pool.stage.desired.owner = ReplicaOwner::External(Bounds { min: 1, max: 9 });
    assert_eq!(replica_handover::at_creation(&pool.stage.desired), Capacity { min: 1, max: 9, desired: 3 });
    pool.stage.desired.owner = ReplicaOwner::MachinePool;
    assert_eq!(replica_handover::at_creation(&pool.stage.desired), Capacity { min: 0, max: 3, desired: 3 });
}

proptest! {
    /// Whatever the group is like, the replicas of an externally managed pool are never set by us.
    #[test]
    fn g2_desired_capacity_is_never_sent_while_it_is_theirs(
        live in 0..6i32, has in 0..9i32, replicas in 0..9i32, min in 0..4i32, max in 4..9i32,
        settled: bool, fresh: bool, listed: bool, drained in prop::collection::vec(1..6i32, 0..3),
    ) {
        let mut pool = Pool::theirs(live);
        pool.owner.spec.replicas = Some(replicas);
        pool.spec.min_size = Some(min);
        pool.spec.max_size = Some(max);
        pool.stage.group().capacity.desired = has;
        pool.stage.observed.group_was_read = fresh;
        pool.stage.observed.live_machines = listed;
        for index in drained.into_iter().filter(|index| *index <= live) {
            pool.stage.drained(&format!("i-{index}"));
        }
        if !settled {
            pool.stage.unsettled();
        }
        let plan = pool.plan();
        prop_assert!(!sizes(&plan), "{plan:?}");
        let writes = kubernetes(&plan).contains(&WRITE_BACK.to_owned());
        prop_assert!(!writes || (settled && replicas != has), "{plan:?}");
        let deletions = kubernetes(&plan).iter().filter(|what| what.starts_with("delete ")).count();
        let excess = usize::try_from(live - has).unwrap_or(0);
        prop_assert!(deletions <= excess, "{deletions} for an excess of {excess}");
    }

    /// Handing back never changes a group whose replicas no user edited.
    #[test]
    fn g2_handing_back_terminates_nothing(live in 0..6i32, has in 0..9i32, replicas in 0..9i32, fresh: bool) {
        let mut pool = Pool::theirs(live);
        pool.owner.annotations_mut().clear();
        pool.owner.spec.replicas = Some(replicas);
        pool.status.as_mut().unwrap().desired_replicas = replicas;
        pool.stage.group().capacity.desired = has;
        pool.stage.observed.group_was_read = fresh;
        let plan = pool.plan();
        for write in cloud(&plan) {
            if let Write::UpdateGroup { change, .. } = write {
                prop_assert!(change.desired.is_none_or(|desired| desired == has && fresh), "{plan:?}");
            }
        }
    }
}
