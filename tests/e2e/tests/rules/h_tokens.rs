//! H2: the kubeadm bootstrap provider's own rotation, quick enough to see many of them.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_e2e::{
    CLUSTER, Rig, Setup, condition, eventually, manifest::Bootstrap, rule, shared_workload_api,
    target::Target,
};
use capasg_environment::{Join, Look, WorkloadCluster, dynamic};
use capasg_fake_aws::{Service, Tree};
use capasg_test_objects::is_long;
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// How many rotations have to be seen where there is time; one is due about every 20 s.
const ROTATIONS_FOR_CONFORMANCE: usize = 20;
/// How many elsewhere: at the last one a machine is launched, which has to join with the newest token.
const ROTATIONS: usize = 5;
/// How often the newest token is read while a machine is launched: far more often than it rotates.
const SAMPLED_EVERY: Duration = Duration::from_millis(500);

fn rotations() -> usize {
    if is_long() { ROTATIONS_FOR_CONFORMANCE } else { ROTATIONS }
}

/// The bootstrap token that the bootstrap Secret holds now; empty while there is none.
async fn token(target: &Target<'_>) -> Result<String> {
    let configs =
        dynamic(&target.client, target.namespace(), "bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig");
    let config = configs.get("workers").await?;
    let token = config.data["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["token"].as_str();
    Ok(token.unwrap_or_default().to_owned())
}

fn decoded(user_data: &str) -> Result<String> {
    Ok(String::from_utf8_lossy(&STANDARD.decode(user_data)?).into_owned())
}

/// What the user data of the newest instance hold.
fn newest_user_data(rig: &Rig<'_>) -> Result<String> {
    let newest = rig.instances().pop().context("no machine")?;
    decoded(&newest.user_data.context("no user data")?)
}

/// What the user data of the next instance hold.
fn launch_user_data(rig: &Rig<'_>) -> Result<String> {
    let (id, version) = rig.group()?.template;
    let params = Tree::new().with("LaunchTemplateId", id).with("Versions", Tree::list([version]));
    let (simulator, scope) = (rig.scenario.simulator(), rig.scenario.scope());
    let reply = simulator.call(&scope, Service::Ec2, "DescribeLaunchTemplateVersions", params)?;
    let found = reply.items_of("LaunchTemplateVersions").first().context("no such version")?;
    decoded(found.at("LaunchTemplateData.UserData").and_then(Tree::text).context("no user data")?)
}

async fn up_to_date(target: &Target<'_>) -> Result<i32> {
    Ok(target.pools().get("workers").await?.status.context("no status")?.up_to_date_replicas)
}

// Rules: H2
#[tokio::test]
async fn real_rotations_replace_nothing_and_each_new_machine_joins() -> Result<()> {
    rule("h2-tokens", Setup::default(), async |rig| {
        let target = rig.target().await?;
        let environment = &rig.scenario.environment;
        target.management.api().kubectl().run(["create", "namespace", target.namespace()]).await?;
        let api = shared_workload_api(environment).await?;
        let cluster =
            WorkloadCluster::stub(target.management, environment.tools(), target.namespace(), CLUSTER, api)
                .await?;
        // Kubelets that are let in by a token which the cluster knows and which has not expired, as kubeadm's are.
        let kubelets = rig.scenario.kubelets(&cluster, Join::BootstrapToken).await?;
        let pool = rig.pool("workers").replicas(1).bootstrap(Bootstrap::Kubeadm);
        let apply = ["apply", "--filename=-", "--namespace", target.namespace()];
        target.management.api().kubectl().feed(apply, &pool.documents()).await?;
        target.running("workers", 1).await?;
        let first: Vec<String> = rig.instances().into_iter().map(|one| one.id).collect();

        let (mut seen, mut size) = (BTreeSet::from([token(&target).await?]), 1);
        while seen.len() <= rotations() {
            let before = seen.len();
            let next = eventually(&format!("rotation {before}"), async || {
                let now = token(&target).await?;
                Ok(Look::from_option((!seen.contains(&now)).then_some(now), "the same token"))
            })
            .await?;
            seen.insert(next);
            ensure!(usize::try_from(up_to_date(&target).await?)? == size, "outdated after rotation {before}");
            // A machine that is launched now and then joins with what is good at that time.
            if before.is_multiple_of(5) {
                size += 1;
                let good = tokens_until_running(rig, &target, size).await?;
                let data = newest_user_data(rig)?;
                ensure!(good.iter().any(|token| data.contains(token)), "it joined with an old token");
            }
        }
        let status = target.pools().get("workers").await?.status.context("no status")?;
        ensure!(condition(&status.conditions, "UpToDate") == "True/UpToDate", "{:?}", status.conditions);
        let ids: Vec<String> = rig.instances().into_iter().map(|one| one.id).collect();
        ensure!(
            first.iter().all(|id| ids.contains(id)) && ids.len() == size,
            "machines were replaced: {ids:?}"
        );
        ensure!(rig.calls_of("TerminateInstanceInAutoScalingGroup").is_empty());
        ensure!(
            kubelets.nodes().len() == size && kubelets.refusals().is_empty(),
            "{:?}",
            kubelets.refusals()
        );
        let versions = rig.templates()[0].versions.len();
        ensure!(versions <= 16, "{versions} versions have piled up");

        if is_long() {
            a_new_default_replaces_nothing(rig, &target, &ids).await?;
        }

        // A person's edit counts once it is rendered, by the next rotation.
        let edit = json!({"spec": {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [
            {"name": "cloud-provider", "value": "external"}, {"name": "v", "value": "4"},
        ]}}}});
        let configs = dynamic(
            &target.client,
            target.namespace(),
            "bootstrap.cluster.x-k8s.io",
            "v1beta2",
            "KubeadmConfig",
        );
        configs.patch("workers", &PatchParams::default(), &Patch::Merge(edit)).await?;
        edited(rig, &target, &ids, size).await?;
        target.delete("workers").await?;
        target.stop().await
    })
    .await
}

