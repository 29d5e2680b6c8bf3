//! A preview holds everything but sizes, and names what it holds.

use std::sync::Arc;

use capasg_cloud::{BlockDevice, LaunchTemplateData, LaunchTemplateVersion};
use proptest::prelude::*;

use crate::machine_pool::decide::settings::content;
use crate::machine_pool::decide::testing::{Stage, cloud, now, stamp, version};
use crate::machine_pool::decide::{pool, preview, testing};
use crate::machine_pool::model::call_kind::CallKind;
use crate::machine_pool::model::launch_content::content_hash;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::{DesiredLaunch, Input, Known, ObservedTemplate, ResolvedImage};

fn data(edit: impl FnOnce(&mut LaunchTemplateData)) -> LaunchTemplateData {
    let stage = Stage::new(0);
    let DesiredLaunch::Known { data, .. } = stage.desired.launch else { unreachable!() };
    let mut data = *data;
    data.block_devices = vec![BlockDevice {
        device_name: "/dev/xvda".into(),
        size_gib: None,
        volume_type: "gp3".into(),
        iops: None,
        throughput_mibps: None,
        encrypted: Some(true),
        kms_key_id: None,
        snapshot_id: None,
        delete_on_termination: true,
    }];
    edit(&mut data);
    data
}

/// What another actor changed differs from what desired state and group last agreed on; an edit of the spec does not.
#[test]
fn a_preview_tells_drift_from_edits_of_the_spec() {
    let mut stage = Stage::new(1);
    stage.desired.previews = true;
    let drifted = |stage: &Stage| -> Vec<(String, bool)> {
        let compared = preview::hold(&stage.input()).unwrap().compared.unwrap();
        compared.differences.into_iter().map(|one| (one.path, one.is_drift)).collect()
    };
    // Twice, since what they agree on must not follow AWS while the preview lasts.
    for _ in 0..2 {
        let held = preview::hold(&stage.input()).unwrap();
        let mut plan = pool::plan(&Input { desired: &held.desired, ..stage.input() });
        plan.preview(held.compared.unwrap());
        stage.memory.decide(&stage.observed, &plan, now());
        if drifted(&stage).is_empty() {
            stage.desired.settings.default_cooldown = 120;
            stage.group().settings.health_check_grace_period = 10;
        }
        let expected = [
            ("spec.group.defaultCooldownSeconds".to_owned(), false),
            ("spec.group.healthCheckGracePeriodSeconds".to_owned(), true),
        ];
        let mut found = drifted(&stage);
        found.sort();
        assert_eq!(found, expected);
    }
}

/// The group launches from a version that another actor created, and the spec has changed since.
#[test]
fn a_preview_lists_what_replaces_the_version_of_another_actor() {
    let mut stage = Stage::new(2);
    stage.desired.previews = true;
    let foreign = LaunchTemplateData { image_id: "ami-2".into(), ..testing::data().without_user_data() };
    let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template else { panic!() };
    let number = versions.keys().next_back().unwrap() + 1;
    let description = Some("edited by hand".to_owned());
    let content = Some(Arc::new(foreign));
    versions.insert(number, LaunchTemplateVersion { description, content, ..version(number, &stamp("")) });
    stage.group().settings.launch.template.version = Some(number);
    let listed = |stage: &Stage| -> Vec<String> {
        let pending = preview::hold(&stage.input()).unwrap().pending.unwrap();
        pending.into_iter().map(|one| format!("{}: {}", one.path, one.effect)).collect()
    };
    let bootstrap = "bootstrap data: InPlace";
    let of_version_1 = "spec.machine.image: InPlace";
    assert_eq!(listed(&stage), [bootstrap, "launch template: InPlace", of_version_1]);
    let DesiredLaunch::Known { stamp: wanted, .. } = &mut stage.desired.launch else { panic!() };
    *wanted = stamp("another spec");
    let replaced = "launch template: InPlace";
    assert_eq!(listed(&stage), [bootstrap, replaced, "spec.machine.image: Makes 2 instances outdated"]);
    stage.group().settings.launch.template.version = None;
    assert_eq!(listed(&stage), [bootstrap, replaced], "$Latest");
    stage.group().settings.launch.template.version = Some(9);
    assert_eq!(listed(&stage), [] as [&str; 0], "a version that was not read");
}

