//! K16, J7: what clusterctl makes of every flavor, put to the real API server, to core's webhooks and to the definitions of
//! Cluster API Provider AWS. README.md has the commands of the flavors for AWS, and the values of all their variables.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Rig, Setup, eventually, rule};
use capasg_environment::{
    Look,
    road::{readme, steps::Session},
    stand_in,
};
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

/// The kinds of a cluster on AWS without a topology.
const ON_AWS: &[&str] = &[
    "ASGMachinePool",
    "AWSCluster",
    "AWSMachineTemplate",
    "Cluster",
    "KubeadmConfig",
    "KubeadmControlPlane",
    "MachinePool",
];

/// The flavors for AWS and what they hold, by the file that README.md writes.
const OF_README: [(&str, &[&str]); 4] = [
    ("prod.yaml", ON_AWS),
    ("vpc.yaml", ON_AWS),
    ("topology.yaml", TOPOLOGY_ON_AWS),
    ("extension.yaml", TOPOLOGY_ON_AWS),
];

/// The other flavors and what they hold.
const IN_MEMORY: [(&str, &[&str]); 2] = [
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

fn readme() -> Result<String> {
    Ok(fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"))?)
}

/// Runs README's assignments of variables and its commands that generate clusters, in a folder of their own, and answers the
/// files by name. Nothing else is set.
async fn generated_as_readme_says(rig: &Rig<'_>) -> Result<BTreeMap<String, Vec<Value>>> {
    let environment = &rig.scenario.environment;
    let folder = environment.run().path().join(format!("readme-{}", rig.scenario.namespace));
    let out = folder.join("out");
    fs::create_dir_all(&out)?;
    let clusterctl = environment.management().clusterctl();
    fs::copy(clusterctl.config(), out.join("clusterctl.yaml"))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let env = [
        ("PATH", format!("{}:{path}", environment.tools().folder().display())),
        ("KUBECONFIG", environment.management().api().kubeconfig().display().to_string()),
        ("CLUSTERCTL_DISABLE_VERSIONCHECK", "true".to_owned()),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value));
    let session = Session::new(&folder, &folder, env.into());
    for block in readme::blocks(&readme()?)? {
        for command in block.commands()? {
            let assigns = command.starts_with("export ") && !command.contains("$(");
            if assigns || command.starts_with("clusterctl generate cluster ") {
                // clusterctl discovers kinds that were just installed.
                eventually(&command, async || {
                    let ran = session.run(&command, Duration::from_mins(2)).await?;
                    Ok(Look::when(ran.failure.is_none(), ran.output))
                })
                .await?;
            }
        }
    }
    let mut files = BTreeMap::new();
    for (name, _) in OF_README {
        let text =
            fs::read_to_string(out.join(name)).with_context(|| format!("README.md writes no {name}"))?;
        files.insert(name.to_owned(), serde_saphyr::from_multiple(&text)?);
    }
    Ok(files)
}

async fn accepted(rig: &Rig<'_>, flavor: &str, kinds: &[&str], objects: &[Value]) -> Result<()> {
    let found: BTreeSet<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    ensure!(found == kinds.iter().copied().collect(), "{flavor}: {found:?}");
    for object in objects {
        take(rig, flavor, object).await?;
    }
    Ok(())
}

// Rules: J7, K16
#[tokio::test]
async fn the_api_server_accepts_what_every_flavor_generates() -> Result<()> {
    rule("k16-flavors", Setup::bare().without_manager(), async |rig| {
        let environment = &rig.scenario.environment;
        let management = environment.management();
        // Clusters and pools in memory are judged by a webhook of their provider.
        management.start_in_memory().await?;
        stand_in::install_aws_provider(environment.tools(), management.api()).await?;
        let files = generated_as_readme_says(rig).await?;
        for (file, kinds) in OF_README {
            accepted(rig, file, kinds, &files[file]).await?;
        }
        for (flavor, kinds) in IN_MEMORY {
            // Discovery takes a moment to tell of them.
            let objects = eventually(&format!("{flavor} is generated"), async || {
                rig.generate(flavor, environment.tools().kubernetes_version(), 3).await.map(Look::Done)
            })
            .await?;
            // A class comes along with its cluster, into the same namespace.
            let namespace = &rig.scenario.namespace;
            let elsewhere =
                objects.iter().find(|object| object["metadata"]["namespace"] != namespace.as_str());
            ensure!(elsewhere.is_none(), "{flavor}: {elsewhere:?}");
            accepted(rig, flavor, kinds, &objects).await?;
        }
        Ok(())
    })
    .await
}

/// The add-on set selects the clusters, and CAPA opens the ports of its network plugin; the nodes are in the VPC that is given.
// Rules: K16
#[tokio::test]
async fn flavors_for_aws_fit_the_add_on_set() -> Result<()> {
    rule("k16-add-ons", Setup::bare().without_manager(), async |rig| {
        let environment = &rig.scenario.environment;
        stand_in::install_aws_provider(environment.tools(), environment.management().api()).await?;
        let set = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/addons/addons-aws.yaml");
        let set: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(set)?)?;
        let files = generated_as_readme_says(rig).await?;
        for (file, objects) in &files {
            let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
            let labels = &of_kind("Cluster").context("no Cluster")?["metadata"]["labels"];
            for proxy in &set {
                let selected =
                    proxy["spec"]["clusterSelector"]["matchLabels"].as_object().context("no labels")?;
                ensure!(selected.iter().all(|(name, value)| labels[name] == *value), "{file}: {labels}");
            }
            let network = of_kind("AWSCluster").map(|object| &object["spec"]["network"]);
            let network = network
                .or(of_kind("AWSClusterTemplate").map(|one| &one["spec"]["template"]["spec"]["network"]));
            let network = network.context("no network")?;
            let rules = network["cni"]["cniIngressRules"].as_array().context("no rules")?;
            let ports =
                |rule: &Value| format!("{} {}-{}", text(&rule["protocol"]), rule["fromPort"], rule["toPort"]);
            let ports: BTreeSet<String> = rules.iter().map(ports).collect();
            let expected = ["icmp 8-0", "tcp 4240-4240", "udp 8472-8472"].map(str::to_owned);
            ensure!(ports == expected.into(), "{file}: {ports:?}");
            let machine = &of_kind("AWSMachineTemplate").context("no machine")?["spec"]["template"]["spec"];
            ensure!(machine["instanceMetadataOptions"]["httpPutResponseHopLimit"] == 2, "{file}: {machine}");
        }
        let vpc = &files["vpc.yaml"];
        let spec =
            |kind: &str| vpc.iter().find(|object| object["kind"] == kind).map(|object| &object["spec"]);
        let network = &spec("AWSCluster").context("no AWSCluster")?["network"];
        ensure!(network["vpc"]["id"].is_string() && network["subnets"][1]["id"].is_string(), "{network}");
        let pool = spec("ASGMachinePool").context("no pool")?;
        ensure!(pool["subnets"][0]["tags"]["tier"] == "private", "{pool}");
        Ok(())
    })
    .await
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
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
        for (flavor, required) in [
            ("", "AWS_NODE_AMI_ID, AWS_REGION"),
            ("vpc", "AWS_NODE_AMI_ID, AWS_NODE_SUBNETS, AWS_REGION, AWS_VPC_ID, AWS_VPC_SUBNETS"),
            ("topology", "AWS_NODE_IMAGE_PARAMETER, AWS_REGION"),
        ] {
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
        let readme = readme()?;
        let blocks = readme.split("\n```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
        let mut accepted = 0;
        for block in blocks.filter(|block| block.contains("ASGMachinePool")) {
            for object in serde_saphyr::from_multiple::<Value>(block)? {
                take(rig, "README.md", &object).await?;
                accepted += 1;
            }
        }
        ensure!(
            accepted == 3,
            "README.md has a pool, its KubeadmConfig and its MachinePool, not {accepted} objects"
        );
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
