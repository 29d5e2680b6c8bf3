//! Launch-template versions by example.

use std::{collections::BTreeSet, sync::Arc};

use capasg_cloud::{
    BlockDevice, CloudError, GroupChange, Launch, LaunchTemplateData, LaunchTemplateVersion, TemplateRef,
    Write,
};
use chrono::TimeDelta;

use crate::machine_pool::decide::preview;
use crate::machine_pool::decide::rollout::outdated;
use crate::machine_pool::decide::testing::{self, Stage, cloud, kubernetes, stamp, version};
use crate::machine_pool::model::memory::record::{Answer, Entry};
use crate::machine_pool::model::retry_key::retry_key;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::template_versions::differ_in_user_data_alone;
use crate::machine_pool::model::{
    Desired, DesiredLaunch, Known, ObservedTemplate, OutdatedReason, ResolvedImage,
};

/// A pool whose token was rotated, and the stamp of the version that has the new one.
fn rotated() -> (Stage, Stamp) {
    let mut stage = Stage::new(3);
    let rotated = Stamp { content: stamp("2").content, ..stamp("1") };
    if let DesiredLaunch::Known { stamp, .. } = &mut stage.desired.launch {
        *stamp = rotated.clone();
    }
    (stage, rotated)
}

/// The launch template has a version 2.
fn add_version(stage: &mut Stage, stamp: &Stamp) {
    if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
        versions.insert(2, version(2, stamp));
    }
}

#[test]
fn h2_a_rotation_creates_a_version_and_outdates_nothing() {
    let (mut stage, rotated) = rotated();
    let plan = stage.plan();
    assert!(matches!(cloud(&plan)[..], [Write::CreateLaunchTemplateVersion { .. }]), "{plan:?}");
    add_version(&mut stage, &rotated);
    let plan = stage.plan();
    assert!(
        matches!(cloud(&plan)[..], [Write::UpdateGroup { change, .. }] if change.launch.is_some()),
        "pinned by number"
    );
    assert_eq!(outdated::outdated(&stage.desired, &stage.observed, stage.clock).count(), 0);
}

/// Calls about the capacity that fail again and again leave no view settled.
#[test]
fn h2_a_version_is_pinned_without_a_settled_view() {
    let (mut stage, rotated) = rotated();
    add_version(&mut stage, &rotated);
    stage.unsettled();
    let plan = stage.plan();
    assert!(
        matches!(cloud(&plan)[..], [Write::UpdateGroup { change, .. }] if change.launch.is_some()),
        "{plan:?}"
    );
}

/// The change of a group to launch this.
fn update(launch: &Launch) -> Write {
    let change = Box::new(GroupChange { launch: Some(launch.clone()), ..GroupChange::default() });
    Write::UpdateGroup { group: "g".to_owned(), change }
}

fn accept(stage: &mut Stage, write: &Write) {
    stage.memory.record(Entry::Answered { write, answer: Answer::Made { adopts: false } }, testing::now());
}

/// Reads of the group fail since before our last change of what it launches: that content gets the token, with its types, and
/// not the content before it.
#[test]
fn a_token_is_renewed_for_what_the_group_launches_by_our_last_change() {
    let mut stage = Stage::new(3);
    let next = LaunchTemplateData { image_id: "ami-2".into(), ..testing::data().without_user_data() };
    let content = Some(Arc::new(next));
    if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
        let next = Stamp { rollout: stamp("2").rollout, ..stamp("1") };
        versions.insert(2, LaunchTemplateVersion { content, ..version(2, &next) });
    }
    stage.desired.launch = DesiredLaunch::Unknown;
    let image = |stage: &Stage| {
        let plan = stage.plan();
        let found = cloud(&plan).into_iter().find_map(|write| match write {
            Write::CreateLaunchTemplateVersion { data, .. } => Some(data.image_id.clone()),
            _ => None,
        });
        found.unwrap()
    };
    let before = image(&stage);
    let launch = Launch {
        template: TemplateRef { version: Some(2), ..stage.group().settings.launch.template.clone() },
        mixed: Some(testing::mixed(&[])),
    };
    accept(&mut stage, &update(&launch));
    assert_eq!((before.as_str(), image(&stage).as_str()), ("ami-1", "ami-2"));
    stage.desired.previews = true;
    let held = preview::hold(&stage.input()).unwrap().desired;
    let DesiredLaunch::Known { data, .. } = &held.launch else { panic!("{:?}", held.launch) };
    assert_eq!((data.image_id.as_str(), held.settings.mixed.is_some()), ("ami-2", true));
}