/// Weakness 5: volumes, and all else that a version holds, are compared; each instance under its own path.
#[test]
fn w2_w5_each_field_of_a_version_has_a_path() {
    type Edit = fn(&mut LaunchTemplateData);
    let second = |data: &mut LaunchTemplateData| {
        let other = BlockDevice { device_name: "/dev/xvdb".into(), ..data.block_devices[0].clone() };
        data.block_devices.push(other);
    };
    let edits: [(&str, Edit); 19] = [
        ("spec.machine.image", |d| d.image_id = "ami-2".into()),
        ("spec.machine.iamInstanceProfile", |d| d.iam_instance_profile = Some("nodes".into())),
        ("spec.machine.sshKeyName", |d| d.key_name = Some("key".into())),
        ("spec.machine.securityGroups", |d| d.security_group_ids = vec!["sg-1".into()]),
        ("spec.machine.rootVolume.sizeGiB", |d| d.block_devices[0].size_gib = Some(80)),
        ("spec.machine.rootVolume.type", |d| d.block_devices[0].volume_type = "io2".into()),
        ("spec.machine.rootVolume.iops", |d| d.block_devices[0].iops = Some(4000)),
        ("spec.machine.rootVolume.throughputMiBps", |d| d.block_devices[0].throughput_mibps = Some(300)),
        ("spec.machine.rootVolume.encryption", |d| d.block_devices[0].encrypted = None),
        ("spec.machine.rootVolume.kmsKeyID", |d| d.block_devices[0].kms_key_id = Some("key".into())),
        ("spec.machine.rootVolume.onTermination", |d| d.block_devices[0].delete_on_termination = false),
        ("spec.machine.dataVolumes[/dev/xvdb]", second),
        ("spec.machine.metadataOptions.httpTokens", |d| d.metadata_options.http_tokens = "optional".into()),
        ("spec.machine.metadataOptions.httpPutResponseHopLimit", |d| {
            d.metadata_options.http_put_response_hop_limit = 2;
        }),
        ("spec.machine.metadataOptions.httpEndpoint", |d| {
            d.metadata_options.http_endpoint = "disabled".into();
        }),
        ("spec.machine.metadataOptions.httpProtocolIPv6", |d| {
            d.metadata_options.http_protocol_ipv6 = "enabled".into();
        }),
        ("InstanceMetadataTags of the launch template", |d| {
            d.metadata_options.instance_metadata_tags = "enabled".into();
        }),
        ("spec.instanceTypes", |d| d.instance_type = "m6i.large".into()),
        ("spec.tags[team]", |d| {
            d.tags.insert("team".into(), "a".into());
        }),
    ];
    let seen = data(|_| {});
    assert!(content::compare(&seen, &seen).is_empty());
    for (path, edit) in edits {
        for (wanted, had) in [(data(edit), seen.clone()), (seen.clone(), data(edit))] {
            let differences = content::compare(&wanted, &had);
            assert_eq!(
                differences.iter().map(|difference| difference.path.as_str()).collect::<Vec<_>>(),
                [path]
            );
            assert_ne!(differences[0].seen, differences[0].wanted, "{path}");
        }
    }
}

/// The other volumes of the image are encrypted without a field of the spec: from the next version on, whatever makes it.
#[test]
fn volumes_of_the_image_are_no_change() {
    let image = ResolvedImage::with_volumes("/dev/xvda", &[("/dev/xvdb", 20)]);
    let device = BlockDevice::encrypting("/dev/xvdb", image.volume("/dev/xvdb").unwrap(), None);
    let encrypted = data(|data| data.block_devices.push(device.clone()));
    assert!(content::compare(&encrypted, &data(|_| {})).is_empty());
    assert!(content::compare(&data(|_| {}), &encrypted).is_empty());
    let set = data(|data| {
        data.block_devices.push(BlockDevice { volume_type: "gp3".into(), ..device.clone() });
    });
    let differences = content::compare(&encrypted, &set);
    let shown: Vec<_> = differences.iter().map(|one| (one.path.as_str(), one.wanted.as_str())).collect();
    assert_eq!(shown, [("spec.machine.dataVolumes[/dev/xvdb]", "none")]);
}

/// The stamp of what the stage's version holds.
fn stamped(stage: &Stage) -> Stamp {
    let DesiredLaunch::Known { data, .. } = &stage.desired.launch else { unreachable!() };
    Stamp { content: content_hash(data, &user_data_hash(stage)), ..stamp("1") }
}

