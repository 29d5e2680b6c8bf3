//! Images with several volumes: all are encrypted, may be overridden by device name, and one of them is the ephemeral storage.

use anyhow::{Context, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{LAUNCH_TEMPLATE_READY, SCALING_HEALTHY},
    pool::{DataVolume, RootVolume, VolumeEncryption},
};
use capasg_fake_aws::ec2::{Image, Volume};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, ended_since, reach, running_with};

const IMAGE: &str = "ami-0e0e0e0e";
const SNAPSHOTS: &str = "DescribeSnapshots";

/// Gives a volume of the spec a size.
type Edit = fn(&mut ASGMachinePoolSpec, i32);

/// As Bottlerocket: the snapshot of the data volume is smaller than the volume.
fn bottlerocket() -> Image {
    Image::new(IMAGE, "bottlerocket", "x86_64").with_volumes(&[("/dev/xvda", 2, 2), ("/dev/xvdb", 20, 1)])
}

fn world_with(image: Image) -> World {
    let world = World::new(Setup::default());
    world.simulator.put_image(&world.scope(), image);
    world
}

/// A pool of two instances of the image.
async fn pool_of(world: &mut World, edit: impl FnOnce(&mut ASGMachinePoolSpec)) -> Result<Pool> {
    let pool = new_pool(world, edit);
    reach(world, &pool, 2).await?;
    Ok(pool)
}

fn new_pool(world: &mut World, edit: impl FnOnce(&mut ASGMachinePoolSpec)) -> Pool {
    world.add_pool_with("workers", 2, |spec| {
        spec.machine.image.id = Some(IMAGE.to_owned());
        edit(spec);
    })
}

fn data_volume(device_name: &str, size: i32) -> DataVolume {
    DataVolume { device_name: device_name.to_owned(), size_gib: Some(size), ..DataVolume::default() }
}

/// The volumes of each instance.
fn volumes(world: &World, pool: &Pool) -> Vec<Vec<Volume>> {
    world.instances(pool).into_iter().map(|one| one.volumes).collect()
}

/// Device name, size and whether it is encrypted, of each volume.
fn shown(volumes: &[Volume]) -> Vec<(&str, u32, bool)> {
    volumes.iter().map(|own| (own.device_name.as_str(), own.size, own.encrypted)).collect()
}

/// Whether each of two instances has exactly these volumes.
fn all_have(world: &World, pool: &Pool, wanted: &[(&str, u32, bool)]) -> bool {
    let all = volumes(world, pool);
    all.len() == 2 && all.iter().all(|own| shown(own) == wanted)
}

fn ephemeral_storage(world: &World, pool: &Pool) -> Option<String> {
    world.pool(pool)?.status.as_ref()?.capacity.get("ephemeral-storage").cloned()
}

