//! What an adoption requires, reports and writes, by example.

use std::collections::BTreeMap;

use capasg_api::{
    names::tags::{ADOPTABLE_BY, ADOPTED_FROM, OWNER_ID},
    pool::PendingChange,
};
use capasg_cloud::{Capacity, Group, GroupTag, LifecycleState, Write};
use chrono::TimeDelta;

use crate::machine_pool::decide::deletion;
use crate::machine_pool::decide::deletion::Waiting;
use crate::machine_pool::decide::rollout::outdated;
use crate::machine_pool::decide::testing::{Stage, cloud, mixed, now, stamp, untagged};
use crate::machine_pool::model::OutdatedReason;
use crate::machine_pool::model::adoption::adopted_from;
use crate::machine_pool::model::launch_record::LaunchRecord;
use crate::machine_pool::model::{Blocker, DesiredLaunch, GroupView, Known, MachinePoolRef, Plan};

/// A pool that is to adopt a group without an owner, which was read just now.
fn stage() -> Stage {
    let mut stage = Stage::new(2);
    stage.desired.adopts = true;
    stage.desired.provider_id = None;
    stage.observed.template = Known::Absent;
    stage.observed.fresh_group = true;
    let instances =
        stage.observed.instances.values().filter_map(|instance| instance.listed.clone()).collect();
    let group = stage.group();
    group.instances = instances;
    let adoptable = GroupTag { value: "ns/p".to_owned(), propagate: false };
    group.tags = BTreeMap::from([(ADOPTABLE_BY.to_owned(), adoptable)]);
    group.settings.launch.template.id = "lt-theirs".into();
    group.capacity = Capacity { min: 1, max: 5, desired: 2 };
    for instance in &mut group.instances {
        instance.template = Some(("lt-theirs".into(), 4));
    }
    stage
}

/// The plan once its differences are shown.
fn shown(stage: &mut Stage) -> Plan {
    stage.desired.shown = stage.plan().pending.unwrap();
    stage.plan()
}

/// An operator allows the adoption in the namespace, and an administrator of AWS names who may adopt the group.
#[test]
fn a_group_is_adopted_only_if_a_guard_and_its_tag_allow_it() {
    let mut denied = stage();
    denied.desired.adoption_denied = Some("no guard".to_owned());
    let plan = denied.plan();
    assert!(
        matches!(plan.blocker, Some(Blocker::NotAdoptable { ref why }) if why.contains("no guard")),
        "{plan:?}"
    );
    for (value, allowed) in
        [("ns/p", true), ("ns/*", true), ("ns/other", false), ("other/p", false), ("*", false), ("", false)]
    {
        let mut stage = stage();
        let tag = GroupTag { value: value.to_owned(), propagate: false };
        stage.group().tags.insert(ADOPTABLE_BY.to_owned(), tag);
        let plan = stage.plan();
        assert_eq!(plan.blocker == Some(Blocker::Adopting), allowed, "{value}: {:?}", plan.blocker);
    }
    assert!(why(|group| group.tags.clear()).contains("it has no tag"));
}

