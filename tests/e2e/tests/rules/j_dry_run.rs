//! J2 to J4: the two dry runs by which the topology controller compares, done as it does them.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{GROUP, VERSION};
use capasg_e2e::{Rig, Setup, TOPOLOGY, applied_by_topology, rule};
use capasg_environment::dynamic;
use capasg_test_objects::{maximal_pool, minimal_pool, minimal_template, template_of, with};
use kube::{
    Api, Error, ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// By this, the topology controller asks webhooks to look away from changes.
const DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";
const ARN: &str = "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:0b1c2d3e-0000-4000-8000-000000000001:\
     autoScalingGroupName/default-prod-workers-0a1b2c3d";

/// The pool as the topology controller means it: every field that a class can set, and its own labels.
fn intent() -> Value {
    let spec = template_of(&maximal_pool())["spec"]["template"]["spec"].clone();
    let metadata = json!({
        "name": "workers",
        "labels": {"cluster.x-k8s.io/cluster-name": "prod", "topology.cluster.x-k8s.io/owned": ""},
        "annotations": {"cluster.x-k8s.io/cloned-from-name": "workers"},
    });
    with(with(minimal_pool(), "spec", spec), "metadata", metadata)
}

fn api(rig: &Rig<'_>, kind: &str) -> Api<DynamicObject> {
    dynamic(&rig.scenario.client, &rig.scenario.namespace, GROUP, VERSION, kind)
}

async fn apply(api: &Api<DynamicObject>, object: &Value, dry: bool) -> Result<DynamicObject, Error> {
    let params = PatchParams { dry_run: dry, ..PatchParams::apply(TOPOLOGY).force() };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    api.patch(name, &params, &Patch::Apply(object)).await
}

/// What the controller compares of an object: what it says, and which fields are the topology controller's.
fn compared(object: &DynamicObject, fields_of: &DynamicObject) -> Value {
    let mut annotations = object.annotations().clone();
    annotations.remove(DRY_RUN);
    let fields = applied_by_topology(fields_of).map(|mut fields| {
        if let Some(Value::Object(own)) = fields.pointer_mut("/f:metadata/f:annotations") {
            own.remove(&format!("f:{DRY_RUN}"));
        }
        fields
    });
    json!({
        "labels": object.labels(),
        "annotations": annotations,
        "spec": object.data["spec"],
        "fields": fields.collect::<Vec<_>>(),
    })
}

/// Whether applying `intent` would change the object, as `dryRunSSAPatch` of the topology controller finds out: a dry
/// run of the intent, a dry run of all that is there, and a comparison. Answers both sides where they differ.
async fn difference(api: &Api<DynamicObject>, intent: &Value) -> Result<Option<(Value, Value)>> {
    let name = intent["metadata"]["name"].as_str().context("no name")?;
    let there = api.get(name).await?;
    let mut modified = intent.clone();
    modified["metadata"]["annotations"] = annotated(&intent["metadata"]["annotations"]);
    modified["metadata"]["uid"] = json!(there.uid());
    let modified = apply(api, &modified, true).await?;

    let original = json!({
        "apiVersion": intent["apiVersion"],
        "kind": intent["kind"],
        "metadata": {
            "name": name,
            "uid": there.uid(),
            "labels": there.labels(),
            "annotations": annotated(&json!(there.annotations())),
            "ownerReferences": there.owner_references(),
        },
        "spec": there.data["spec"],
    });
    let original = apply(api, &original, true).await?;
    let (original, modified) = (compared(&original, &there), compared(&modified, &modified));
    ensure!(api.get(name).await?.resource_version() == there.resource_version(), "a dry run was kept");
    Ok((original != modified).then_some((original, modified)))
}

fn annotated(annotations: &Value) -> Value {
    let mut all = annotations.as_object().cloned().unwrap_or_default();
    all.insert(DRY_RUN.to_owned(), json!(""));
    Value::Object(all)
}

/// What the provider and core write of a pool that a class made.
async fn provide(api: &Api<DynamicObject>) -> Result<()> {
    let provider = PatchParams { field_manager: Some("capasg".to_owned()), ..PatchParams::default() };
    let written = json!({
        "metadata": {"finalizers": ["infrastructure.cluster.x-k8s.io/asgmachinepool"]},
        "spec": {"providerID": ARN, "providerIDList": ["aws:///eu-west-1a/i-0a1b2c3d"]},
    });
    api.patch("workers", &provider, &Patch::Merge(&written)).await?;
    let status = json!({"status": {"ready": true, "initialization": {"provisioned": true}, "replicas": 1}});
    api.patch_status("workers", &provider, &Patch::Merge(&status)).await?;
    Ok(())
}

// Rules: J3, J4
#[tokio::test]
async fn two_dry_runs_of_a_pool_are_equal() -> Result<()> {
    rule("j4-dry-runs", Setup::bare().without_manager(), async |rig| {
        let pools = api(rig, "ASGMachinePool");
        for intent in [intent(), with(intent(), "spec", minimal_pool()["spec"].clone())] {
            apply(&pools, &intent, false).await?;
            provide(&pools).await?;
            ensure!(difference(&pools, &intent).await?.is_none(), "{:?}", difference(&pools, &intent).await?);

            // A change is seen as that change alone, and after it all is equal again.
            let types = json!([{"type": "m7i.large"}, {"type": "m6i.large"}]);
            let changed = with(intent.clone(), "spec/instanceTypes", types.clone());
            let (before, after) = difference(&pools, &changed).await?.context("a change was not seen")?;
            ensure!(after["spec"]["instanceTypes"] == types);
            ensure!(
                with(before, "spec/instanceTypes", types.clone()) == after,
                "more than the types would change"
            );
            apply(&pools, &changed, false).await?;
            ensure!(difference(&pools, &changed).await?.is_none());
            let kept = pools.get("workers").await?;
            ensure!(kept.data["spec"]["providerID"] == ARN, "what the provider wrote is gone");

            // Somebody's edit of a field of the class is seen, one of another field is not.
            let person = PatchParams { field_manager: Some("person".to_owned()), ..PatchParams::default() };
            let edit = json!({"spec": {"instanceTypes": [{"type": "c7i.large"}]}});
            pools.patch("workers", &person, &Patch::Merge(&edit)).await?;
            ensure!(difference(&pools, &changed).await?.is_some(), "an edit was not seen");
            pools.delete("workers", &kube::api::DeleteParams::default()).await?;
            pools
                .patch("workers", &person, &Patch::Merge(&json!({"metadata": {"finalizers": null}})))
                .await?;
        }
        Ok(())
    })
    .await
}

/// A template has no rule on changes, dry run or not. A pool has, and it holds in the dry run: pools are changed in
/// place, so that the write which follows would be refused in the same words.
// Rules: J2
#[tokio::test]
async fn dry_runs_accept_template_edits_and_reject_a_pools_region() -> Result<()> {
    rule("j2-changes", Setup::bare().without_manager(), async |rig| {
        let templates = api(rig, "ASGMachinePoolTemplate");
        let template = minimal_template();
        apply(&templates, &template, false).await?;
        let moved = with(template.clone(), "spec/template/spec/region", "us-east-1");
        let (before, after) = difference(&templates, &moved).await?.context("a change was not seen")?;
        ensure!(before != after && after["spec"]["template"]["spec"]["region"] == "us-east-1");
        let edited = apply(&templates, &moved, false).await?;
        ensure!(edited.data["spec"]["template"]["spec"]["region"] == "us-east-1");

        let pools = api(rig, "ASGMachinePool");
        pools.create(&PostParams::default(), &serde_json::from_value(minimal_pool())?).await?;
        let moved = with(intent(), "spec/region", "us-east-1");
        for object in [moved.clone(), with(moved, "metadata/annotations", annotated(&Value::Null))] {
            for dry in [true, false] {
                let refused = apply(&pools, &object, dry).await;
                let words = "spec.region: cannot be changed; create another pool";
                ensure!(
                    refused.as_ref().is_err_and(|error| error.to_string().contains(words)),
                    "dry run {dry}: {refused:?}"
                );
            }
        }
        Ok(())
    })
    .await
}
