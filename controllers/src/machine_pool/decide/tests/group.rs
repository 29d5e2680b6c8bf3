//! Whose the group is, and whether it is there, by example.

use capasg_cloud::Write;

use crate::machine_pool::decide::testing::{Stage, cloud, facts, now};
use crate::machine_pool::model::{Blocker, Ec2Answer, GroupView};

#[test]
fn a_group_of_another_owner_is_not_changed() {
    let mut stage = Stage::new(3);
    stage.group().tags.clear();
    stage.desired.replicas = 9;
    let plan = stage.plan();
    assert!(plan.is_empty());
    assert_eq!(plan.blocker, Some(Blocker::GroupNotOwned { found: None }));
}

#[test]
fn wrong_credentials_do_not_count_as_an_absent_group() {
    let mut stage = Stage::new(3);
    stage.observed.group = GroupView::Absent { as_of: now(), settled: true };
    assert!(stage.plan().needs.account);
    stage.observed.account = Some("210987654321".into());
    let plan = stage.plan();
    assert!(plan.is_empty());
    assert!(matches!(plan.blocker, Some(Blocker::WrongAccount { .. })));
}

#[test]
fn a_group_deleted_by_another_actor_is_created_after_its_instances_end() {
    let mut stage = Stage::new(2);
    stage.observed.group = GroupView::Absent { as_of: now(), settled: true };
    stage.observed.account = Some("123456789012".into());
    for id in ["i-1", "i-2"] {
        stage.instance(id).listed = None;
        stage.memory.sightings.terminating_mut().insert(id.into(), now());
    }
    assert_eq!(stage.plan().needs.facts.len(), 2);
    for id in ["i-1", "i-2"] {
        stage.instance(id).ec2 = Some(Ec2Answer { facts: Some(facts(id, id == "i-1")), as_of: now() });
    }
    let plan = stage.plan();
    assert!(plan.is_empty());
    assert!(matches!(plan.blocker, Some(Blocker::GroupAbsentInstancesRun { .. })));
    stage.instance("i-1").ec2 = Some(Ec2Answer { facts: None, as_of: now() });
    assert!(cloud(&stage.plan()).iter().any(|w| matches!(w, Write::CreateGroup(_))));
}
