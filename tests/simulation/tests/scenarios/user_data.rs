//! Bootstrap data on their way to EC2: its limit, compression, and what is told beyond.

use std::io::Read as _;

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use capasg_api::conditions::LAUNCH_TEMPLATE_READY;
use capasg_fake_aws::ec2::Image as CloudImage;
use capasg_simulation::{CANARY, Pool, Setup, World};
use chrono::TimeDelta;
use flate2::read::GzDecoder;

use crate::{SOON, ended_since, reach, running};

const LIMIT: usize = 16_384;
const TOO_LARGE: &str = "BootstrapDataTooLarge";

/// Readable bootstrap data of exactly this size, one secret line at its head.
fn cloud_config(size: usize) -> Vec<u8> {
    let mut data = format!("#cloud-config\n# {CANARY}\n").into_bytes();
    data.resize(size, b'x');
    data
}

/// Bootstrap data that no compression makes smaller.
fn noise(size: usize) -> Vec<u8> {
    let mut data = format!("#cloud-config\n# {CANARY}\n").into_bytes();
    let mut state = 88_172_645_463_325_252_u64;
    while data.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data.push(state.to_le_bytes()[4]);
    }
    data
}

/// The user data of the instance that was launched last.
fn newest(world: &World, pool: &Pool) -> Result<Vec<u8>> {
    let mut instances = world.instances(pool);
    instances.sort_by(|a, b| a.launch_time.cmp(&b.launch_time));
    let data = instances.pop().and_then(|one| one.user_data).context("user data")?;
    Ok(STANDARD.decode(data)?)
}

fn unpack(data: &[u8]) -> Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    GzDecoder::new(data).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

/// The largest data that are sent as they are, and the smallest that are not; neither makes anything outdated.
// Rules: H6
// Pains: P28
#[tokio::test(start_paused = true)]
async fn bootstrap_data_above_the_limit_are_compressed_and_roll_nothing() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 1).await?;
    let before = world.in_service(&pool);
    for (size, replicas) in [(LIMIT, 2), (LIMIT + 1, 3), (40 * LIMIT, 4)] {
        let data = cloud_config(size);
        world.core.write_bootstrap_data(&pool.config, data.clone(), Some("cloud-config"));
        world.run_for(TimeDelta::minutes(2)).await?;
        world.scale(&pool, i32::try_from(replicas)?);
        reach(&mut world, &pool, replicas).await?;
        let sent = newest(&world, &pool)?;
        ensure!(sent.len() <= LIMIT, "{size}: {} bytes were sent", sent.len());
        ensure!(if size > LIMIT { unpack(&sent)? == data } else { sent == data }, "{size}: other data");
        let status = world.pool(&pool).and_then(|pool| pool.status.clone()).context("status")?;
        ensure!(usize::try_from(status.up_to_date_replicas)? == replicas, "{size}: outdated");
    }
    ensure!(before.is_subset(&world.in_service(&pool)), "the first one still runs");
    ensure!(ended_since(&world, 0).is_empty(), "nothing was ended");
    // Back to small data: the same content has the same version, whatever was between.
    let versions = |world: &World| world.dump().templates[0].versions.len();
    let made = versions(&world);
    world.core.write_bootstrap_data(&pool.config, cloud_config(LIMIT), Some("cloud-config"));
    world.run_for(TimeDelta::minutes(2)).await?;
    ensure!(versions(&world) == made, "a version was made that was there");
    world.finish()
}

/// The same secret, compressed by one process and by the next: no version is made anew.
// Rules: H6
// Pains: W4
#[tokio::test(start_paused = true)]
async fn a_restart_creates_no_version_of_compressed_data() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 1).await?;
    world.core.write_bootstrap_data(&pool.config, cloud_config(3 * LIMIT), None);
    world.run_for(TimeDelta::minutes(2)).await?;
    let mark = world.mark();
    for _ in 0..3 {
        world.kill_process();
        world.run_for(TimeDelta::minutes(3)).await?;
    }
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    world.finish()
}

