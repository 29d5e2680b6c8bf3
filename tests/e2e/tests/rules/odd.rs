//! Odd objects of others beside a pool, as far as their definitions let them in.

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Rig, Setup, rule};
use capasg_environment::dynamic;
use capasg_test_objects::foreign;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Error,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

const OBJECTS: u64 = 400;

/// Makes the object, and its status after it; answers whether the API server took it.
async fn brought(rig: &Rig<'_>, object: Value) -> Result<bool> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = object["kind"].as_str().unwrap_or_default();
    let api = dynamic(&rig.scenario.client, &rig.scenario.namespace, group, version, kind);
    let mut object = object;
    // What has an owner that does not exist is collected at once.
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("ownerReferences");
    }
    let sent: DynamicObject = serde_json::from_value(object.clone())?;
    let name = sent.metadata.name.clone().context("no name")?;
    match api.create(&PostParams::default(), &sent).await {
        Ok(_) => {}
        Err(Error::Api(_)) => return Ok(false),
        Err(other) => return Err(other.into()),
    }
    let status = Patch::Merge(json!({"status": object["status"]}));
    match api.patch_status(&name, &PatchParams::default(), &status).await {
        Ok(_) | Err(Error::Api(_)) => Ok(true),
        Err(other) => Err(other.into()),
    }
}

// Rules: C4
// Pains: P33
#[tokio::test]
#[ignore = "long form: unit tests show it as well"]
async fn odd_objects_of_other_kinds_do_not_stop_a_pool() -> Result<()> {
    rule("c4-odd", Setup::default().without_manager(), async |rig| {
        let bring = async || {
            let taken = stream::iter(0..OBJECTS).map(|seed| brought(rig, foreign(seed))).buffer_unordered(16);
            let taken: Vec<bool> = taken.try_collect().await?;
            anyhow::Ok(taken.into_iter().filter(|taken| *taken).count())
        };
        let taken = bring().await?;
        ensure!(taken > 100, "only {taken} of {OBJECTS} were let in");
        // In the first lists of the manager, and coming while it runs.
        rig.start_manager().await?;
        let before = rig.scenario.kubectl(&["label", "machines,machinepools", "--all", "odd=yes"]).await?;
        ensure!(before.lines().count() > 30, "{before}");
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        rig.scenario
            .kubectl(&["label", "machines,machinepools", "--all", "odd=still", "--overwrite"])
            .await?;
        rig.scale("workers", 2).await?;
        rig.running("workers", 2).await?;
        rig.delete("workers").await
    })
    .await
}