/// A later version of core adds a field with a default to the definition of `KubeadmConfig`, and the certificate of the CA changes
/// afterwards: no user edited what the machines were launched for.
async fn a_new_default_replaces_nothing(rig: &Rig<'_>, target: &Target<'_>, ids: &[String]) -> Result<()> {
    const DEFINITION: &str = "customresourcedefinition/kubeadmconfigs.bootstrap.cluster.x-k8s.io";
    let kubectl = target.management.api().kubectl();
    let versions = kubectl.run(["get", DEFINITION, "--output=jsonpath={.spec.versions[*].name}"]).await?;
    let field = |number| {
        json!({
            "op": "add",
            "path": format!("/spec/versions/{number}/schema/openAPIV3Schema/properties/spec/properties/addedLater"),
            "value": {"type": "string", "default": "by-core"},
        })
    };
    let fields: Vec<_> = (0..versions.split_whitespace().count()).map(field).collect();
    kubectl.run(["patch", DEFINITION, "--type=json", "--patch", &json!(fields).to_string()]).await?;
    let configs =
        dynamic(&target.client, target.namespace(), "bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig");
    eventually("the spec has the default", async || {
        let spec = configs.get("workers").await?.data["spec"].clone();
        Ok(Look::when(spec["addedLater"] == "by-core", "it has not"))
    })
    .await?;
    rotations_replace_nothing(rig, target, ids).await?;
    let hash = format!("sha256:{}", "5e".repeat(32));
    let discovery = json!({"bootstrapToken": {"caCertHashes": [hash]}});
    let edit = json!({"spec": {"joinConfiguration": {"discovery": discovery}}});
    configs.patch("workers", &PatchParams::default(), &Patch::Merge(edit)).await?;
    eventually("the launch template has the other certificate", async || {
        Ok(Look::when(launch_user_data(rig)?.contains(&hash), "it has not"))
    })
    .await?;
    rotations_replace_nothing(rig, target, ids).await
}

/// Two rotations later the same instances run, and all are up to date.
async fn rotations_replace_nothing(rig: &Rig<'_>, target: &Target<'_>, ids: &[String]) -> Result<()> {
    for rotation in 0..2 {
        let before = token(target).await?;
        eventually(&format!("rotation {rotation}"), async || {
            Ok(Look::when(token(target).await? != before, "the same token"))
        })
        .await?;
        let current = usize::try_from(up_to_date(target).await?)?;
        ensure!(current == ids.len(), "{current} of {} are up to date", ids.len());
    }
    ensure!(rig.instances().into_iter().map(|one| one.id).eq(ids.iter().cloned()), "machines were replaced");
    Ok(())
}

/// Scales out by one machine once the newest token is in the group's launch template. Gives the tokens that were the newest
/// at some time from then on until the machine runs.
async fn tokens_until_running(rig: &Rig<'_>, target: &Target<'_>, size: usize) -> Result<BTreeSet<String>> {
    let published = eventually("the newest token is published", async || {
        let newest = token(target).await?;
        let published = launch_user_data(rig)?.contains(&newest);
        Ok(Look::from_option(published.then_some(newest), "the group has another"))
    })
    .await?;
    let mut good = BTreeSet::from([published]);
    target.patch_owner("workers", &json!({"spec": {"replicas": size}})).await?;
    let sampled = async {
        loop {
            good.insert(token(target).await?);
            tokio::time::sleep(SAMPLED_EVERY).await;
        }
    };
    tokio::select! {
        running = target.running("workers", size) => running?,
        failed = sampled => return failed,
    }
    Ok(good)
}

/// The edit makes every machine outdated once: each is replaced, and what is new stays up to date over rotations.
async fn edited(rig: &Rig<'_>, target: &Target<'_>, before: &[String], size: usize) -> Result<()> {
    let old =
        || rig.instances().into_iter().map(|one| one.id).filter(|id| before.contains(id)).collect::<Vec<_>>();
    eventually("they are outdated", async || {
        let current = usize::try_from(up_to_date(target).await?)?;
        Ok(Look::when(current < size, format!("{current} of {size} are up to date")))
    })
    .await?;
    // The pool rolls by itself, one after another.
    for gone in 1..=size {
        eventually(&format!("{gone} are replaced"), async || {
            let left = old().len();
            Ok(Look::when(left + gone <= size, format!("{left} of the old ones run")))
        })
        .await?;
    }
    target.running("workers", size).await?;
    let after: Vec<String> = rig.instances().into_iter().map(|one| one.id).collect();
    ensure!(newest_user_data(rig)?.contains("name: v"), "the edit is not in the data");
    rotations_replace_nothing(rig, target, &after).await
}