/// A user reverts a change that AWS accepted, before a view shows the group: the view seems as desired.
#[test]
fn a_reverted_change_is_sent_back_although_no_view_shows_the_group() {
    let mut stage = Stage::new(3);
    let current = stage.group().settings.launch.clone();
    let next =
        Launch { template: TemplateRef { version: Some(2), ..current.template.clone() }, ..current.clone() };
    let launches = |stage: &Stage| -> Vec<Launch> {
        let plan = stage.plan();
        let changes = cloud(&plan).into_iter().filter_map(|write| match write {
            Write::UpdateGroup { change, .. } => change.launch.clone(),
            _ => None,
        });
        changes.collect()
    };
    assert!(launches(&stage).is_empty());
    accept(&mut stage, &update(&next));
    assert_eq!(launches(&stage), std::slice::from_ref(&current));
    accept(&mut stage, &update(&current));
    assert!(launches(&stage).is_empty(), "once");
    // AWS does not answer a change: nothing but what is desired is launched.
    let error = CloudError::answered("UpdateAutoScalingGroup", 500, "InternalFailure", "words");
    let answer = Answer::Failed(&error);
    stage.memory.record(Entry::Answered { write: &update(&next), answer }, testing::now());
    stage.desired.launch = DesiredLaunch::Unknown;
    assert!(cloud(&stage.plan()).is_empty());
}

/// A call whose first attempt lands late creates a second version.
#[test]
fn h2_a_newer_version_with_the_same_content_does_not_change_the_group() {
    let mut stage = Stage::new(3);
    add_version(&mut stage, &stamp("1"));
    let plan = stage.plan();
    assert!(cloud(&plan).is_empty(), "{plan:?}");
}

/// The version that a change pins the group to.
fn pinned(change: &GroupChange) -> Option<i64> {
    change.launch.as_ref()?.template.version
}

/// AWS rejects the call of a plan.
fn reject(stage: &mut Stage, write: &Write) {
    let key = retry_key(&stage.objects, &stage.memory, &stage.plan());
    let error = CloudError::answered("Api", 400, "ValidationError", "The key pair 'missing' does not exist");
    let answer = Answer::Rejected { error: &error, retry_key: &key };
    stage.memory.record(Entry::Answered { write, answer }, stage.clock);
}

/// The version that a plan pins the group to.
fn pins(stage: &Stage) -> Option<i64> {
    stage.plan().writes().find_map(|write| match write {
        Write::UpdateGroup { change, .. } => pinned(change),
        _ => None,
    })
}

/// A pool of another key pair, whose version 2 AWS has rejected. Its version 3 has the previous content with the current
/// bootstrap data.
fn rejected(edit: impl FnOnce(&mut Stage)) -> Stage {
    let mut stage = Stage::new(3);
    edit(&mut stage);
    let DesiredLaunch::Known { data, stamp: wanted, .. } = &mut stage.desired.launch else { panic!() };
    data.key_name = Some("missing".to_owned());
    *wanted = Stamp { content: stamp("2").content, ..wanted.clone() };
    let wanted = wanted.clone();
    add_version(&mut stage, &wanted);
    assert_eq!(pins(&stage), Some(2));
    let write =
        cloud(&stage.plan()).into_iter().find(|write| write.api() == "UpdateAutoScalingGroup").cloned();
    reject(&mut stage, &write.unwrap());

    let plan = stage.plan();
    let [Write::CreateLaunchTemplateVersion { data, description, .. }] = cloud(&plan)[..] else {
        panic!("{plan:?}")
    };
    assert!(plan.launches_previous && data.key_name.is_none(), "{data:?}");
    assert_eq!(data.user_data, testing::data().user_data);
    let previous = Stamp::parse(description).unwrap();
    let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template else { panic!() };
    versions.insert(3, version(3, &previous));
    stage
}

#[test]
fn h2_the_previous_content_gets_the_token_while_aws_rejects_the_next_one() {
    let mut stage = rejected(|_| {});
    assert_eq!(pins(&stage), Some(3));
    stage.group().settings.launch.template.version = Some(3);
    let plan = stage.plan();
    assert!(plan.launches_previous && cloud(&plan).is_empty(), "no other version: {plan:?}");
    // The retry is due.
    stage.clock += TimeDelta::seconds(30);
    assert_eq!(pins(&stage), Some(2));
    // A user changes something before.
    stage.clock -= TimeDelta::seconds(29);
    assert_eq!(pins(&stage), None);
    Arc::make_mut(&mut stage.objects.pool).spec.retry_token = Some("now".to_owned());
    assert_eq!(pins(&stage), Some(2));
}