fn why(edit: impl FnOnce(&mut Group)) -> String {
    let mut stage = stage();
    edit(stage.group());
    let plan = shown(&mut stage);
    assert!(plan.is_empty(), "{plan:?}");
    match plan.blocker {
        Some(Blocker::NotAdoptable { why }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn w14_the_changes_are_reported_before_the_tags_are_written() {
    let mut stage = stage();
    let plan = stage.plan();
    assert!(plan.is_empty() && plan.blocker == Some(Blocker::Adopting));
    assert!(plan.pending.as_ref().is_some_and(|pending| pending.len() > 3), "{:?}", plan.pending);
    stage.desired.shown = plan.pending.unwrap();
    // What is shown is not what would change any more.
    stage.group().settings.default_cooldown = 7;
    let plan = stage.plan();
    assert!(plan.is_empty());
    stage.desired.shown = plan.pending.unwrap();
    stage.observed.fresh_group = false;
    assert!(stage.plan().needs.fresh_group && stage.plan().is_empty());
    stage.observed.fresh_group = true;
    let plan = stage.plan();
    let [Write::TagGroup { tags, .. }] = cloud(&plan)[..] else { panic!("{plan:?}") };
    assert_eq!(tags[OWNER_ID].value, "me");
    assert_eq!(tags[ADOPTED_FROM].value, "lt-theirs");
    assert!(!tags[ADOPTED_FROM].propagate);
}

#[test]
fn other_members_of_overrides_are_a_change() {
    let mut stage = stage();
    stage.desired.settings.mixed = Some(mixed(&[]));
    stage.group().settings.launch.mixed = Some(mixed(&["WeightedCapacity"]));
    let pending = stage.plan().pending.unwrap();
    assert!(pending.iter().any(|change| change.path.contains("Overrides")), "{pending:?}");
}

#[test]
fn p54_w14_a_preview_or_an_unknown_desired_state_adopts_nothing() {
    let mut previews = stage();
    previews.desired.previews = true;
    let plan = shown(&mut previews);
    assert!(plan.is_empty() && plan.pending.is_some_and(|pending| !pending.is_empty()));
    let mut unknown = stage();
    unknown.desired.launch = DesiredLaunch::Unknown;
    let plan = shown(&mut unknown);
    assert!(plan.is_empty() && plan.blocker == Some(Blocker::Adopting));
}

#[test]
fn w14_p30_the_reason_why_a_group_cannot_be_adopted_is_reported() {
    let launch_configuration = why(|group| group.settings.launch.template.id.clear());
    assert!(launch_configuration.contains("launch configuration"), "{launch_configuration}");
    let capacity = why(|group| group.capacity.desired = 3);
    assert!(capacity.contains("desired capacity is 3, and the MachinePool requests 2"), "{capacity}");
    let missing = why(|group| group.instances[0].lifecycle = LifecycleState::Terminating);
    assert!(missing.contains("it has 1 instance and desired capacity 2"), "{missing}");
    let deleting = why(|group| group.status = Some("Delete in progress".into()));
    assert!(deleting.contains("deleting"), "{deleting}");
}

/// A pool that owned the group does not adopt it again: another actor removed the tag.
#[test]
fn w14_a_capacity_outside_the_limits_names_the_limit() {
    for (within, words) in [
        (3, "its desired capacity 2 is less than minSize 3. Change spec.minSize, or annotation"),
        (1, "its desired capacity 2 is greater than maxSize 1. Change spec.maxSize, or annotation"),
    ] {
        let mut stage = stage();
        stage.desired.replicas = within;
        stage.desired.machine_pool = Some(MachinePoolRef {
            name: "mp".into(),
            uid: "mp-uid".into(),
            resource_version: "1".into(),
            replicas: 2,
        });
        let plan = shown(&mut stage);
        let Some(Blocker::NotAdoptable { why }) = plan.blocker else { panic!("{plan:?}") };
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn w14_a_group_whose_tag_was_removed_is_not_adopted_again() {
    let mut stage = stage();
    stage.desired.provider_id = Some(crate::machine_pool::decide::testing::ARN.into());
    assert_eq!(stage.plan().blocker, Some(Blocker::GroupNotOwned { tags: untagged() }));
    stage.desired.provider_id = None;
    stage.desired.adopts = false;
    assert_eq!(stage.plan().blocker, Some(Blocker::GroupNotOwned { tags: untagged() }));
}

#[test]
fn w14_the_record_names_every_origin_that_a_tag_holds() {
    let mut stage = stage();
    for n in 0..20 {
        let mut instance = stage.group().instances[0].clone();
        instance.id = format!("i-{n:017}");
        instance.template = (n != 3).then(|| (format!("lt-{n:017}"), 1));
        stage.group().instances.push(instance);
    }
    stage.group().capacity.desired = 22;
    stage.desired.replicas = 22;
    let plan = shown(&mut stage);
    let [Write::TagGroup { tags, .. }] = cloud(&plan)[..] else { panic!("{plan:?}") };
    let record = &tags[ADOPTED_FROM].value;
    assert!(record.len() <= 256 && record.starts_with("lt-theirs lt-"), "{record}");
    stage.group().tags.clone_from(tags);
    let known = adopted_from(stage.observed.group.present());
    assert!(known.contains("no-template") && known.len() >= 11, "{known:?}");
}

/// What ran then is outdated, whatever launched it; what is attached or launched later is not.
#[test]
fn w14_h3_what_ran_when_the_group_was_adopted_is_outdated() {
    let mut stage = Stage::new(4);
    let record = capasg_cloud::GroupTag { value: "lt-theirs no-template".into(), propagate: false };
    stage.group().tags.insert(ADOPTED_FROM.into(), record);
    let from = |stage: &mut Stage, id: &str, template: Option<&str>| {
        let instance = stage.instance(id).listed.as_mut().unwrap();
        instance.template = template.map(|id| (id.to_owned(), 1));
    };
    from(&mut stage, "i-1", Some("lt-theirs"));
    from(&mut stage, "i-2", None);
    from(&mut stage, "i-3", Some("lt-another"));
    let outdated = outdated::outdated(&stage.desired, &stage.observed, now());
    assert_eq!(outdated.reason("i-1"), Some(OutdatedReason::Adopted));
    assert_eq!(outdated.reason("i-2"), Some(OutdatedReason::Adopted));
    assert_eq!((outdated.reason("i-3"), outdated.reason("i-4")), (None, None));
    // Version 1 of theirs is not version 1 of ours.
    assert_eq!(outdated::most_common_revision(&stage.desired, &stage.observed, &outdated), None);
    // Without the record, as after a user tagged the group, nothing is outdated.
    stage.group().tags.remove(ADOPTED_FROM);
    assert_eq!(outdated::outdated(&stage.desired, &stage.observed, now()).count(), 0);
}

/// A group that was kept, and adopted again, has the launch template of its pool in the record. Another actor deletes that
/// later: what the pool launched from it is compared with its own record.
#[test]
fn h3_what_the_pool_launched_is_not_adopted_without_its_launch_template() {
    let mut stage = Stage::new(3);
    let record = GroupTag { value: "lt-1".into(), propagate: false };
    stage.group().tags.insert(ADOPTED_FROM.into(), record);
    for (id, record) in [
        ("i-1", LaunchRecord::Launched(stamp("1"))),
        ("i-2", LaunchRecord::Launched(stamp("0"))),
        ("i-3", LaunchRecord::Found { stamp: stamp("1"), other_type: false, types: None }),
    ] {
        stage.instance(id).asg_machine.as_mut().unwrap().launch_record = Some(record);
    }
    let mut created_again = stage.observed.template.present().unwrap().clone();
    created_again.id = "lt-2".into();
    for template in [Known::Absent, Known::Present(created_again)] {
        stage.observed.template = template;
        let outdated = outdated::outdated(&stage.desired, &stage.observed, now());
        assert_eq!(outdated.reason("i-1"), None);
        assert_eq!(outdated.reason("i-2"), Some(OutdatedReason::TemplateChanged));
        assert_eq!(outdated.reason("i-3"), Some(OutdatedReason::Adopted));
    }
}

/// Another management cluster may have written its tags after ours: ours count only after a while.
#[test]
fn w14_p30_a_group_that_was_just_tagged_is_read_again_first() {
    let mut stage = Stage::new(2);
    stage.desired.provider_id = None;
    stage.desired.replicas = 5;
    *stage.memory.ownership.adopted_at_mut() = Some(now());
    let plan = stage.plan();
    assert!(plan.is_empty() && plan.blocker == Some(Blocker::Adopting));
    stage.clock = now() + TimeDelta::seconds(10);
    assert!(stage.plan().needs.fresh_group);
    if let GroupView::Present { as_of, .. } = &mut stage.observed.group {
        *as_of = now() + TimeDelta::seconds(10);
    }
    assert!(!stage.plan().is_empty());
    // The clock is set back by an hour: the view is older than the adoption, and the pool does not wait for it.
    let set_back = now() - TimeDelta::hours(1);
    if let GroupView::Present { as_of, .. } = &mut stage.observed.group {
        *as_of = set_back;
    }
    stage.clock = set_back;
    assert!(!stage.plan().is_empty());
}

/// A view from before our tags does not release a group that has them.
#[test]
fn w14_a_deletion_waits_for_tags_that_may_exist() {
    let mut stage = stage();
    let decide = |stage: &Stage| deletion::decide(&stage.input(), Waiting::ForMachines);
    *stage.memory.ownership.unowned_since_mut() = Some(now());
    let waits = |plan: &Plan| plan.blocker == Some(Blocker::Adopting) && plan.is_empty();
    assert!(waits(&decide(&stage)));
    *stage.memory.ownership.unowned_since_mut() = Some(now() - TimeDelta::seconds(15));
    assert!(!waits(&decide(&stage)));
    stage.observed.fresh_group = false;
    assert!(waits(&decide(&stage)) && decide(&stage).needs.fresh_group);
    stage.desired.adopts = false;
    assert!(!waits(&decide(&stage)));
}

/// What is shown fits the status.
#[test]
fn p54_the_changes_of_an_adoption_are_reported_with_both_values() {
    let pending = stage().plan().pending.unwrap();
    let find = |path: &str| pending.iter().find(|change| change.path == path).cloned();
    let change = |path: &str, from: &str, to: &str, effect: &str| PendingChange {
        path: path.into(),
        from: from.into(),
        to: to.into(),
        effect: effect.into(),
    };
    for expected in [
        change("tag asg.infrastructure.cluster.x-k8s.io/owner-id", "none", "\"me\"", "Adopts 2 instances"),
        change("launch template", "lt-theirs version 1", "t", "Makes 2 instances outdated"),
        change("MinSize of the Auto Scaling group", "1", "0", "InPlace"),
        change("MaxSize of the Auto Scaling group", "5", "2", "InPlace"),
    ] {
        assert_eq!(find(&expected.path), Some(expected));
    }
}