fn message(world: &World, pool: &Pool) -> String {
    world.condition(pool, LAUNCH_TEMPLATE_READY).map(|found| found.message).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn every_volume_of_an_image_is_encrypted() -> Result<()> {
    let mut world = world_with(bottlerocket());
    let pool = pool_of(&mut world, |_| {}).await?;
    let encrypted = [("/dev/xvda", 2, true), ("/dev/xvdb", 20, true)];
    ensure!(all_have(&world, &pool, &encrypted), "{:?}", volumes(&world, &pool));
    // Nothing else of them is changed.
    let first = volumes(&world, &pool).swap_remove(0);
    ensure!(first[1].snapshot.as_deref() == Some("snap-0e0e0e0e1"), "{first:?}");
    ensure!(first[1].volume_type == "gp2" && first[1].delete_on_termination, "{first:?}");
    ensure!(world.calls_since(0, Some(SNAPSHOTS)).is_empty(), "no size is in question");
    ensure!(ephemeral_storage(&world, &pool).as_deref() == Some("2Gi"), "the root volume by default");

    // With the key of the root volume, and as the image says if the account decides about the root volume.
    world.edit_pool(&pool, |pool| {
        let root = pool.spec.machine.root_volume.get_or_insert_default();
        root.kms_key_id = Some("alias/nodes".to_owned());
    });
    let is_keyed = |world: &World| {
        let key = |own: &Volume| own.kms_key_id.as_deref() == Some("alias/nodes");
        all_have(world, &pool, &encrypted) && volumes(world, &pool).iter().flatten().all(key)
    };
    world.run_until("the key is used", TimeDelta::hours(1), is_keyed).await?;
    world.edit_pool(&pool, |pool| {
        let account = Some(VolumeEncryption::AccountDefault);
        pool.spec.machine.root_volume = Some(RootVolume { encryption: account, ..RootVolume::default() });
    });
    let plain = [("/dev/xvda", 2, false), ("/dev/xvdb", 20, false)];
    world
        .run_until("the account decides", TimeDelta::hours(1), |world| all_have(world, &pool, &plain))
        .await?;
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn a_volume_of_an_image_is_overridden_by_its_device_name() -> Result<()> {
    let mut world = world_with(bottlerocket());
    let pool = pool_of(&mut world, |spec| {
        spec.machine.data_volumes = vec![data_volume("/dev/xvdb", 100), data_volume("/dev/xvdc", 7)];
        spec.machine.ephemeral_storage_device_name = Some("/dev/xvdb".to_owned());
    })
    .await?;
    let wanted = [("/dev/xvda", 2, true), ("/dev/xvdb", 100, true), ("/dev/xvdc", 7, true)];
    ensure!(all_have(&world, &pool, &wanted), "{:?}", volumes(&world, &pool));
    ensure!(ephemeral_storage(&world, &pool).as_deref() == Some("100Gi"), "{}", world.describe());
    // Without the override it is again as the image has it, which is a change of the spec.
    world.edit_pool(&pool, |pool| drop(pool.spec.machine.data_volumes.remove(0)));
    let wanted = [("/dev/xvda", 2, true), ("/dev/xvdb", 20, true), ("/dev/xvdc", 7, true)];
    world
        .run_until("it is that of the image", TimeDelta::hours(1), |world| all_have(world, &pool, &wanted))
        .await?;
    ensure!(ephemeral_storage(&world, &pool).as_deref() == Some("20Gi"), "{}", world.describe());
    world.finish()
}

/// AWS would reject each launch.
#[tokio::test(start_paused = true)]
async fn a_volume_below_its_snapshot_is_reported_before_the_call() -> Result<()> {
    let image =
        || Image::new(IMAGE, "data", "x86_64").with_volumes(&[("/dev/sda1", 8, 8), ("/dev/sdb", 20, 12)]);
    let root: Edit = |spec, size| {
        spec.machine.root_volume = Some(RootVolume { size_gib: Some(size), ..RootVolume::default() });
    };
    let data: Edit = |spec, size| spec.machine.data_volumes = vec![data_volume("/dev/sdb", size)];
    let own: Edit = |spec, size| {
        let snapshot_id = Some("snap-0a1b2c3d".to_owned());
        spec.machine.data_volumes = vec![DataVolume { snapshot_id, ..data_volume("/dev/sdf", size) }];
    };
    for (edit, least, path) in [
        (root, 8, "spec.machine.rootVolume"),
        (data, 12, "spec.machine.dataVolumes[/dev/sdb]"),
        (own, 50, "spec.machine.dataVolumes[/dev/sdf]"),
    ] {
        let mut world = world_with(image());
        world.simulator.put_snapshot(&world.scope(), "snap-0a1b2c3d", 50);
        let pool = new_pool(&mut world, |spec| edit(spec, least - 1));
        world.run_for(TimeDelta::minutes(2)).await?;
        ensure!(world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "VolumeTooSmall"), "{}", world.describe());
        let told = message(&world, &pool);
        ensure!(told.starts_with(&format!("{path}.sizeGiB is {}, and snapshot snap-", least - 1)), "{told}");
        ensure!(told.ends_with(&format!("Set sizeGiB to {least} or more.")), "{told}");
        ensure!(world.mutations_since(0).is_empty(), "{:?}", world.mutations_since(0));

        // Also below the size that the image has for the volume.
        world.edit_pool(&pool, |pool| edit(&mut pool.spec, least));
        reach(&mut world, &pool, 2).await?;
        let mark = world.mark();
        world.edit_pool(&pool, |pool| edit(&mut pool.spec, least - 1));
        world.run_for(TimeDelta::minutes(5)).await?;
        ensure!(world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "VolumeTooSmall"), "{}", world.describe());
        ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
        world.edit_pool(&pool, |pool| edit(&mut pool.spec, least));
        reach(&mut world, &pool, 2).await?;
        ensure!(world.calls_since(0, Some(SNAPSHOTS)).len() == 1, "a snapshot is read once");
        world.finish()?;
    }
    Ok(())
}

