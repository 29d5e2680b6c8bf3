//! K16, J7: what clusterctl makes of every flavor, put to the real API server and to core's webhooks.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Rig, Setup, eventually, rule};
use capasg_environment::{Look, stand_in};
use capasg_test_objects::{maximal_pool, template_of};
use serde_json::Value;

/// The kinds of a topology on AWS, whatever patches its class.
const TOPOLOGY_ON_AWS: &[&str] = &[
    "ASGMachinePoolTemplate",
    "AWSClusterTemplate",
    "AWSMachineTemplate",
    "Cluster",
    "ClusterClass",
    "KubeadmConfigTemplate",
    "KubeadmControlPlaneTemplate",
];

/// Kinds of Cluster API Provider AWS, whose definitions are not here.
const OF_THE_AWS_PROVIDER: [&str; 3] = ["AWSCluster", "AWSClusterTemplate", "AWSMachineTemplate"];

/// What the flavors hold; every kind that is not the AWS provider's is sent to the API server.
const FLAVORS: [(&str, &[&str]); 5] = [
    (
        "",
        &[
            "ASGMachinePool",
            "AWSCluster",
            "AWSMachineTemplate",
            "Cluster",
            "KubeadmConfig",
            "KubeadmControlPlane",
            "MachinePool",
        ],
    ),
    (
        "development",
        &[
            "ASGMachinePool",
            "Cluster",
            "DevCluster",
            "DevMachineTemplate",
            "KubeadmConfig",
            "KubeadmControlPlane",
            "MachinePool",
        ],
    ),
    ("topology", TOPOLOGY_ON_AWS),
    ("extension", TOPOLOGY_ON_AWS),
    (
        "development-topology",
        &[
            "ASGMachinePoolTemplate",
            "Cluster",
            "ClusterClass",
            "DevClusterTemplate",
            "DevMachineTemplate",
            "KubeadmConfigTemplate",
            "KubeadmControlPlaneTemplate",
        ],
    ),
];

async fn take(rig: &Rig<'_>, flavor: &str, object: &Value) -> Result<()> {
    // Strictly, so that a misspelt field is no silence; nothing is kept.
    let kubectl = rig.scenario.environment.management().api().kubectl();
    let args = ["apply", "--dry-run=server", "--validate=strict", "--filename=-"];
    kubectl
        .feed(args, &object.to_string())
        .await
        .map(drop)
        .with_context(|| format!("{flavor}: {} {} was refused", object["kind"], object["metadata"]["name"]))
}

// Rules: J7, K16
#[tokio::test]
async fn the_api_server_accepts_what_every_flavor_generates() -> Result<()> {
    rule("k16-flavors", Setup::bare().without_manager(), async |rig| {
        // Clusters and pools in memory are judged by a webhook of their provider.
        rig.scenario.environment.management().start_in_memory().await?;
        // clusterctl looks whether the templates of a class are there, and needs their definitions for it.
        stand_in::install_aws_provider(rig.scenario.environment.management().api()).await?;
        let version = rig.scenario.environment.tools().kubernetes_version();
        for (flavor, kinds) in FLAVORS {
            // Discovery takes a moment to tell of them.
            let objects = eventually(&format!("{flavor} is generated"), async || {
                rig.generate(flavor, version, 3).await.map(Look::Done)
            })
            .await?;
            // A class comes along with its cluster, into the same namespace.
            let namespace = &rig.scenario.namespace;
            let elsewhere =
                objects.iter().find(|object| object["metadata"]["namespace"] != namespace.as_str());
            ensure!(elsewhere.is_none(), "{flavor}: {elsewhere:?}");
            let found: BTreeSet<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
            ensure!(found == kinds.iter().copied().collect(), "{flavor}: {found:?}");
            for object in &objects {
                let kind = object["kind"].as_str().unwrap_or_default();
                if !OF_THE_AWS_PROVIDER.contains(&kind) {
                    take(rig, flavor, object).await?;
                }
            }
        }
        Ok(())
    })
    .await
}

