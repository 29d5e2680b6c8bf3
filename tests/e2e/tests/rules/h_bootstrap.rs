//! H: bootstrap data reach new machines, roll none, and are seen by nobody.

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_e2e::{CLUSTER, Setup, condition, eventually, manifest::bootstrap_secret, rule};
use capasg_environment::Look;
use capasg_fake_aws::Fault;
use serde_json::json;

// Rules: H2
// Pains: P7, W20
#[tokio::test]
async fn a_rotated_token_replaces_nothing_and_the_next_machine_joins() -> Result<()> {
    rule("h2-rotation", Setup::in_memory(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let before: Vec<String> = rig.instances().into_iter().map(|one| one.id).collect();
        for rotation in 1..=2 {
            let mark = rig.mark();
            let (_, new) = rig.cluster()?.rotate_bootstrap_token("workers").await?;
            eventually(&format!("rotation {rotation} is published"), async || {
                let calls = rig.mutations_since(mark);
                let pinned = calls.iter().any(|call| call.action == "UpdateAutoScalingGroup");
                let made = calls.iter().filter(|call| call.action == "CreateLaunchTemplateVersion").count();
                Ok(Look::when(pinned && made >= 1, format!("{made} versions for {new}")))
            })
            .await?;
            let actions: Vec<_> = rig.mutations_since(mark).into_iter().map(|call| call.action).collect();
            ensure!(
                actions.iter().all(|action| ["CreateLaunchTemplateVersion", "UpdateAutoScalingGroup"]
                    .contains(&action.as_str())),
                "{actions:?}"
            );
        }
        rig.running("workers", 2).await?;
        let status = rig.pools().get("workers").await?.status.context("no status")?;
        ensure!(condition(&status.conditions, "UpToDate") == "True/UpToDate", "{:?}", status.conditions);
        ensure!(status.up_to_date_replicas == 2);
        ensure!(rig.instances().into_iter().map(|one| one.id).eq(before), "machines were replaced");

        // Kubelets are let in only with a token that is still good.
        rig.scale("workers", 3).await?;
        rig.running("workers", 3).await?;
        ensure!(rig.kubelets()?.refusals().is_empty(), "{:?}", rig.kubelets()?.refusals());
        rig.delete("workers").await
    })
    .await
}

// Rules: H2
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn old_launch_template_versions_are_pruned() -> Result<()> {
    rule("h2-pruned", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let before: Vec<String> = rig.instances().into_iter().map(|one| one.id).collect();
        let first = rig.instances()[0].template.clone().context("not in a group")?.1;
        for rewrite in 1..=14 {
            let value = format!("{}# token {rewrite}\n", rig.user_data());
            let mark = rig.mark();
            rig.scenario.apply(&bootstrap_secret(CLUSTER, "workers-bootstrap", &value).to_string()).await?;
            eventually("the group is pinned to the new version", async || {
                let done =
                    rig.mutations_since(mark).iter().any(|call| call.action == "UpdateAutoScalingGroup");
                Ok(Look::when(done, format!("{:?}", rig.mutations_since(mark))))
            })
            .await?;
        }
        eventually("old versions are gone", async || {
            let versions = &rig.templates()[0].versions;
            Ok(Look::when(versions.len() <= 13, format!("{} versions", versions.len())))
        })
        .await?;
        // Those in use stay: the running machine's, the group's own, and the default that AWS does not delete.
        let versions = rig.templates()[0].versions.clone();
        let pinned: u64 = rig.group()?.template.1.parse()?;
        ensure!(versions.contains_key(&first) && versions.contains_key(&pinned), "{versions:?}");
        ensure!(rig.instances().into_iter().map(|one| one.id).eq(before), "machines were replaced");

        rig.scale("workers", 2).await?;
        rig.running("workers", 2).await?;
        let newest = rig.instances().pop().context("no machine")?;
        let data = STANDARD.decode(newest.user_data.context("no user data")?)?;
        ensure!(String::from_utf8_lossy(&data).contains("# token 14"));
        rig.delete("workers").await
    })
    .await
}

// Rules: H5
// Pains: P26
#[tokio::test]
async fn failure_domains_select_the_subnets() -> Result<()> {
    rule("h5-zones", Setup::default(), async |rig| {
        let zone = |letter: &str| format!("{}{letter}", rig.scenario.region);
        let by_tag = json!([{"tags": {"kubernetes.io/role/internal-elb": "1"}}]);
        let pool = rig.pool("workers").replicas(3).with("spec/subnets", by_tag);
        rig.run(&pool, 3).await?;
        let zones: std::collections::BTreeSet<_> = rig.instances().into_iter().map(|one| one.zone).collect();
        ensure!(zones.len() == 3, "without failure domains all subnets are used: {zones:?}");

        rig.patch_owner("workers", &json!({"spec": {"failureDomains": [zone("b")]}})).await?;
        eventually("the group has one subnet", async || {
            let status = rig.pools().get("workers").await?.status.unwrap_or_default();
            let zones: Vec<_> =
                status.subnets.iter().map(|subnet| subnet.availability_zone.clone()).collect();
            Ok(Look::when(zones == [zone("b")], format!("{zones:?}")))
        })
        .await?;
        rig.scale("workers", 5).await?;
        rig.running("workers", 5).await?;
        let newest: Vec<_> = rig.instances().into_iter().rev().take(2).map(|one| one.zone).collect();
        ensure!(newest == [zone("b"), zone("b")], "{newest:?}");
        rig.delete("workers").await
    })
    .await
}

// Rules: H8
#[tokio::test]
async fn bootstrap_data_stay_secret_even_when_calls_fail() -> Result<()> {
    // Every test looks for its bootstrap data at its end; this one makes the manager talk.
    rule("h8-canary", Setup::default().arg("--v=5"), async |rig| {
        let fault = |action, status, code, message| {
            let fault = Fault::error(action, status, code, message).in_region(&rig.scenario.region);
            rig.scenario.simulator().add_fault(fault.times(Some(2)));
        };
        fault(
            "CreateLaunchTemplate",
            400,
            "InvalidUserData.Malformed",
            "Invalid BASE64 encoding of user data",
        );
        fault("CreateLaunchTemplate", 500, "InternalError", "An internal error has occurred");
        fault(
            "CreateAutoScalingGroup",
            400,
            "ValidationError",
            "You must use a valid fully-formed launch template",
        );
        rig.apply(&rig.pool("workers").replicas(1)).await?;
        eventually("AWS's words are in a condition", async || {
            let status = serde_json::to_string(&rig.pools().get("workers").await?.status)?;
            Ok(Look::when(status.contains("Invalid BASE64 encoding"), status))
        })
        .await?;
        for value in 1..=4 {
            let nudge = json!({"spec": {"retryToken": value.to_string()}});
            let mark = rig.mark();
            rig.patch_pool("workers", &nudge).await?;
            eventually("it is tried at once", async || {
                Ok(Look::when(!rig.mutations_since(mark).is_empty() || !rig.groups().is_empty(), "it is not"))
            })
            .await?;
        }
        rig.running("workers", 1).await?;
        let log = rig.manager_log();
        ensure!(
            log.contains("CreateLaunchTemplate") && log.contains("DEBUG") | log.contains("TRACE"),
            "a quiet log"
        );
        rig.keeps_bootstrap_data_secret().await?;
        rig.delete("workers").await
    })
    .await
}