/// Public images are shared without their snapshots, and a role of an earlier release may not read any: AWS decides.
#[tokio::test(start_paused = true)]
async fn without_the_size_of_the_snapshot_aws_decides() -> Result<()> {
    for is_denied in [false, true] {
        let mut world = world_with(Image { private_snapshots: !is_denied, ..bottlerocket() });
        if is_denied {
            let denied = "You are not authorized to perform this operation.";
            let fault = capasg_fake_aws::Fault::error(SNAPSHOTS, 403, "UnauthorizedOperation", denied);
            world.fault(fault.times(None));
        }
        let pool = pool_of(&mut world, |spec| {
            spec.machine.data_volumes = vec![data_volume("/dev/xvdb", 10)];
        })
        .await?;
        ensure!(world.says(&pool, "CloudReachable", "True", "CloudReachable"), "{}", world.describe());
        world.edit_pool(&pool, |pool| {
            let root = pool.spec.machine.root_volume.get_or_insert_default();
            root.size_gib = Some(1);
        });
        let is_told = |world: &World| {
            let found = world.condition(&pool, SCALING_HEALTHY);
            found.is_some_and(|found| found.message.contains("smaller than snapshot 'snap-0e0e0e0e0'"))
        };
        world.run_until("AWS rejects the launch", SOON, is_told).await?;
        world.run_for(TimeDelta::minutes(30)).await?;
        let reads = world.calls_since(0, Some(SNAPSHOTS)).len();
        ensure!(reads <= 4, "{reads} reads of two snapshots within an hour");
        world.edit_pool(&pool, |pool| pool.spec.machine.root_volume = None);
        let recovers = |world: &World| world.is_running(&pool, 2);
        world.run_until("it recovers", TimeDelta::hours(1), recovers).await?;
        world.finish()?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_capacity_follows_the_volume_that_the_field_names() -> Result<()> {
    let mut world = world_with(bottlerocket());
    world.simulator.put_snapshot(&world.scope(), "snap-0a1b2c3d", 50);
    let pool = pool_of(&mut world, |spec| {
        let snapshot_id = Some("snap-0a1b2c3d".to_owned());
        spec.machine.data_volumes =
            vec![DataVolume { snapshot_id, size_gib: None, ..data_volume("/dev/xvdc", 0) }];
    })
    .await?;
    let mark = world.mark();
    for (name, size) in [
        (Some("/dev/xvdb"), "20Gi"),
        (Some("/dev/xvdc"), "50Gi"),
        (Some("/dev/sda1"), "2Gi"),
        (Some("/dev/sdb"), "20Gi"),
        (None, "2Gi"),
    ] {
        world.edit_pool(&pool, |pool| {
            pool.spec.machine.ephemeral_storage_device_name = name.map(str::to_owned);
        });
        let is_told = |world: &World| ephemeral_storage(world, &pool).as_deref() == Some(size);
        world.run_until(&format!("{name:?}"), SOON, is_told).await?;
        ensure!(
            world.says(&pool, LAUNCH_TEMPLATE_READY, "True", "LaunchTemplateReady"),
            "{}",
            world.describe()
        );
    }
    // A name that no volume has: reported, and nothing is held up.
    world.edit_pool(&pool, |pool| {
        pool.spec.machine.ephemeral_storage_device_name = Some("/dev/xvdd".to_owned());
    });
    let says = |world: &World| world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "VolumeNotFound");
    world.run_until("it is reported", SOON, says).await?;
    ensure!(ephemeral_storage(&world, &pool).is_none(), "{}", world.describe());
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    let status = world.pool(&pool).and_then(|pool| pool.status.clone()).context("a status")?;
    ensure!(status.up_to_date_replicas == 2, "changes of the field apply in place");
    world.rotate_token(&pool);
    let is_applied = |world: &World| !world.calls_since(mark, Some("UpdateAutoScalingGroup")).is_empty();
    world.run_until("the token is applied", SOON, is_applied).await?;
    world.edit_pool(&pool, |pool| pool.spec.machine.ephemeral_storage_device_name = None);
    reach(&mut world, &pool, 2).await?;
    world.finish()
}

/// What is not known of a volume stays as it was reported.
#[tokio::test(start_paused = true)]
async fn the_capacity_stays_while_a_snapshot_cannot_be_read() -> Result<()> {
    let mut world = world_with(bottlerocket());
    world.simulator.put_snapshot(&world.scope(), "snap-0a1b2c3d", 50);
    let pool = pool_of(&mut world, |spec| {
        let snapshot_id = Some("snap-0a1b2c3d".to_owned());
        spec.machine.data_volumes =
            vec![DataVolume { snapshot_id, size_gib: None, ..data_volume("/dev/xvdc", 0) }];
        spec.machine.ephemeral_storage_device_name = Some("/dev/xvdc".to_owned());
    })
    .await?;
    let is_told = |world: &World| ephemeral_storage(world, &pool).as_deref() == Some("50Gi");
    ensure!(is_told(&world), "{}", world.describe());
    let fail = |world: &mut World, status, code| {
        world.fault(capasg_fake_aws::Fault::error(SNAPSHOTS, status, code, "No."));
        world.kill_process();
        world.mark()
    };
    let mut lost = false;
    let mark = fail(&mut world, 503, "RequestLimitExceeded");
    world
        .run_until("it is read again", TimeDelta::minutes(5), |world| {
            lost |= !is_told(world);
            world.calls_since(mark, Some(SNAPSHOTS)).len() == 2
                && world.says(&pool, "CloudReachable", "True", "CloudReachable")
        })
        .await?;
    ensure!(!lost, "lost while AWS throttled the read\n{}", world.describe());

    // A denial is not repeated for an hour, unless a user says that it is corrected.
    let mark = fail(&mut world, 403, "UnauthorizedOperation");
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(is_told(&world), "lost while AWS denied the read\n{}", world.describe());
    ensure!(world.calls_since(mark, Some(SNAPSHOTS)).len() == 1);
    world.edit_pool(&pool, |pool| pool.spec.retry_token = Some("1".to_owned()));
    let is_read = |world: &World| world.calls_since(mark, Some(SNAPSHOTS)).len() == 2;
    world.run_until("it is read again", TimeDelta::minutes(1), is_read).await?;
    ensure!(is_told(&world), "{}", world.describe());
    world.finish()
}

/// A release that did not know the volumes of images left a version that launches them as they are.
#[tokio::test(start_paused = true)]
async fn an_upgrade_replaces_nothing() -> Result<()> {
    // The image that the version was made for, as the earlier release saw it: the root volume alone.
    let root = Image::new(IMAGE, "bottlerocket", "x86_64").with_volumes(&[("/dev/xvda", 2, 2)]);
    let mut world = world_with(root);
    let pool = pool_of(&mut world, |_| {}).await?;
    world.simulator.put_image(&world.scope(), bottlerocket());
    let (before, mark) = (world.in_service(&pool), world.mark());
    world.kill_process();
    world.run_for(TimeDelta::hours(2)).await?;
    ensure!(world.calls_since(mark, Some("DescribeImages")).len() > 1, "the volumes are known");
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));

    // New instances are encrypted from the next version on; those that run are up to date.
    world.rotate_token(&pool);
    let is_applied = |world: &World| !world.calls_since(mark, Some("UpdateAutoScalingGroup")).is_empty();
    world.run_until("the token is applied", SOON, is_applied).await?;
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    world.run_for(TimeDelta::hours(1)).await?;
    ensure!(ended_since(&world, mark).is_empty() && before.is_subset(&world.in_service(&pool)), "replaced");
    let encrypted = [("/dev/xvda", 2, true), ("/dev/xvdb", 20, true)];
    let new = world.instances(&pool).into_iter().find(|one| !before.contains(&one.id)).context("a third")?;
    ensure!(shown(&new.volumes) == encrypted, "{:?}", new.volumes);
    let status = world.pool(&pool).and_then(|pool| pool.status.clone()).context("a status")?;
    ensure!(status.up_to_date_replicas == 3, "{}", world.describe());

    // With the next requested change all are.
    world.scale(&pool, 2);
    reach(&mut world, &pool, 2).await?;
    world.edit_pool(&pool, |pool| pool.spec.machine.ssh_key_name = Some("ops".to_owned()));
    world
        .run_until("all are encrypted", TimeDelta::hours(1), |world| all_have(world, &pool, &encrypted))
        .await?;
    world.finish()
}

