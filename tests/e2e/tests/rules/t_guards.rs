//! What operators do not allow is rejected when a pool is written, in the words of its conditions, and what exists stays
//! editable.

use anyhow::{Context as _, Result, ensure};
use capasg_api::names::annotations;
use capasg_e2e::{Rig, Setup, condition, eventually, rule};
use capasg_environment::{Look, Output};
use serde_json::{Value, json};

use crate::webhooks::{SERVED, standby};

async fn kubectl(rig: &Rig<'_>, args: &[&str], input: Option<&Value>) -> Result<Output> {
    let input = input.map(Value::to_string);
    let all = args.iter().copied().chain(["--namespace", &rig.scenario.namespace]);
    rig.scenario.environment.management().api().kubectl().output(all, input.as_deref()).await
}

/// What the API server says to a pool with these members, which is not kept.
async fn created(rig: &Rig<'_>, edits: &[(&str, Value)]) -> Result<Output> {
    let pool = edits.iter().fold(rig.pool("new"), |pool, (path, value)| pool.with(path, value.clone()));
    kubectl(rig, &["create", "--dry-run=server", "--filename=-"], Some(&pool.ours())).await
}

fn rejected(output: &Output, message: &str) -> Result<()> {
    ensure!(!output.success && output.stderr.contains(message), "{message}: {output:?}");
    Ok(())
}

fn accepted(output: &Output) -> Result<()> {
    ensure!(output.success && !output.stderr.contains("Warning"), "{output:?}");
    Ok(())
}

