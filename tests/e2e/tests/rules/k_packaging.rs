//! K: what clusterctl makes of our release.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Rig, Setup, rule};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::Value;

const LABEL: &str = "cluster.x-k8s.io/provider";
const PROVIDER: &str = "infrastructure-asg";

fn setup() -> Setup {
    Setup::bare().without_manager()
}

fn release(rig: &Rig<'_>) -> Result<PathBuf> {
    rig.scenario.environment.settings().release.clone().context("no release")
}

fn version(rig: &Rig<'_>) -> Result<String> {
    let release = release(rig)?;
    Ok(release.file_name().context("a release without version")?.to_string_lossy().into_owned())
}

/// The objects of a document.
fn objects(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    Ok(documents.into_iter().filter(Value::is_object).collect())
}

/// What `clusterctl generate provider` answers for ours.
async fn generated(rig: &Rig<'_>, more: &[&str]) -> Result<String> {
    let provider = format!("asg:{}", version(rig)?);
    let mut args = vec!["generate", "provider", "--infrastructure", &provider];
    args.extend(more);
    rig.scenario.environment.management().clusterctl().runner().run(args).await
}

fn is_cluster_scoped(kind: &str) -> bool {
    ["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"].contains(&kind)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn k1_k2_the_repository_is_as_clusterctl_wants_it() -> Result<()> {
    rule("k1-repository", setup(), async |rig| {
        let folder = release(rig)?;
        ensure!(folder.parent().and_then(|parent| parent.file_name()).is_some_and(|name| name == PROVIDER));
        for file in ["infrastructure-components.yaml", "metadata.yaml", "cluster-template.yaml"] {
            ensure!(folder.join(file).is_file(), "{file} is missing");
        }
        // `clusterctl init` read it in this run; it is in clusterctl's own inventory.
        let version = version(rig)?;
        let inventory = rig
            .scenario
            .environment
            .management()
            .api()
            .kubectl()
            .run(["get", "providers.clusterctl.cluster.x-k8s.io", "--all-namespaces", "--output=wide"])
            .await?;
        ensure!(
            inventory.lines().any(|line| line.contains(PROVIDER) && line.contains(&version)),
            "{inventory}"
        );

        let metadata = &objects(&std::fs::read_to_string(folder.join("metadata.yaml"))?)?[0];
        ensure!(
            metadata["apiVersion"] == "clusterctl.cluster.x-k8s.io/v1alpha3"
                && metadata["kind"] == "Metadata"
        );
        let mut parts = version.trim_start_matches('v').split('.').map(str::parse::<u64>);
        let (major, minor) = (parts.next().context("no major")??, parts.next().context("no minor")??);
        let series = metadata["releaseSeries"].as_array().context("no series")?;
        let ours = series
            .iter()
            .find(|one| one["major"] == major && one["minor"] == minor)
            .with_context(|| format!("no series for {version}"))?;
        let contract = ours["contract"].as_str().context("no contract")?;
        for object in objects(&generated(rig, &[]).await?)? {
            if object["kind"] == "CustomResourceDefinition" {
                let labels = &object["metadata"]["labels"];
                ensure!(labels[format!("cluster.x-k8s.io/{contract}")].is_string(), "{labels}");
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k4_everything_is_in_one_namespace_of_ones_choice() -> Result<()> {
    rule("k4-namespace", setup(), async |rig| {
        for (args, wanted) in
            [(vec![], "capasg-system"), (vec!["--target-namespace", "elsewhere"], "elsewhere")]
        {
            let objects = objects(&generated(rig, &args).await?)?;
            let namespaces: Vec<_> = objects.iter().filter(|one| one["kind"] == "Namespace").collect();
            ensure!(namespaces.len() == 1 && text(namespaces[0], "/metadata/name") == wanted);
            for object in objects.iter().filter(|one| !is_cluster_scoped(text(one, "/kind"))) {
                ensure!(text(object, "/metadata/namespace") == wanted, "{object}");
            }
            // K7: nothing else names a namespace, but what clusterctl rewrites.
            for object in &objects {
                for subject in object["subjects"].as_array().into_iter().flatten() {
                    ensure!(text(subject, "/namespace") == wanted, "{object}");
                }
            }
            if wanted == "elsewhere" {
                for object in objects.iter().filter(|one| one["kind"] == "Deployment") {
                    ensure!(!object.to_string().contains("capasg-system"), "{object}");
                }
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k5_the_deployment_runs_a_container_named_manager() -> Result<()> {
    rule("k5-manager", setup(), async |rig| {
        let objects = objects(&generated(rig, &[]).await?)?;
        let mut deployments = objects.iter().filter(|one| one["kind"] == "Deployment");
        let deployment: Deployment =
            serde_json::from_value(deployments.next().context("no Deployment")?.clone())?;
        ensure!(deployments.next().is_none());
        let pod = deployment.spec.and_then(|spec| spec.template.spec).context("no pod")?;
        ensure!(pod.containers.len() == 1 && pod.containers[0].name == "manager");
        let container = &pod.containers[0];
        ensure!(container.readiness_probe.is_some() && container.liveness_probe.is_some());
        ensure!(container.resources.as_ref().is_some_and(|resources| resources.requests.is_some()));
        let security = container.security_context.as_ref().context("no security context")?;
        ensure!(
            security.allow_privilege_escalation == Some(false)
                && security.read_only_root_filesystem == Some(true)
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k8_no_variable_is_left_over() -> Result<()> {
    rule("k8-variables", setup(), async |rig| {
        let components = generated(rig, &[]).await?;
        ensure!(!components.contains("${") && !components.contains("$$"));
        let described = generated(rig, &["--describe"]).await?;
        ensure!(described.contains("Variables"), "{described}");
        // Every variable has a default, or init would have failed: none is set in this environment.
        let raw = std::fs::read_to_string(release(rig)?.join("infrastructure-components.yaml"))?;
        let named: BTreeSet<&str> = raw
            .split("${")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_uppercase() && c != '_').next())
            .collect();
        ensure!(!named.is_empty());
        for name in named {
            ensure!(name.starts_with("CAPASG_") || name.starts_with("AWS_"), "{name}");
            ensure!(described.contains(name), "{name} is not told of:\n{described}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k10_k12_labels_and_names_are_there_before_clusterctl() -> Result<()> {
    rule("k10-labels", setup(), async |rig| {
        let raw = std::fs::read_to_string(release(rig)?.join("infrastructure-components.yaml"))?;
        // An empty annotation line stands where a variable does.
        for object in objects(&raw.replace("${AWS_ROLE_ARN/#arn/eks.amazonaws.com/role-arn: arn}", ""))? {
            let kind = text(&object, "/kind").to_owned();
            let name = text(&object, "/metadata/name").to_owned();
            ensure!(object["metadata"]["labels"][LABEL] == PROVIDER, "{kind} {name}");
            if is_cluster_scoped(&kind) && !["Namespace", "CustomResourceDefinition"].contains(&kind.as_str())
            {
                ensure!(name.starts_with("capasg-system-"), "clusterctl would not delete {kind} {name}");
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn k13_images_can_be_taken_from_elsewhere() -> Result<()> {
    rule("k13-images", setup(), async |rig| {
        let environment = &rig.scenario.environment;
        let image = async |text: String| -> Result<String> {
            let deployment = objects(&text)?.into_iter().find(|one| one["kind"] == "Deployment");
            Ok(text_of_image(&deployment.context("no Deployment")?))
        };
        let shipped = image(generated(rig, &[]).await?).await?;
        let (name, tag) = shipped.rsplit_once(':').context("no tag")?;
        ensure!(
            tag == version(rig)? && name.split('/').next().is_some_and(|host| host.contains('.')),
            "{shipped}"
        );

        let clusterctl = environment.management().clusterctl();
        let mut config = std::fs::read_to_string(clusterctl.config())?;
        config.push_str(
            "\nimages:\n  infrastructure-asg:\n    repository: mirror.example/copies\n    tag: v9.9.9\n",
        );
        let own = environment.run().path().join("k13-clusterctl.yaml");
        std::fs::write(&own, config)?;
        let provider = format!("asg:{}", version(rig)?);
        let output = capasg_environment::Runner::new(clusterctl.runner().program())
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .with("--config")
            .with(&own)
            .run(["generate", "provider", "--infrastructure", &provider])
            .await?;
        let moved = image(output).await?;
        ensure!(moved.starts_with("mirror.example/copies/") && moved.ends_with(":v9.9.9"), "{moved}");
        Ok(())
    })
    .await
}

fn text_of_image(deployment: &Value) -> String {
    text(deployment, "/spec/template/spec/containers/0/image").to_owned()
}
