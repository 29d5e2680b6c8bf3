//! Thousands of generated objects, put to the real API server without keeping them.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{ASGMachinePool, ASGMachinePoolTemplate};
use capasg_e2e::{Setup, rule};
use capasg_environment::dynamic;
use capasg_test_objects::{Generator, is_long};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Error,
    api::{DynamicObject, PostParams},
    core::Status,
};
use serde_json::Value;

/// All of them where there is time, else a part that differs from nothing in kind.
fn how_many() -> u64 {
    if is_long() { 10_000 } else { 800 }
}

/// How many are under way at a time: more would wait in the API server's own queues.
const AT_ONCE: usize = 24;

// Rules: A9, B15
#[tokio::test]
async fn generated_specs_are_accepted_or_rejected_by_field() -> Result<()> {
    rule("a9-b15-generated", Setup::bare().without_manager(), async |rig| {
        let generator = Generator::default();
        let kind = |kind| {
            let (client, namespace) = (&rig.scenario.client, &rig.scenario.namespace);
            dynamic(client, namespace, capasg_api::GROUP, capasg_api::VERSION, kind)
        };
        let (pools, templates) = (kind("ASGMachinePool"), kind("ASGMachinePoolTemplate"));
        let answers = stream::iter(0..how_many()).map(|seed| {
            let object = generator.object(seed);
            let api = if object["kind"] == "ASGMachinePool" { &pools } else { &templates };
            async move {
                let dry = PostParams { dry_run: true, ..PostParams::default() };
                let sent: DynamicObject = serde_json::from_value(object.clone())?;
                anyhow::Ok(match api.create(&dry, &sent).await {
                    Ok(taken) => {
                        read(&serde_json::to_value(&taken)?).with_context(|| format!("seed {seed}"))?;
                        true
                    }
                    Err(Error::Api(status)) => {
                        names_fields(&status).with_context(|| format!("seed {seed}: {object}"))?;
                        false
                    }
                    Err(other) => return Err(other).with_context(|| format!("seed {seed}: {object}")),
                })
            }
        });
        let answers: Vec<bool> = answers.buffer_unordered(AT_ONCE).try_collect().await?;
        let taken = answers.iter().filter(|taken| **taken).count();
        let refused = answers.len() - taken;
        ensure!(taken * 5 > answers.len() && refused * 5 > answers.len(), "{taken} taken, {refused} refused");
        Ok(())
    })
    .await
}

/// What was taken can be read by our own types, or a watch would stop at it.
fn read(object: &Value) -> Result<()> {
    let pool = object["kind"] == "ASGMachinePool";
    if pool {
        let _: ASGMachinePool = serde_json::from_value(object.clone())?;
    } else {
        let _: ASGMachinePoolTemplate = serde_json::from_value(object.clone())?;
    }
    Ok(())
}

fn names_fields(status: &Status) -> Result<()> {
    ensure!(status.code == 422, "answered {}: {}", status.code, status.message);
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    ensure!(!causes.is_empty(), "no cause: {}", status.message);
    // Rules are asked only once the schema holds, and the API server says so without a field.
    let told =
        causes.iter().filter(|cause| !cause.message.contains("some validation rules were not checked"));
    let nameless =
        told.clone().find(|cause| !cause.field.starts_with("spec") && !cause.message.contains(" spec."));
    ensure!(nameless.is_none() && told.count() > 0, "no field in {nameless:?}: {}", status.message);
    Ok(())
}
