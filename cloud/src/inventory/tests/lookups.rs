//! What is read once and kept.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::future::join_all;

use super::{Bench, SOON, bench, bench_with};
use crate::{
    CloudError, Image, ImageBlockDevice, ImageVolume, LaunchTemplateData, LifecycleHook, Limits,
    MetadataOptions, Rate, Selector, Subnet, UserData, Write, Written,
    testing::{Upset, pass},
};

const SNAPSHOTS: &str = "DescribeSnapshots";
const SUBNETS: &str = "DescribeSubnets";

fn ids(ids: &[&str]) -> Selector {
    Selector::Ids(ids.iter().map(ToString::to_string).collect())
}

fn subnet(id: &str) -> Subnet {
    Subnet { id: id.to_owned(), zone: "eu-west-1a".to_owned(), vpc: "vpc-1".to_owned() }
}

pub(super) fn data(image: &str) -> Box<LaunchTemplateData> {
    let text = str::to_owned;
    Box::new(LaunchTemplateData {
        image_id: text(image),
        instance_type: text("m7i.large"),
        iam_instance_profile: None,
        key_name: None,
        security_group_ids: vec![],
        block_devices: vec![],
        metadata_options: MetadataOptions {
            http_tokens: text("required"),
            http_put_response_hop_limit: 1,
            http_endpoint: text("enabled"),
            http_protocol_ipv6: text("disabled"),
            instance_metadata_tags: text("disabled"),
        },
        user_data: UserData::default(),
        tags: BTreeMap::new(),
        spot: false,
    })
}

fn create_template(name: &str) -> Write {
    Write::CreateLaunchTemplate {
        name: name.to_owned(),
        data: data("ami-1"),
        description: "first".to_owned(),
        tags: BTreeMap::new(),
        client_token: "t1".to_owned(),
    }
}