/// AWS takes types and purchase options together with the version. What they make outdated would be replaced without end.
#[test]
fn h2_the_previous_content_is_launched_with_the_previous_types() {
    for mixed in [None, Some(testing::mixed(&[]))] {
        let mut stage = rejected(|stage| {
            stage.desired.settings.mixed = mixed;
            stage.desired.instance_types = vec!["m6i.large".to_owned()];
            stage.desired_for(3600);
        });
        let plan = stage.plan();
        let [Write::UpdateGroup { change, .. }] = cloud(&plan)[..] else { panic!("{plan:?}") };
        let launch = change.launch.as_ref().unwrap();
        assert_eq!((launch.template.version, &launch.mixed), (Some(3), &None));
        stage.group().settings.launch.template.version = Some(3);
        let plan = stage.plan();
        assert_eq!(plan.outdated.count(), 3, "of a type that was removed");
        assert!(cloud(&plan).is_empty() && kubernetes(&plan).is_empty(), "{plan:?}");
    }
}

/// The content is the same: AWS rejects a type of the mixed instances policy.
#[test]
fn h2_a_token_is_launched_with_the_previous_policy_while_aws_rejects_the_next_one() {
    let mut stage = Stage::new(3);
    let rotated = rotate(&mut stage);
    stage.desired.settings.mixed = Some(testing::mixed(&[]));
    add_version(&mut stage, &rotated);
    assert_eq!(pins(&stage), Some(2));
    let write = cloud(&stage.plan())[0].clone();
    reject(&mut stage, &write);
    let plan = stage.plan();
    let [Write::UpdateGroup { change, .. }] = cloud(&plan)[..] else { panic!("{plan:?}") };
    let launch = change.launch.as_ref().unwrap();
    assert_eq!((launch.template.version, &launch.mixed), (Some(2), &None));
}

/// The desired stamp after a rotation of the bootstrap data.
fn rotate(stage: &mut Stage) -> Stamp {
    let bootstrap = stage.desired.bootstrap.as_ref().unwrap().content.clone();
    let content = crate::machine_pool::model::launch_content::content_hash(&testing::data(), &bootstrap);
    let rotated = Stamp { content, ..stamp("1") };
    if let DesiredLaunch::Known { stamp, .. } = &mut stage.desired.launch {
        *stamp = rotated.clone();
    }
    rotated
}

/// A rotation alone is another version of the same content.
#[test]
fn h2_the_same_content_is_not_tried_in_another_version() {
    let mut stage = Stage::new(3);
    let rotated = rotate(&mut stage);
    add_version(&mut stage, &rotated);
    assert_eq!(pins(&stage), Some(2));
    let write = cloud(&stage.plan())[0].clone();
    reject(&mut stage, &write);
    assert!(pins(&stage) == Some(2) && !stage.plan().launches_previous);
}

/// An upgrade of CAPASG changes nothing by itself: the version of the earlier release stays while the group is pinned to it.
#[test]
fn a_version_that_does_not_encrypt_volumes_of_the_image_is_not_pinned_again() {
    let mut stage = Stage::new(3);
    let image = ResolvedImage::with_volumes("/dev/xvda", &[("/dev/xvdb", 20)]);
    let device = BlockDevice::encrypting("/dev/xvdb", image.volume("/dev/xvdb").unwrap(), None);
    let encrypting = LaunchTemplateData { block_devices: vec![device], ..testing::data() };
    let DesiredLaunch::Known { data, .. } = &mut stage.desired.launch else { panic!() };
    **data = encrypting.clone();
    let plan = stage.plan();
    assert!(cloud(&plan).is_empty(), "{plan:?}");
    // The desired state was another one meanwhile.
    add_version(&mut stage, &stamp("2"));
    stage.group().settings.launch.template.version = Some(2);
    let plan = stage.plan();
    let Some(Write::CreateLaunchTemplateVersion { data, description, .. }) = cloud(&plan).pop() else {
        panic!("{plan:?}")
    };
    assert_eq!((&**data, description), (&encrypting, &stamp("1").to_string()));
    if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
        let content = Some(Arc::new(encrypting.without_user_data()));
        versions.insert(3, LaunchTemplateVersion { content, ..version(3, &stamp("1")) });
    }
    let plan = stage.plan();
    assert!(
        matches!(cloud(&plan)[..], [Write::UpdateGroup { change, .. }] if pinned(change) == Some(3)),
        "{plan:?}"
    );
    assert_eq!(outdated::outdated(&stage.desired, &stage.observed, stage.clock).count(), 0);
}

