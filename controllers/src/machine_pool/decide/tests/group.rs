//! Whose the group is, and whether it is there, by example.

use std::collections::BTreeMap;

use capasg_api::names::tags::{IDENTITY, OWNER_ID};
use capasg_cloud::{GroupTag, Write};

use crate::machine_pool::decide::deletion::{self, Waiting};
use crate::machine_pool::decide::testing::{Stage, cloud, data, facts, now, stamp, untagged};
use crate::machine_pool::model::{Blocker, DesiredLaunch, Ec2Answer, GroupView, Known};

#[test]
fn a_group_of_another_owner_is_not_changed() {
    let mut stage = Stage::new(3);
    stage.group().tags.clear();
    stage.desired.replicas = 9;
    let plan = stage.plan();
    assert!(plan.is_empty());
    assert_eq!(plan.blocker, Some(Blocker::GroupNotOwned { tags: untagged() }));
}

/// The owner ID is an annotation, which a user can copy: the other tags must be the pool's as well. What is missing or
/// edited counts as another pool's.
#[test]
fn a_group_or_a_template_with_one_tag_of_another_pool_is_not_changed() {
    for key in IDENTITY {
        for value in [None, Some("another"), Some("")] {
            let set = |tags: &mut BTreeMap<String, GroupTag>| match value {
                None => tags.remove(key).is_some(),
                Some(value) => tags
                    .insert(key.to_owned(), GroupTag { value: value.to_owned(), propagate: true })
                    .is_some(),
            };
            let mut stage = Stage::new(3);
            assert!(set(&mut stage.group().tags));
            stage.desired.replicas = 9;
            let plan = stage.plan();
            assert!(plan.is_empty(), "{key} {value:?}: {plan:?}");
            let Some(Blocker::GroupNotOwned { tags }) = plan.blocker else { panic!("{key} {value:?}") };
            assert_eq!(tags.missing.len() + tags.different.len(), 1);
            assert!(!format!("{tags:?}").contains("another"));

            let mut stage = Stage::new(3);
            let Known::Present(template) = &mut stage.observed.template else { unreachable!() };
            match value {
                None => template.tags.remove(key),
                Some(value) => template.tags.insert(key.to_owned(), value.to_owned()),
            };
            stage.desired.launch =
                DesiredLaunch::Known { data: Box::new(data()), stamp: stamp("2"), has_user_data: true };
            let plan = stage.plan();
            let changes = cloud(&plan);
            assert!(
                !changes.iter().any(|write| matches!(write, Write::CreateLaunchTemplateVersion { .. })),
                "{key} {value:?}: {changes:?}"
            );
        }
    }
}

/// A pool with the owner ID of another pool is deleted without that pool's group; a pool whose group lost a tag waits, so
/// that the group is not left behind.
#[test]
fn a_deletion_changes_no_group_of_another_pool() {
    for (key, orphan) in IDENTITY.into_iter().flat_map(|key| [(key, false), (key, true)]) {
        let mut stage = Stage::new(2);
        stage.desired.orphan_on_deletion = orphan;
        for instance in stage.observed.instances.values_mut() {
            instance.asg_machine = None;
        }
        let owned = deletion::decide(&stage.input(), Waiting::ForNothing);
        let expected = |write: &&Write| match write {
            Write::DeleteGroup { .. } => !orphan,
            Write::DeleteLifecycleHook { .. } => orphan,
            _ => false,
        };
        assert!(cloud(&owned).iter().any(expected), "{owned:?}");

        let value = GroupTag { value: "another".to_owned(), propagate: true };
        stage.group().tags.insert(key.to_owned(), value);
        let plan = deletion::decide(&stage.input(), Waiting::ForNothing);
        assert!(!cloud(&plan).iter().any(|write| write.group().is_some()), "{key}: {plan:?}");
        assert_eq!(plan.blocker, None, "{key}");

        stage.group().tags.remove(key);
        let plan = deletion::decide(&stage.input(), Waiting::ForNothing);
        assert!(!cloud(&plan).iter().any(|write| write.group().is_some()), "{key}: {plan:?}");
        assert_eq!(plan.blocker.is_some(), key != OWNER_ID && !orphan, "{key}");
    }
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
