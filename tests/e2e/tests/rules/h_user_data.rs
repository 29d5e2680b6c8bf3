//! H1, H6: cloud-config and Ignition on their way to EC2, its limit of 16 KiB, and what is told beyond.

use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_api::conditions;
use capasg_e2e::{CLUSTER, Rig, Setup, eventually, manifest::bootstrap_secret_of, rule};
use capasg_environment::Look;
use flate2::read::GzDecoder;

const LIMIT: usize = 16_384;
const SECRET: &str = "workers-bootstrap";

/// Bootstrap data of exactly this size that let a machine join.
fn data(rig: &Rig<'_>, size: usize) -> String {
    let mut text = rig.user_data();
    text.push_str(&"x".repeat(size.saturating_sub(text.len())));
    text
}

/// The same, but hard to compress.
fn noise(rig: &Rig<'_>, size: usize) -> String {
    let mut text = rig.user_data();
    let mut state = 88_172_645_463_325_252_u64;
    while text.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.extend(char::from_digit(u32::from(state.to_le_bytes()[4] % 36), 36));
    }
    text
}

async fn write(rig: &Rig<'_>, value: &str, format: &str) -> Result<()> {
    rig.scenario.apply(&bootstrap_secret_of(CLUSTER, SECRET, value, format).to_string()).await?;
    Ok(())
}

/// Writes bootstrap data and waits until the group launches from a version of them.
async fn publish(rig: &Rig<'_>, value: &str, format: &str) -> Result<()> {
    let mark = rig.mark();
    write(rig, value, format).await?;
    eventually("a version of it is pinned", async || {
        let calls = rig.mutations_since(mark);
        let pinned = calls.iter().any(|call| call.action == "UpdateAutoScalingGroup");
        Ok(Look::when(pinned, format!("{calls:?}")))
    })
    .await
}

/// The user data of the newest machine.
fn newest(rig: &Rig<'_>) -> Result<Vec<u8>> {
    let newest = rig.instances().pop().context("no machine")?;
    Ok(STANDARD.decode(newest.user_data.context("no user data")?)?)
}

async fn told(rig: &Rig<'_>, reason: &str) -> Result<String> {
    eventually(&format!("LaunchTemplateReady says {reason}"), async || {
        let status = rig.pools().get("workers").await?.status.unwrap_or_default();
        let found = conditions::get(&status.conditions, "LaunchTemplateReady").cloned();
        let message =
            found.as_ref().filter(|found| found.reason == reason).map(|found| found.message.clone());
        Ok(Look::from_option(message, format!("{found:?}")))
    })
    .await
}

// Rules: H1, H6
#[tokio::test]
async fn large_bootstrap_data_are_compressed_or_reported() -> Result<()> {
    rule("h6-limit", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let mut size = 1;
        // The largest data that are sent as they are, and the smallest that are not: both let a machine join.
        for (length, packed) in [(LIMIT, false), (LIMIT + 1, true), (10 * LIMIT, true)] {
            let value = data(rig, length);
            publish(rig, &value, "cloud-config").await?;
            size += 1;
            rig.scale("workers", size).await?;
            rig.running("workers", size).await?;
            let sent = newest(rig)?;
            ensure!(sent.len() <= LIMIT && sent.starts_with(&[0x1f, 0x8b]) == packed, "{} bytes", sent.len());
            let mut text = String::from_utf8_lossy(&sent).into_owned();
            if packed {
                text.clear();
                GzDecoder::new(sent.as_slice()).read_to_string(&mut text)?;
            }
            ensure!(text == value, "{length}: other data");
            let status = rig.pools().get("workers").await?.status.context("no status")?;
            ensure!(
                usize::try_from(status.up_to_date_replicas)? == size,
                "outdated: {:?}",
                status.conditions
            );
        }
        // Ignition is sent byte for byte.
        let ignition = data(rig, LIMIT);
        publish(rig, &ignition, "ignition").await?;
        size += 1;
        rig.scale("workers", size).await?;
        rig.running("workers", size).await?;
        ensure!(newest(rig)? == ignition.as_bytes());

        // Beyond: told with both sizes and what to change, and nothing is touched.
        let mark = rig.mark();
        write(rig, &noise(rig, 3 * LIMIT), "cloud-config").await?;
        let message = told(rig, "BootstrapDataTooLarge").await?;
        ensure!(
            message.starts_with("bootstrap data has 4")
                && message.contains(" compressed; AWS accepts at most 16384")
        );
        ensure!(
            message.ends_with("Reduce the data in key `value` of Secret workers-bootstrap."),
            "{message}"
        );
        write(rig, &data(rig, LIMIT + 1), "ignition").await?;
        eventually("Ignition is not compressed", async || {
            let message = told(rig, "BootstrapDataTooLarge").await?;
            Ok(Look::when(
                message.contains("16385 bytes") && message.contains("Ignition does not support"),
                message,
            ))
        })
        .await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));

        // An edit heals it.
        publish(rig, &data(rig, 1_000), "cloud-config").await?;
        told(rig, "LaunchTemplateReady").await?;
        size += 1;
        rig.scale("workers", size).await?;
        rig.running("workers", size).await?;
        ensure!(newest(rig)? == data(rig, 1_000).as_bytes());
        rig.delete("workers").await
    })
    .await
}

// Rules: H1
#[tokio::test]
async fn a_secret_without_the_key_value_is_reported() -> Result<()> {
    rule("h1-no-value", Setup::default(), async |rig| {
        let mut pool: serde_json::Value = serde_json::from_str(&rig.pool("workers").replicas(1).documents())?;
        if let Some(items) = pool["items"].as_array_mut() {
            items.retain(|item| item["kind"] != "Secret");
        }
        rig.scenario.apply(&pool.to_string()).await?;
        let message = told(rig, "WaitingForBootstrapData").await?;
        ensure!(message == "Secret workers-bootstrap does not exist yet", "{message}");
        write(rig, "", "cloud-config").await?;
        eventually("the key is asked for", async || {
            let message = told(rig, "WaitingForBootstrapData").await?;
            Ok(Look::when(message.ends_with("key `value` is missing or empty"), message))
        })
        .await?;
        ensure!(rig.mutations() == 0);
        write(rig, &rig.user_data(), "cloud-config").await?;
        rig.running("workers", 1).await?;
        rig.delete("workers").await
    })
    .await
}