/// Data that cannot be made small enough: told with what to change, nothing is touched, and an edit heals it.
// Rules: H6
// Pains: P33
#[tokio::test(start_paused = true)]
async fn too_large_bootstrap_data_are_reported_until_an_edit() -> Result<()> {
    let ignition = || cloud_config(LIMIT + 1);
    for (data, format, why) in [
        (noise(20_000), None, "compressed; AWS accepts at most 16384. Reduce spec.files of KubeadmConfig"),
        (ignition(), Some("ignition"), "16385 bytes; AWS accepts at most 16384, and Ignition"),
    ] {
        let (mut world, pool) = running(Setup::default(), 2).await?;
        let before = world.in_service(&pool);
        let mark = world.mark();
        world.core.write_bootstrap_data(&pool.config, data, format);
        world
            .run_until("it is told", SOON, |world| {
                world.says(&pool, LAUNCH_TEMPLATE_READY, "False", TOO_LARGE)
            })
            .await?;
        let told = world.condition(&pool, LAUNCH_TEMPLATE_READY).context("LaunchTemplateReady")?.message;
        ensure!(told.contains(why), "{told}");
        world.run_for(TimeDelta::minutes(30)).await?;
        ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
        ensure!(world.in_service(&pool) == before, "the same two run");
        // What runs can still be scaled, with the data that AWS took last.
        world.scale(&pool, 3);
        reach(&mut world, &pool, 3).await?;

        world.core.write_bootstrap_data(&pool.config, cloud_config(500), format);
        world
            .run_until("it is healed", SOON, |world| {
                world.says(&pool, LAUNCH_TEMPLATE_READY, "True", LAUNCH_TEMPLATE_READY)
            })
            .await?;
        world.scale(&pool, 4);
        reach(&mut world, &pool, 4).await?;
        ensure!(newest(&world, &pool)? == cloud_config(500), "not the new data");
        world.finish()?;
    }
    Ok(())
}

/// The next image boots Windows, which decompresses nothing: the pool continues to launch Linux, with each new token.
// Rules: H2, H6
#[tokio::test(start_paused = true)]
async fn tokens_are_renewed_while_windows_cannot_use_the_data() -> Result<()> {
    const WINDOWS: &str = "ami-0f1e2d3c";
    let with_token = |token: &str| {
        let mut data = cloud_config(3 * LIMIT);
        data.extend(format!("\ntoken: {token}\n").bytes());
        data
    };
    let (mut world, pool) = running(Setup::default(), 1).await?;
    world.core.write_bootstrap_data(&pool.config, with_token("aaaaaa.0123456789abcdef"), None);
    world.run_for(TimeDelta::minutes(2)).await?;
    let image = CloudImage { windows: true, ..CloudImage::new(WINDOWS, "node-windows", "x86_64") };
    world.simulator.put_image(&world.scope(), image);
    world.edit_pool(&pool, |pool| pool.spec.machine.image.id = Some(WINDOWS.to_owned()));
    let is_told = |world: &World| world.says(&pool, LAUNCH_TEMPLATE_READY, "False", TOO_LARGE);
    world.run_until("it is told", SOON, is_told).await?;
    let newer = with_token("bbbbbb.0123456789abcdef");
    world.core.write_bootstrap_data(&pool.config, newer.clone(), None);
    world.run_for(TimeDelta::minutes(3)).await?;
    let before = world.in_service(&pool);
    for id in &before {
        world.simulator.kill(&world.scope(), id);
    }
    let is_replaced =
        |world: &World| world.in_service(&pool).len() == 1 && world.in_service(&pool).is_disjoint(&before);
    world.run_until("another is launched", SOON, is_replaced).await?;
    ensure!(unpack(&newest(&world, &pool)?)? == newer, "not the last token");
    ensure!(is_told(&world), "{}", world.describe());
    ensure!(world.instances(&pool).iter().all(|one| one.image != WINDOWS), "Windows is launched");
    world.finish()
}

/// Ignition goes to EC2 byte for byte.
// Rules: H1
#[tokio::test(start_paused = true)]
async fn ignition_is_sent_without_compression() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 1).await?;
    let data = cloud_config(LIMIT);
    world.core.write_bootstrap_data(&pool.config, data.clone(), Some("ignition"));
    world.run_for(TimeDelta::minutes(2)).await?;
    world.scale(&pool, 2);
    reach(&mut world, &pool, 2).await?;
    ensure!(newest(&world, &pool)? == data, "other data");
    world.finish()
}

/// A Secret without the key `value` is no bootstrap data, and says so.
// Rules: H1
#[tokio::test(start_paused = true)]
async fn a_secret_without_the_key_value_is_reported() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool("workers", 1);
    world.core.write_bootstrap_data(&pool.config, Vec::new(), None);
    world
        .run_until("it is told", SOON, |world| {
            world.condition(&pool, LAUNCH_TEMPLATE_READY).is_some_and(|found| {
                found.reason == "WaitingForBootstrapData"
                    && found.message.ends_with("key `value` is missing or empty")
            })
        })
        .await?;
    ensure!(world.mutations_since(0).is_empty(), "{:?}", world.mutations_since(0));
    world.rotate_token(&pool);
    reach(&mut world, &pool, 1).await?;
    world.finish()
}