fn user_data_hash(stage: &Stage) -> String {
    stage.desired.bootstrap.as_ref().map(|bootstrap| bootstrap.content.clone()).unwrap_or_default()
}

proptest! {
    /// Pain 54: whatever differs, a preview writes nothing but capacity, and reports what would be written otherwise.
    #[test]
    fn p54_a_preview_writes_capacity_alone(
        cooldown in 0..3i32,
        protects in any::<bool>(),
        tag in prop::option::of("[ab]"),
        processes in prop::sample::subsequence(&["AZRebalance", "HealthCheck", "Launch"][..], 0..=3),
        unprotected in any::<bool>(),
        hook in any::<bool>(),
        image in any::<bool>(),
        types in prop::sample::subsequence(&["m7i.large", "m6i.large"][..], 1..=2),
        replicas in 1..6i32,
    ) {
        let mut stage = Stage::new(3);
        let desired = Stamp { rollout: stamp(if image { "2" } else { "1" }).rollout, ..stamped(&stage) };
        if let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template {
            let content = versions[&1].content.clone();
            versions.insert(1, LaunchTemplateVersion { content, ..version(1, &Stamp { rollout: stamp("1").rollout, ..desired.clone() }) });
        }
        let user_data = user_data_hash(&stage);
        if let DesiredLaunch::Known { data, stamp, .. } = &mut stage.desired.launch {
            if image {
                data.image_id = "ami-2".into();
            }
            *stamp = Stamp { content: content_hash(data, &user_data), ..desired };
        }
        stage.desired.previews = true;
        stage.desired.replicas = replicas;
        stage.desired.instance_types = types.into_iter().map(str::to_owned).collect();
        stage.group().settings.default_cooldown = cooldown;
        stage.group().settings.protect_new_instances = protects;
        if let Some(value) = tag {
            stage.desired.tags.insert("team".into(), capasg_cloud::GroupTag { value, propagate: true });
        }
        stage.group().suspended_processes =
            processes.into_iter().map(|name| (name.to_owned(), "User suspended at x".to_owned())).collect();
        stage.instance("i-1").listed.as_mut().unwrap().protected = !unprotected;
        if hook {
            stage.observed.hook = Known::Absent;
        }
        let apply = {
            stage.desired.previews = false;
            let plan = stage.plan();
            stage.desired.previews = true;
            !plan.differences.is_empty() || image
        };
        let preview::Held { desired: held, pending, .. } = preview::hold(&stage.input()).unwrap();
        prop_assert_eq!(pending.map(|changes| !changes.is_empty()), Some(apply));
        stage.desired = held;
        for write in cloud(&stage.plan()) {
            prop_assert!(
                ["SetDesiredCapacity", "UpdateAutoScalingGroup"].contains(&write.api()) && CallKind::of(write) == CallKind::UpdateCapacity,
                "{write:?}"
            );
        }
    }
}

/// The group is pinned to a version of another actor, which has no stamp.
#[test]
fn p54_a_preview_over_a_foreign_version_reports_what_it_outdates() {
    let mut stage = Stage::new(2);
    stage.desired.previews = true;
    let Known::Present(ObservedTemplate { versions, .. }) = &mut stage.observed.template else {
        unreachable!()
    };
    let foreign = LaunchTemplateData { image_id: "ami-9".into(), ..testing::data().without_user_data() };
    let content = Some(Arc::new(foreign));
    let of_others = LaunchTemplateVersion {
        description: None,
        image_id: Some("ami-9".into()),
        content,
        ..version(9, &stamp("1"))
    };
    versions.insert(9, of_others);
    stage.group().settings.launch.template.version = Some(9);
    stage.instance("i-2").listed.as_mut().unwrap().template = Some(("lt-1".into(), 9));
    let pending = |stage: &Stage| preview::hold(&stage.input()).unwrap().pending.unwrap();
    let image = pending(&stage).into_iter().find(|change| change.path == "spec.machine.image").unwrap();
    let told = (image.from.as_str(), image.to.as_str(), image.effect.as_str());
    assert_eq!(told, ("ami-9", "ami-1", "Makes 1 instance outdated"));
    // No instance was launched from it.
    stage.instance("i-2").listed.as_mut().unwrap().template = Some(("lt-1".into(), 1));
    assert!(pending(&stage).iter().all(|change| change.effect == "InPlace"), "{:?}", pending(&stage));
}
