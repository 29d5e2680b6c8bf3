//! The phases of a deletion by example.

use capasg_cloud::Write;
use chrono::TimeDelta;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::decide::deletion::Waiting;
use crate::machine_pool::decide::testing::{Stage, cloud, facts, kubernetes, now, terminations};
use crate::machine_pool::model::{DeletionPhase, Ec2Answer, GroupView, Known, Plan, Step};

/// The plan of a deletion that waits for Machines.
fn decide(stage: &Stage) -> Plan {
    crate::machine_pool::decide::deletion::decide(&stage.input(), Waiting::ForMachines)
}

#[test]
fn e1_machines_are_deleted_first_then_the_group_then_the_template() {
    let mut stage = Stage::new(1);
    let plan = decide(&stage);
    assert_eq!(kubernetes(&plan), ["delete p-i-1"]);
    assert!(matches!(cloud(&plan)[..], [Write::SuspendProcesses { .. }]), "nothing is launched any more");
    stage.drained("i-1");
    assert_eq!(terminations(&decide(&stage)), [(vec!["i-1"], true)]);
    stage.observed.instances.clear();
    assert!(cloud(&decide(&stage)).iter().any(|w| matches!(w, Write::DeleteGroup { force: true, .. })));
    stage.observed.group = GroupView::Absent { as_of: now(), settled: true };
    stage.observed.account = Some("123456789012".into());
    assert!(matches!(cloud(&decide(&stage))[..], [Write::DeleteLaunchTemplate { .. }]));
    stage.observed.template = Known::Absent;
    assert_eq!(decide(&stage).deletion, Some(DeletionPhase::Done));
}

/// Core has created the Machine, and has not added its finalizer: deleted now, it would disappear undrained.
#[test]
fn e1_a_deletion_waits_for_core_to_reconcile_a_machine() {
    let mut stage = Stage::new(1);
    let instance = stage.instance("i-1");
    instance.machine = None;
    instance.unreconciled_since = Some(now());
    let plan = decide(&stage);
    assert!(kubernetes(&plan).is_empty(), "{plan:?}");
    assert_eq!(plan.requeue_after, Some(stage.desired.drain_limit));
    stage.clock = now() + stage.desired.drain_limit;
    assert_eq!(kubernetes(&decide(&stage)), ["delete ASGMachine p-i-1"], "for no longer than a drain");
}

#[test]
fn a_deletion_alongside_another_owners_group_deletes_our_template() {
    let mut stage = Stage::new(0);
    stage.group().tags.clear();
    let plan = decide(&stage);
    assert!(matches!(cloud(&plan)[..], [Write::DeleteLaunchTemplate { .. }]), "{plan:?}");
    // A pool that never had a group.
    stage.desired.provider_id = None;
    let plan = decide(&stage);
    assert!(matches!(cloud(&plan)[..], [Write::DeleteLaunchTemplate { .. }]), "{plan:?}");
    stage.observed.template = Known::Absent;
    assert_eq!(decide(&stage).deletion, Some(DeletionPhase::Done));
}

#[test]
fn a_pool_without_a_group_waits_for_a_launch_template_that_may_be_about_to_be_created() {
    let mut stage = Stage::new(0);
    stage.desired.provider_id = None;
    stage.observed.group = GroupView::Absent { as_of: now(), settled: true };
    stage.observed.template = Known::Absent;
    stage.observed.template_was_read = false;
    stage.observed.account = Some("123456789012".into());
    stage.observe(now());
    let plan = decide(&stage);
    assert_eq!(plan.deletion, Some(DeletionPhase::DeletingLaunchTemplate), "{plan:?}");
    stage.clock = now() + TimeDelta::minutes(1);
    assert!(decide(&stage).needs.fresh_template, "it is read at the end of the wait");
    stage.observed.template_was_read = true;
    assert_eq!(decide(&stage).deletion, Some(DeletionPhase::Done));
}

#[test]
fn an_instance_of_an_orphaned_group_is_released_and_not_reported_as_terminated() {
    let released = |stage: &Stage| {
        let plan = decide(stage);
        let mut steps = plan.steps().filter_map(|step| match step {
            Step::Kubernetes(KubeWrite::RemoveAsgMachineFinalizer { terminated, .. }) => Some(*terminated),
            _ => None,
        });
        steps.next()
    };
    let mut stage = Stage::new(1);
    stage.drained("i-1").desired.orphan_on_deletion = true;
    assert_eq!(released(&stage), Some(false), "it keeps running");
    stage.memory.terminations.accepted_mut().insert("i-1".into(), now());
    assert_eq!(released(&stage), Some(true), "AWS accepted its termination");
    // Detached, and not waited for.
    let mut stage = Stage::new(1);
    stage.drained("i-1").instance("i-1").listed = None;
    stage.memory.sightings.terminating_mut().insert("i-1".into(), now() - TimeDelta::minutes(5));
    stage.instance("i-1").ec2 = Some(Ec2Answer { facts: Some(facts("i-1", true)), as_of: now() });
    assert_eq!(released(&stage), Some(false), "EC2 describes it as running");
    stage.instance("i-1").ec2 = Some(Ec2Answer { facts: Some(facts("i-1", false)), as_of: now() });
    assert_eq!(released(&stage), Some(true), "EC2 describes it as terminated");
}

#[test]
fn e4_without_a_cluster_nothing_is_waited_for() {
    let mut stage = Stage::new(2);
    let decide =
        |stage: &Stage| crate::machine_pool::decide::deletion::decide(&stage.input(), Waiting::ForNothing);
    assert!(cloud(&decide(&stage)).iter().any(|w| matches!(w, Write::DeleteGroup { force: true, .. })));
    stage.observed.group = GroupView::Absent { as_of: now(), settled: true };
    stage.observed.account = Some("123456789012".into());
    for id in ["i-1", "i-2"] {
        stage.instance(id).listed = None;
        stage.memory.sightings.terminating_mut().insert(id.into(), now());
        stage.instance(id).ec2 = Some(Ec2Answer { facts: Some(facts(id, false)), as_of: now() });
    }
    assert_eq!(kubernetes(&decide(&stage)), ["delete ASGMachine p-i-1", "delete ASGMachine p-i-2"]);
}