#[tokio::test(start_paused = true)]
async fn an_image_with_more_volumes_is_rolled_out_encrypted() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |_| {}).await?;
    ensure!(all_have(&world, &pool, &[("/dev/xvda", 20, true)]), "{:?}", volumes(&world, &pool));
    let image = Image::new(IMAGE, "ubuntu", "x86_64").with_volumes(&[
        ("/dev/sda1", 8, 8),
        ("/dev/sdb", 20, 20),
        ("/dev/sdc", 9, 9),
    ]);
    world.simulator.put_image(&world.scope(), image);
    world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some(IMAGE.to_owned()));
    let encrypted = [("/dev/sda1", 8, true), ("/dev/sdb", 20, true), ("/dev/sdc", 9, true)];
    world
        .run_until("the image is rolled out", TimeDelta::hours(1), |world| all_have(world, &pool, &encrypted))
        .await?;
    ensure!(ephemeral_storage(&world, &pool).as_deref() == Some("8Gi"), "{}", world.describe());
    // And back to one volume.
    world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some("ami-0a1b2c3d".to_owned()));
    let one = [("/dev/xvda", 20, true)];
    world.run_until("it is rolled back", TimeDelta::hours(1), |world| all_have(world, &pool, &one)).await?;
    world.finish()
}

/// EC2 tells device names apart that an operating system may not.
#[tokio::test(start_paused = true)]
async fn device_names_of_the_same_device_are_reported() -> Result<()> {
    for name in ["/dev/xvda", "/dev/sda1", "/dev/sdb"] {
        let mut world = world_with(bottlerocket());
        let pool = new_pool(&mut world, |spec| spec.machine.data_volumes = vec![data_volume(name, 30)]);
        world.run_for(TimeDelta::minutes(2)).await?;
        ensure!(
            world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "DeviceNameConflict"),
            "{}",
            world.describe()
        );
        ensure!(world.mutations_since(0).is_empty(), "{name}: {:?}", world.mutations_since(0));
        world.edit_pool(&pool, |pool| pool.spec.machine.data_volumes[0].device_name = "/dev/xvdb".to_owned());
        reach(&mut world, &pool, 2).await?;
        world.finish()?;
    }
    // What AWS launches is not held up in a pool that exists.
    let root = Image::new(IMAGE, "data", "x86_64").with_volumes(&[("/dev/xvda", 2, 2)]);
    let mut world = world_with(root);
    let pool =
        pool_of(&mut world, |spec| spec.machine.data_volumes = vec![data_volume("/dev/sdb", 30)]).await?;
    world.simulator.put_image(&world.scope(), bottlerocket());
    world.kill_process();
    let says = |world: &World| world.says(&pool, LAUNCH_TEMPLATE_READY, "False", "DeviceNameConflict");
    world.run_until("it is reported", TimeDelta::hours(2), says).await?;
    let mark = world.mark();
    world.rotate_token(&pool);
    let is_applied = |world: &World| !world.calls_since(mark, Some("UpdateAutoScalingGroup")).is_empty();
    world.run_until("the token is applied", SOON, is_applied).await?;
    ensure!(ended_since(&world, mark).is_empty(), "nothing is replaced");
    world.finish()
}