fn create_version(id: &str, image: &str) -> Write {
    Write::CreateLaunchTemplateVersion {
        id: id.to_owned(),
        data: data(image),
        description: "next".to_owned(),
        client_token: "t2".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_at_once_share_a_call_and_later_ones_its_answer() {
    let Bench { cloud, inventory, .. } = bench();
    cloud.world().subnets = vec![subnet("subnet-1")];
    cloud.upset(SUBNETS, [Upset::Slow(Duration::from_secs(1))]);
    let selector = ids(&["subnet-1"]);
    let answers = join_all((0..50).map(|_| inventory.subnets(&selector))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap()[0].id == "subnet-1"));
    pass(Duration::from_mins(8)).await;
    inventory.subnets(&selector).await.unwrap();
    assert_eq!(cloud.count(SUBNETS), 1);
    pass(Duration::from_mins(4)).await;
    inventory.subnets(&selector).await.unwrap();
    assert_eq!(cloud.count(SUBNETS), 2, "after about ten minutes it is read again");
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_does_not_stop_the_others() {
    let Bench { cloud, inventory, .. } = bench();
    cloud.upset(SUBNETS, [Upset::Slow(Duration::from_secs(2))]);
    let selector = ids(&["subnet-1"]);
    let leaving = async {
        tokio::select! {
            _ = inventory.subnets(&selector) => panic!("it is slow"),
            () = pass(Duration::from_secs(1)) => {}
        }
    };
    let ((), answer) = tokio::join!(leaving, inventory.subnets(&selector));
    answer.unwrap();
    assert_eq!(cloud.count(SUBNETS), 1);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_lookup_gives_up_its_place_in_the_rate_limit() {
    let rate = Rate { per_second: 0.1, burst: 1.0 };
    let Bench { cloud, inventory, .. } = bench_with(Limits { ec2_read: rate, ..Limits::default() });
    inventory.subnets(&ids(&["subnet-1"])).await.unwrap();
    let abandoned = ids(&["subnet-2"]);
    tokio::select! {
        _ = inventory.subnets(&abandoned) => panic!("it waits for the rate limit"),
        () = pass(Duration::from_secs(1)) => {}
    }
    let next = ids(&["subnet-3"]);
    tokio::time::timeout(Duration::from_mins(1), inventory.subnets(&next)).await.unwrap().unwrap();
    assert_eq!(cloud.count(SUBNETS), 2, "the abandoned call is not made");
    tokio::time::timeout(Duration::from_mins(1), inventory.subnets(&abandoned)).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_or_failed_is_asked_for_again_after_two_seconds() {
    let Bench { cloud, inventory, .. } = bench();
    cloud.world().subnets = vec![subnet("subnet-1")];
    let selector = ids(&["subnet-1", "subnet-2"]);
    let denied = CloudError::answered(SUBNETS, 403, "UnauthorizedOperation", "no");
    cloud.upset(SUBNETS, [Upset::Fail(denied.clone())]);
    for _ in 0..10 {
        assert_eq!(inventory.subnets(&selector).await.unwrap_err(), denied);
    }
    assert_eq!(cloud.count(SUBNETS), 1);
    pass(Duration::from_secs(2)).await;
    for _ in 0..10 {
        assert_eq!(inventory.subnets(&selector).await.unwrap().len(), 1);
    }
    assert_eq!(cloud.count(SUBNETS), 2);
    cloud.world().subnets.push(subnet("subnet-2"));
    pass(Duration::from_secs(2)).await;
    assert_eq!(inventory.subnets(&selector).await.unwrap().len(), 2);
    pass(Duration::from_mins(5)).await;
    assert_eq!(inventory.subnets(&selector).await.unwrap().len(), 2);
    assert_eq!(cloud.count(SUBNETS), 3, "whole answers are kept");
}

#[tokio::test(start_paused = true)]
async fn images_parameters_and_the_account_are_kept() {
    let Bench { cloud, inventory, .. } = bench();
    assert_eq!(inventory.image("ami-1").await.unwrap(), None);
    let image = Image {
        id: "ami-1".to_owned(),
        root_device_name: None,
        architecture: None,
        is_windows: false,
        block_devices: vec![],
    };
    cloud.world().images.insert("ami-1".to_owned(), image.clone());
    pass(Duration::from_secs(2)).await;
    for _ in 0..3 {
        assert_eq!(inventory.image("ami-1").await.unwrap(), Some(image.clone()));
        assert_eq!(inventory.parameter("/images/node").await.unwrap().as_deref(), Some("ami-1"));
        assert_eq!(inventory.account().await.unwrap(), "123456789012");
        pass(Duration::from_mins(2)).await;
    }
    let counts = ["DescribeImages", "GetParameter", "GetCallerIdentity"].map(|api| cloud.count(api));
    assert_eq!(counts, [2, 1, 1]);
    inventory.scaling_activities("a", |_| true).await.unwrap();
    inventory.scaling_activities("a", |_| true).await.unwrap();
    assert_eq!(cloud.count("DescribeScalingActivities"), 2, "these are always read");
}

#[tokio::test(start_paused = true)]
async fn the_size_of_a_snapshot_is_kept_even_if_it_cannot_be_read() {
    let Bench { cloud, inventory, .. } = bench();
    cloud.world().snapshots.insert("snap-1".to_owned(), 20);
    let error = |status, code| CloudError::answered(SNAPSHOTS, status, code, "no");
    let failed = error(500, "InternalError");
    cloud.upset(SNAPSHOTS, [Upset::Fail(failed.clone()), Upset::Fail(error(403, "UnauthorizedOperation"))]);
    assert_eq!(inventory.snapshot_gib("snap-1").await.unwrap_err(), failed);
    pass(Duration::from_secs(2)).await;
    for (size, calls) in [(None, 2), (Some(20), 3)] {
        for _ in 0..3 {
            assert_eq!(inventory.snapshot_gib("snap-1").await.unwrap(), size);
            pass(Duration::from_mins(20)).await;
        }
        assert_eq!(cloud.count(SNAPSHOTS), calls, "{size:?}");
    }
    assert_eq!(inventory.snapshot_gib("snap-2").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_read_again_once_it_or_its_image_is_forgotten() {
    let Bench { cloud, inventory, .. } = bench();
    cloud.world().snapshots.insert("snap-1".to_owned(), 20);
    let volume = ImageVolume {
        size_gib: Some(20),
        volume_type: None,
        encrypted: false,
        snapshot_id: Some("snap-1".to_owned()),
        delete_on_termination: true,
    };
    let device =
        ImageBlockDevice { device_name: "/dev/xvda".to_owned(), virtual_name: None, volume: Some(volume) };
    let image = Image {
        id: "ami-1".to_owned(),
        root_device_name: None,
        architecture: None,
        is_windows: false,
        block_devices: vec![device],
    };
    cloud.world().images.insert("ami-1".to_owned(), image);
    inventory.image("ami-1").await.unwrap();
    for of_image in [false, true] {
        inventory.forget_snapshot("snap-1");
        let denied = CloudError::answered(SNAPSHOTS, 403, "UnauthorizedOperation", "no");
        cloud.upset(SNAPSHOTS, [Upset::Fail(denied)]);
        assert_eq!(inventory.snapshot_gib("snap-1").await.unwrap(), None);
        if of_image {
            inventory.forget_image("ami-1");
        } else {
            inventory.forget_snapshot("snap-1");
        }
        assert_eq!(inventory.snapshot_gib("snap-1").await.unwrap(), Some(20), "{of_image}");
    }
}

/// Times of AWS are compared with it, for example the start of an instance refresh, and our clock may differ.
#[tokio::test(start_paused = true)]
async fn a_version_that_we_created_has_the_time_of_aws() {
    let Bench { inventory, .. } = bench();
    inventory.template("web").await.unwrap();
    inventory.write(&create_template("web")).await.unwrap();
    inventory.write(&create_version("lt-web", "ami-2")).await.unwrap();
    let times = async || -> Vec<_> {
        let known = inventory.template("web").await.unwrap().unwrap();
        known.versions.values().map(|version| (version.number, version.created_at)).collect()
    };
    let created = times().await;
    inventory.forget_template("web");
    assert_eq!(times().await, created, "as a read shows it");
}

#[tokio::test(start_paused = true)]
async fn our_writes_keep_a_template_up_without_a_read() {
    let Bench { cloud, inventory, .. } = bench();
    assert_eq!(inventory.template("web").await.unwrap(), None);
    let Written::Version { id, .. } = inventory.write(&create_template("web")).await.unwrap() else {
        panic!("a version was made");
    };
    inventory.write(&create_version(&id, "ami-2")).await.unwrap();
    inventory.write(&create_version(&id, "ami-3")).await.unwrap();
    let versions = BTreeSet::from([2]);
    inventory.write(&Write::DeleteLaunchTemplateVersions { id: id.clone(), versions }).await.unwrap();
    let known = inventory.template("web").await.unwrap().unwrap();
    assert_eq!((known.template.default_version, known.template.latest_version), (1, 3));
    let images: Vec<_> = known.versions.values().map(|version| version.image_id.as_deref()).collect();
    assert_eq!(images[1..], [Some("ami-3")]);
    assert_eq!(images.len(), 2);
    assert_eq!(known.versions[&3].description.as_deref(), Some("next"));
    assert_eq!(
        cloud.count("DescribeLaunchTemplates"),
        2,
        "only before it was made: a listing, and by itself"
    );
    inventory.write(&Write::DeleteLaunchTemplate { id }).await.unwrap();
    cloud.world().templates.clear();
    assert_eq!(inventory.template("web").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_template_is_audited_hourly_and_read_again_when_in_doubt() {
    let Bench { cloud, inventory, .. } = bench();
    inventory.write(&create_template("web")).await.unwrap();
    cloud.upset("CreateLaunchTemplateVersion", [Upset::LoseReply]);
    inventory.write(&create_version("lt-web", "ami-2")).await.unwrap_err();
    let known = inventory.template("web").await.unwrap().unwrap();
    assert_eq!(known.versions.len(), 2, "the version whose reply was lost is seen");
    // It has no tag, so that the listing does not show it.
    assert_eq!(cloud.count("DescribeLaunchTemplates"), 2);
    pass(Duration::from_mins(50)).await;
    inventory.template("web").await.unwrap();
    assert_eq!(cloud.count("DescribeLaunchTemplates"), 2);
    pass(Duration::from_mins(20)).await;
    inventory.template("web").await.unwrap();
    assert_eq!(cloud.count("DescribeLaunchTemplates"), 4);
    inventory.forget_template("web");
    inventory.template("web").await.unwrap();
    assert_eq!(cloud.count("DescribeLaunchTemplates"), 5);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_overlaps_a_write_is_not_believed() {
    let Bench { cloud, inventory, .. } = bench();
    inventory.write(&create_template("web")).await.unwrap();
    inventory.forget_template("web");
    // The read sees version 1 only, and answers after version 2 was made.
    cloud.upset("DescribeLaunchTemplateVersions", [Upset::Slow(Duration::from_secs(2))]);
    let reader = inventory.clone();
    let read = tokio::spawn(async move { reader.template("web").await });
    pass(Duration::from_secs(1)).await;
    inventory.write(&create_version("lt-web", "ami-2")).await.unwrap();
    let known = read.await.unwrap().unwrap().unwrap();
    assert_eq!(known.versions.len(), 2);
    assert_eq!(inventory.template("web").await.unwrap().unwrap().versions.len(), 2);
    // The same while an audit is under way.
    pass(Duration::from_mins(70)).await;
    cloud.upset("DescribeLaunchTemplateVersions", [Upset::Slow(Duration::from_secs(2))]);
    let reader = inventory.clone();
    let read = tokio::spawn(async move { reader.template("web").await });
    pass(Duration::from_secs(1)).await;
    inventory.write(&create_version("lt-web", "ami-3")).await.unwrap();
    assert_eq!(read.await.unwrap().unwrap().unwrap().versions.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn hooks_are_known_from_our_own_writes() {
    let Bench { cloud, inventory, .. } = bench();
    let hook = |name: &str| LifecycleHook {
        name: name.to_owned(),
        transition: "autoscaling:EC2_INSTANCE_TERMINATING".to_owned(),
        heartbeat_timeout: 3600,
        default_result: "CONTINUE".to_owned(),
    };
    cloud.world().hooks.insert("a".to_owned(), vec![hook("theirs")]);
    let names = async || -> Vec<String> {
        inventory.hooks("a").await.unwrap().iter().map(|hook| hook.name.clone()).collect()
    };
    assert_eq!(names().await, ["theirs"]);
    let put = Write::PutLifecycleHook { group: "a".to_owned(), hook: hook("asg-drain") };
    inventory.write(&put).await.unwrap();
    inventory.write(&put).await.unwrap();
    assert_eq!(names().await, ["asg-drain", "theirs"]);
    let delete = Write::DeleteLifecycleHook { group: "a".to_owned(), hook: "asg-drain".to_owned() };
    inventory.write(&delete).await.unwrap();
    assert_eq!(names().await, ["theirs"]);
    assert_eq!(cloud.count("DescribeLifecycleHooks"), 1);
    cloud.upset("PutLifecycleHook", [Upset::LoseReply]);
    inventory.write(&put).await.unwrap_err();
    names().await;
    assert_eq!(cloud.count("DescribeLifecycleHooks"), 2, "nobody knows: read again");
}

#[tokio::test(start_paused = true)]
async fn a_hook_of_one_group_repeats_no_read_of_another() {
    let Bench { cloud, inventory, .. } = bench();
    cloud.upset("DescribeLifecycleHooks", [Upset::Slow(Duration::from_secs(2))]);
    let reader = inventory.clone();
    let read = tokio::spawn(async move { reader.hooks("b").await });
    pass(Duration::from_secs(1)).await;
    let hook = LifecycleHook {
        name: "asg-drain".to_owned(),
        transition: "autoscaling:EC2_INSTANCE_TERMINATING".to_owned(),
        heartbeat_timeout: 3600,
        default_result: "CONTINUE".to_owned(),
    };
    inventory.write(&Write::PutLifecycleHook { group: "a".to_owned(), hook }).await.unwrap();
    assert!(inventory.known_hooks("b").is_none(), "the read is under way");
    read.await.unwrap().unwrap();
    assert_eq!(cloud.count("DescribeLifecycleHooks"), 1);
    assert!(inventory.known_hooks("b").is_some());
    assert!(inventory.known_hooks("a").is_none(), "what else group a has is not known");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_that_nobody_asks_for() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.inventory.subnets(&ids(&["subnet-1"])).await.unwrap();
    bench.inventory.template("web").await.unwrap();
    pass(Duration::from_mins(61) + SOON).await;
    assert_eq!(bench.inventory.lookups.kept(), 0);
}