/// Members of a pool that the guard of the test denies, and what is said to each.
fn denials(guard: &str) -> [(Vec<(&'static str, Value)>, String); 7] {
    [
        (
            vec![("spec/subnets", json!([{"id": "subnet-0b1c2d3e"}]))],
            format!("spec.subnets: ASGGuard {guard} does not allow subnet subnet-0b1c2d3e"),
        ),
        (
            vec![("spec/machine/securityGroups", json!([{"id": "sg-0b1c2d3e"}]))],
            format!(
                "spec.machine.securityGroups: ASGGuard {guard} does not allow security group sg-0b1c2d3e"
            ),
        ),
        (
            vec![("spec/machine/iamInstanceProfile", json!("admin"))],
            format!(
                "spec.machine.iamInstanceProfile: ASGGuard {guard} does not allow instance profile admin"
            ),
        ),
        (
            vec![("spec/machine/image", json!({"ssmParameter": "/secret"}))],
            format!("spec.machine.image.ssmParameter: ASGGuard {guard} does not allow SSM parameter /secret"),
        ),
        (
            vec![("spec/machine/rootVolume", json!({"kmsKeyID": "alias/theirs"}))],
            format!("spec.machine.rootVolume.kmsKeyID: ASGGuard {guard} does not allow KMS key alias/theirs"),
        ),
        (
            vec![("spec/group", json!({"name": "team-a"})), ("spec/adoptionPolicy", json!("Adopt"))],
            format!("spec.adoptionPolicy: ASGGuard {guard} denies the adoption of groups"),
        ),
        (
            vec![("spec/minSize", json!(4))],
            format!("spec.minSize: ASGGuard {guard} allows at most 3 replicas of a pool"),
        ),
    ]
}

// Rules: T1, T3
#[tokio::test]
async fn what_operators_deny_is_rejected_when_it_is_written() -> Result<()> {
    let _served = SERVED.lock().await;
    rule("t3-admission", Setup::default(), async |rig| {
        let manager = standby(rig).await?.start_ready().await?;

        // Objects are applied in any order: without a guard, the profile is accepted, and a condition reports it.
        let early = rig.pool("early").replicas(1).with("spec/machine/iamInstanceProfile", "admin");
        rig.apply(&early).await?;
        rig.pool_until("early", capasg_e2e::DEADLINE, |pool| {
            let told = condition(&pool.status.clone().unwrap_or_default().conditions, "LaunchTemplateReady");
            Look::when(told == "False/NotAllowed", told)
        })
        .await?;
        let guard = rig
            .guard(
                "tenant",
                &json!({
                    "regions": [rig.scenario.region], "subnetIDs": ["subnet-0a1b2c3d"], "securityGroupIDs": [],
                    "instanceProfiles": ["team-*"], "sshKeyNames": [], "ssmParameterPrefixes": ["/images/"],
                    "kmsKeyIDs": [], "groupNames": ["team-*"], "adoption": "Denied",
                    "limits": {"maxReplicasPerPool": 3},
                }),
            )
            .await?;
        let key = ("spec/machine/sshKeyName", json!("ops"));
        let key_denied = format!("spec.machine.sshKeyName: ASGGuard {guard} does not allow key pair ops");
        eventually("a key pair is rejected", async || {
            let output = created(rig, std::slice::from_ref(&key)).await?;
            Ok(Look::when(rejected(&output, &key_denied).is_ok(), format!("{output:?}")))
        })
        .await?;
        let by_tags = json!([{"tags": {"tier": "node"}}]);
        for (edits, denied) in denials(&guard) {
            rejected(&created(rig, &edits).await?, &denied)?;
        }
        let elsewhere = rig.pool("new").in_region("eu-north-1").ours();
        let output = kubectl(rig, &["create", "--dry-run=server", "--filename=-"], Some(&elsewhere)).await?;
        rejected(&output, &format!("spec.region: ASGGuard {guard} does not allow Region eu-north-1"))?;
        let allowed = [
            ("spec/subnets", by_tags.clone()),
            ("spec/machine/securityGroups", by_tags),
            ("spec/machine/iamInstanceProfile", json!("team-nodes")),
        ];
        accepted(&created(rig, &allowed).await?)?;

        // An identity that is not for this namespace, and one that does not exist yet.
        let spec = json!({
            "type": "Role", "role": {"arn": "arn:aws:iam::123456789012:role/capasg"},
            "allowedNamespaces": {"names": ["elsewhere"]},
        });
        let identity = rig.identity("others", &spec).await?;
        let naming = |name: &str| ("spec/identityRef", json!({"kind": "ASGIdentity", "name": name}));
        let namespace = &rig.scenario.namespace;
        let denied = format!("spec.identityRef: ASGIdentity {identity} does not allow namespace {namespace}");
        let with = |name: &str| [&allowed[..], &[naming(name)]].concat();
        rejected(&created(rig, &with(&identity)).await?, &denied)?;
        accepted(&created(rig, &with("later")).await?)?;

        // The pool from before the guard: a change is rejected only if it is what is denied.
        let patch = async |patch: Value| {
            let text = patch.to_string();
            kubectl(rig, &["patch", "asgmachinepool", "early", "--type=merge", "--patch", &text], None).await
        };
        accepted(&patch(json!({"metadata": {"labels": {"team": "a"}}, "spec": {"minSize": 1}})).await?)?;
        rejected(&patch(json!({"spec": {"machine": {"sshKeyName": "ops"}}})).await?, &key_denied)?;
        rejected(
            &patch(json!({"spec": {"machine": {"iamInstanceProfile": "root"}}})).await?,
            &format!("spec.machine.iamInstanceProfile: ASGGuard {guard} does not allow instance profile root"),
        )?;
        // As the topology controller compares: a server-side apply that is not kept.
        let manager_of_fields = "--field-manager=capi-topology";
        let apply =
            ["apply", "--server-side", manager_of_fields, "--force-conflicts", "--dry-run=server", "--filename=-"];
        accepted(&kubectl(rig, &apply, Some(&early.ours())).await?)?;
        let with_key = early.clone().with("spec/machine/sshKeyName", "ops").ours();
        rejected(&kubectl(rig, &apply, Some(&with_key)).await?, &key_denied)?;
        let told = condition_message(rig, "LaunchTemplateReady").await?;
        ensure!(told.contains(&format!("ASGGuard {guard} does not allow instance profile admin")), "{told}");

        // What is moved or restored is accepted as it is.
        accepted(
            &created(rig, &[key, ("metadata/annotations", json!({annotations::OWNER_ID: "0123456789abcdef"}))])
                .await?,
        )?;
        ensure!(manager.stop().await?.success());
        rig.delete("early").await
    })
    .await
}

async fn condition_message(rig: &Rig<'_>, kind: &str) -> Result<String> {
    let pool = rig.pools().get("early").await?;
    let conditions = pool.status.context("a status")?.conditions;
    Ok(conditions.into_iter().find(|one| one.type_ == kind).context("a condition")?.message)
}