/// A flavor requires the variables that have no default, and clusterctl names those that are missing.
// Rules: K16
#[tokio::test]
async fn flavors_require_only_what_has_no_default() -> Result<()> {
    rule("k16-variables", Setup::bare().without_manager(), async |rig| {
        let clusterctl = rig.scenario.environment.management().clusterctl().runner();
        let generate = |flavor: &'static str| {
            let fixed =
                ["generate", "cluster", "prod", "--infrastructure", "asg", "--target-namespace", "teams"];
            let rest = ["--kubernetes-version", "v1.36.3", "--worker-machine-count", "7", "--flavor", flavor];
            fixed.into_iter().chain(rest)
        };
        for (flavor, required) in
            [("", "AWS_NODE_AMI_ID, AWS_REGION"), ("topology", "AWS_NODE_IMAGE_PARAMETER, AWS_REGION")]
        {
            let error = clusterctl.run(generate(flavor)).await.err().context("a variable is missing")?;
            ensure!(error.to_string().contains(required), "{flavor}: {error}");
        }
        let given = clusterctl.clone().env("AWS_REGION", "us-east-2").env("AWS_NODE_AMI_ID", "ami-0a1b2c3d");
        for (flavor, region) in [("", "us-east-2"), ("development", "eu-west-1")] {
            let with = if flavor == "development" { clusterctl } else { &given };
            let objects: Vec<Value> = serde_saphyr::from_multiple(&with.run(generate(flavor)).await?)?;
            let of_kind = |kind: &'static str| {
                let found = objects.iter().find(|object| object["kind"] == kind);
                found.with_context(|| format!("{flavor}: no {kind}"))
            };
            let (pool, owner) = (of_kind("ASGMachinePool")?, of_kind("MachinePool")?);
            ensure!(objects.iter().all(|object| object["metadata"]["namespace"] == "teams"), "{flavor}");
            ensure!(pool["spec"]["region"] == region, "{flavor}: {pool}");
            ensure!(owner["spec"]["replicas"] == 7, "{flavor}: {owner}");
            let reference = &owner["spec"]["template"]["spec"]["infrastructureRef"]["name"];
            ensure!(*reference == pool["metadata"]["name"], "{flavor}: {owner}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_api_server_accepts_the_example_of_the_readme() -> Result<()> {
    rule("readme", Setup::bare().without_manager(), async |rig| {
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
        let readme = fs::read_to_string(readme)?;
        let blocks = readme.split("\n```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
        let mut accepted = 0;
        for block in blocks.filter(|block| block.contains("ASGMachinePool")) {
            for object in serde_saphyr::from_multiple::<Value>(block)? {
                take(rig, "README.md", &object).await?;
                accepted += 1;
            }
        }
        ensure!(accepted == 2, "README.md has a pool and its MachinePool, not {accepted} objects");
        Ok(())
    })
    .await
}

/// `kubectl explain` knows every field of pool and template, and shows the sentence of each.
// Rules: A10, J1
#[tokio::test]
async fn explain_shows_every_field() -> Result<()> {
    rule("j1-explain", Setup::bare().without_manager(), async |rig| {
        let explain = async |what: &'static [&'static str]| {
            let kubectl = rig.scenario.environment.management().api().kubectl();
            kubectl.run(["explain"].into_iter().chain(what.iter().copied())).await
        };
        let pool = explain(&["asgmachinepool.spec", "--recursive"]).await?;
        let template = explain(&["asgmachinepooltemplate.spec.template.spec", "--recursive"]).await?;
        let maximal = maximal_pool();
        for (shown, object) in
            [(&pool, &maximal["spec"]), (&template, &template_of(&maximal)["spec"]["template"]["spec"])]
        {
            for (name, value) in object.as_object().context("no spec")? {
                ensure!(shown.contains(&format!("\n  {name}\t")), "{name} is not shown: {shown}");
                for (member, _) in value.as_object().into_iter().flatten().filter(|_| name != "tags") {
                    ensure!(
                        shown.contains(&format!("\n    {member}\t")),
                        "{name}.{member} is not shown: {shown}"
                    );
                }
            }
        }
        ensure!(!template.contains("providerID"), "{template}");
        let image = explain(&["asgmpt.spec.template.spec.machine.image.ssmParameter"]).await?;
        let image = image.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(image.contains("Another image makes running instances outdated."), "{image}");
        Ok(())
    })
    .await
}