/// EC2 rejects tags for Spot Instance requests if it makes none. An upgrade of CAPASG changes nothing by itself: a version of an
/// earlier release has no such tags.
#[test]
fn a_version_that_tags_spot_requests_is_not_kept_for_on_demand_instances() {
    let mut stage = Stage::new(3);
    if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
        let content = LaunchTemplateData { spot: true, ..testing::data().without_user_data() };
        versions.get_mut(&1).unwrap().content = Some(Arc::new(content));
    }
    let plan = stage.plan();
    let Some(Write::CreateLaunchTemplateVersion { data, description, .. }) = cloud(&plan).pop() else {
        panic!("{plan:?}")
    };
    assert_eq!((data.spot, description), (false, &stamp("1").to_string()));
    let mut stage = Stage::new(3);
    let DesiredLaunch::Known { data, .. } = &mut stage.desired.launch else { panic!() };
    data.spot = true;
    let plan = stage.plan();
    assert!(cloud(&plan).is_empty(), "{plan:?}");
}

/// Another release may have created one of them, without what no hash contains.
#[test]
fn h2_versions_of_two_releases_may_differ_in_user_data_alone() {
    type Edit = fn(&mut LaunchTemplateData);
    let edits: [(Edit, bool); 3] = [
        (
            |data| {
                let image = ResolvedImage::with_volumes("/dev/xvda", &[("/dev/xvdb", 20)]);
                let volume = image.volume("/dev/xvdb").unwrap();
                data.block_devices = vec![BlockDevice::encrypting("/dev/xvdb", volume, None)];
            },
            true,
        ),
        (|data| data.spot = true, true),
        (|data| drop(data.tags.insert("team".to_owned(), "a".to_owned())), false),
    ];
    for (edit, is_alone) in edits {
        let (mut stage, rotated) = rotated();
        add_version(&mut stage, &rotated);
        assert!(differ_in_user_data_alone(&stage.observed, 1, 2));
        let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template else {
            panic!()
        };
        let mut content = testing::data().without_user_data();
        edit(&mut content);
        versions.get_mut(&2).unwrap().content = Some(Arc::new(content));
        assert_eq!(differ_in_user_data_alone(&stage.observed, 1, 2), is_alone);
        assert!(!differ_in_user_data_alone(&stage.observed, 1, 1));
    }
}

/// A new leader, or one to which the pool was moved, knows nothing of the versions before it has read them.
#[test]
fn m4_nothing_is_up_to_date_before_the_launch_template_is_read() {
    let mut stage = Stage::new(2);
    let found = |stage: &Stage| outdated::outdated(&stage.desired, &stage.observed, stage.clock);
    assert!(found(&stage).is_up_to_date("i-1"));
    stage.observed.template = Known::Unread(None);
    let unread = found(&stage);
    assert_eq!((unread.count(), unread.unknown().len()), (0, 2));
    assert!(!unread.is_up_to_date("i-1"));
}

/// Another actor pins a version of its own and launches from it: only its content says what the instance is.
#[test]
fn h3_a_version_of_another_actor_is_compared_by_its_content() {
    let mut stage = Stage::new(2);
    let with_image = |image: &str| LaunchTemplateVersion {
        description: None,
        image_id: Some(image.to_owned()),
        content: Some(Arc::new(LaunchTemplateData {
            image_id: image.to_owned(),
            ..testing::data().without_user_data()
        })),
        ..version(2, &stamp("1"))
    };
    stage.add("i-3", 2);
    for (image, reason) in [("ami-1", None), ("ami-9", Some(OutdatedReason::ImageChanged))] {
        if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
            versions.insert(2, with_image(image));
        }
        let outdated = outdated::outdated(&stage.desired, &stage.observed, stage.clock);
        assert_eq!((outdated.reason("i-3"), outdated.reason("i-1")), (reason, None), "{image}");
        // While the desired content is unknown, that of our newest version counts.
        let desired = Desired { launch: DesiredLaunch::Unknown, ..stage.desired.clone() };
        let outdated = outdated::outdated(&desired, &stage.observed, stage.clock);
        assert_eq!((outdated.count() > 0, outdated.reason("i-1")), (reason.is_some(), None), "{image}");
    }
}

#[test]
fn p5_old_versions_are_pruned_in_one_call_and_never_one_in_use() {
    let mut stage = Stage::new(3);
    if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
        versions.extend((2..=12).map(|n| (n, version(n, &stamp(&n.to_string())))));
    }
    stage.instance("i-2").listed.as_mut().unwrap().template = Some(("lt-1".into(), 5));
    let plan = stage.plan();
    let Some(Write::DeleteLaunchTemplateVersions { versions, .. }) = cloud(&plan).pop() else {
        panic!("{plan:?}")
    };
    assert_eq!(*versions, BTreeSet::from([2, 3, 4, 6, 7, 8, 9]));
}
