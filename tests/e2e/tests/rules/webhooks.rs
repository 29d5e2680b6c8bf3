//! N3, K11 and M6: the webhooks help while they are there, and nobody misses them when they are not.

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_api::names::annotations;
use capasg_e2e::{Rig, Setup, eventually, rule};
use capasg_environment::{Authority, Look, ManagerOptions, ManagerPlan, Output};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

const CONFIGURATION: &str = "capasg-system-validating-webhook-configuration";
const SECRET: &str = "capasg-webhook-service-cert";

/// One process of an environment serves the webhooks at a time.
pub static SERVED: Mutex<()> = Mutex::const_new(());

/// A replica that never leads, since it may not write its lease, and serves webhooks all the same.
pub async fn standby(rig: &Rig<'_>) -> Result<ManagerPlan> {
    let options = ManagerOptions {
        name: "webhooks".to_owned(),
        leader_elect: true,
        webhooks: true,
        args: vec![format!("--leader-election-namespace={}", rig.scenario.namespace)],
        ..ManagerOptions::default()
    };
    rig.scenario.plan_manager(options).await
}

/// A pool with a name for its group, as the API server would take it now.
async fn try_create(rig: &Rig<'_>, name: &str, group: &str) -> Result<Output> {
    let pool = rig.pool(name).with("spec/group", json!({"name": group})).ours().to_string();
    let args = ["create", "--dry-run=server", "--filename=-", "--namespace", &rig.scenario.namespace];
    rig.scenario.environment.management().api().kubectl().output(args, Some(&pool)).await
}

/// What kubectl says of a deletion that is not carried out.
async fn warned(rig: &Rig<'_>, kind: &str, name: &str, more: &[&str]) -> Result<String> {
    let args = ["delete", kind, name, "--dry-run=server", "--namespace", &rig.scenario.namespace];
    let all = args.iter().chain(more);
    let output = rig.scenario.environment.management().api().kubectl().output(all, None).await?;
    ensure!(output.success, "it must never be refused: {}", output.stderr);
    Ok(output.stderr)
}

async fn until_refused(rig: &Rig<'_>, why: &str) -> Result<()> {
    let (namespace, region) = (&rig.scenario.namespace, &rig.scenario.region);
    eventually(why, async || {
        let output = try_create(rig, "second", namespace).await?;
        let named = format!(
            "spec.group.name: Auto Scaling group {namespace} in {region} belongs to ASGMachinePool {namespace}/first"
        );
        let refused = !output.success && output.stderr.contains(&named);
        Ok(Look::when(refused, format!("{}{}", output.stdout, output.stderr)))
    })
    .await
}

// Rules: K11, M6, N3
#[tokio::test]
async fn webhooks_follow_their_certificate_and_block_nothing() -> Result<()> {
    let _served = SERVED.lock().await;
    rule("n3-webhooks", Setup::default(), async |rig| {
        let namespace = rig.scenario.namespace.clone();
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let first = rig.pool("first").with("spec/group", json!({"name": namespace})).ours();
        rig.scenario.apply(&first.to_string()).await?;

        // Nobody serves them yet.
        ensure!(
            try_create(rig, "second", &namespace).await?.success,
            "a webhook that is away refuses nothing"
        );

        let manager = standby(rig).await?.start_ready().await?;
        until_refused(rig, "a second pool for a group is refused").await?;
        ensure!(try_create(rig, "second", "a-free-name").await?.success, "another name is taken");

        // What goes by itself is told of to people only.
        let machine = rig.asg_machines_of("workers").await?.pop().context("no ASGMachine")?;
        let (name, instance) = (machine.name_any(), &machine.spec.instance_id);
        let text = warned(rig, "asgmachine", &name, &[]).await?;
        ensure!(
            text.contains(&format!(
                "Warning: Instance {instance} will be terminated without draining its Node"
            )),
            "{text}"
        );
        let text = warned(rig, "asgmachinepool", "workers", &[]).await?;
        ensure!(text.contains("Warning: This deletes all nodes of MachinePool workers"), "{text}");
        let account = "--as=system:serviceaccount:capasg-system:capasg-manager";
        let text = warned(rig, "asgmachine", &name, &[account]).await?;
        ensure!(!text.contains("Warning"), "a controller needs no warning: {text}");
        let moving = json!({"metadata": {"annotations": {annotations::DELETE_FOR_MOVE: ""}}});
        rig.asg_machines().patch(&name, &PatchParams::default(), &Patch::Merge(&moving)).await?;
        let text = warned(rig, "asgmachine", &name, &[]).await?;
        ensure!(!text.contains("Warning"), "a move is no deletion: {text}");
        let stays = json!({"metadata": {"annotations": {annotations::DELETE_FOR_MOVE: null}}});
        rig.asg_machines().patch(&name, &PatchParams::default(), &Patch::Merge(&stays)).await?;

        // N3: another authority, another certificate, the same process. First the API server trusts the new authority
        // alone, so that it takes no answer under the old certificate.
        let authority = Authority::new("renewed")?;
        let before = trust(rig, &STANDARD.encode(authority.certificate())).await?;
        let before = before.as_str().context("no authority before")?.to_owned();
        eventually("the old certificate is not trusted any more", async || {
            let output = try_create(rig, "second", &namespace).await?;
            Ok(Look::when(output.success, output.stderr))
        })
        .await?;
        let folder = rig.scenario.environment.management().certificates("capasg-system", SECRET);
        authority.server(&["capasg-webhook-service.capasg-system.svc".to_owned()])?.write(&folder, "tls")?;
        until_refused(rig, "it is rejected under the new certificate").await?;
        manager.process().ensure_running()?;

        ensure!(manager.stop().await?.success());
        ensure!(try_create(rig, "second", &namespace).await?.success, "a webhook that went refuses nothing");
        let text = warned(rig, "asgmachinepool", "workers", &[]).await?;
        ensure!(!text.contains("Warning"), "{text}");
        // As it was, for others in this environment.
        rig.scenario.environment.management().reconcile_webhooks().await?;
        trust(rig, &before).await?;
        rig.delete("workers").await
    })
    .await
}

/// Lets the API server trust an authority, as cert-manager's injector would. Answers whom it trusted before.
async fn trust(rig: &Rig<'_>, authority: &str) -> Result<Value> {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(rig.scenario.client.clone());
    let configuration = api.get(CONFIGURATION).await?;
    let before = serde_json::to_value(&configuration)?["webhooks"][0]["clientConfig"]["caBundle"].clone();
    let webhooks = configuration.webhooks.iter().flatten().enumerate();
    let patch: Vec<Value> = webhooks
        .map(|(at, _)| json!({"op": "add", "path": format!("/webhooks/{at}/clientConfig/caBundle"), "value": authority}))
        .collect();
    let patch: Patch<()> = Patch::Json(serde_json::from_value(json!(patch))?);
    api.patch(CONFIGURATION, &PatchParams::default(), &patch).await?;
    Ok(before)
}
