//! `capasg addons diff`: what `HelmChartProxies` would change, with the decisions of the controllers. It only reads, with the
//! permissions of the user.

use std::{env, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use capasg_addons::{HelmChartProxy, controller::preview};
use capasg_cloud::AlwaysLeading;
use chrono::Utc;
use kube::{Api, Client, ResourceExt as _, api::ListParams};
use serde_json::Value;

use super::{check, context};
use crate::{cli::DiffArgs, input, kubernetes};

/// The beginning of the name of the folder: the controllers delete what a process that was killed leaves in theirs.
const FOLDER: &str = "helm-diff-";

/// Prints what would change for each `HelmChartProxy`.
///
/// # Errors
/// If a program or a file does not exist, or the API server rejects a read.
pub async fn diff(args: &DiffArgs) -> Result<()> {
    check(&args.charts)?;
    let config = kubernetes::config(args.kubeconfig.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config).context("cannot prepare the Kubernetes client")?;
    let proxies = if args.files.is_empty() {
        let api: Api<HelmChartProxy> = Api::namespaced(client.clone(), &namespace);
        let listed = api.list(&ListParams::default()).await;
        listed.with_context(|| format!("cannot list HelmChartProxies of namespace {namespace}"))?.items
    } else {
        from_files(args, &namespace)?
    };
    let root = args.work_dir.clone().unwrap_or_else(env::temp_dir);
    let folder = tempfile::Builder::new().prefix(FOLDER).tempdir_in(&root);
    let folder = folder.with_context(|| format!("--work-dir: cannot use {}", root.display()))?;
    let context = context(&args.charts, folder.path(), client, Arc::new(AlwaysLeading), Arc::new(()))?;
    if proxies.is_empty() {
        println!("there are no HelmChartProxies in namespace {namespace}");
    }
    for proxy in proxies {
        let shown = preview(&context, &proxy, args.manifests, Utc::now()).await;
        print!("{}", shown.with_context(|| format!("HelmChartProxy {}", proxy.name_any()))?);
    }
    Ok(())
}

/// The `HelmChartProxies` of the files, in a namespace unless they name their own.
fn from_files(args: &DiffArgs, namespace: &str) -> Result<Vec<HelmChartProxy>> {
    let mut proxies = Vec::new();
    for path in &args.files {
        proxies
            .extend(from_text(&input::text(path)?, namespace).with_context(|| path.display().to_string())?);
    }
    ensure!(!proxies.is_empty(), "the files contain no HelmChartProxy");
    Ok(proxies)
}

fn from_text(text: &str, namespace: &str) -> Result<Vec<HelmChartProxy>> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).context("it is not YAML")?;
    let lists = objects.into_iter().flat_map(|object| match object.get("items") {
        Some(Value::Array(items)) => items.clone(),
        _ => vec![object],
    });
    let proxies = lists.filter(|object| {
        object["kind"] == "HelmChartProxy"
            && object["apiVersion"].as_str().is_some_and(|it| it.starts_with("addons.cluster.x-k8s.io/"))
    });
    let parsed = proxies.map(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut proxy: HelmChartProxy =
            serde_json::from_value(object).with_context(|| format!("HelmChartProxy {name} is not valid"))?;
        ensure!(!name.is_empty(), "a HelmChartProxy has no name");
        proxy.metadata.namespace.get_or_insert_with(|| namespace.to_owned());
        Ok(proxy)
    });
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_proxies_are_found_among_other_objects() {
        let text = "\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- apiVersion: addons.cluster.x-k8s.io/v1alpha1
  kind: HelmChartProxy
  metadata: {name: cni, namespace: own}
  spec: {clusterSelector: {}, chartName: cilium, repoURL: 'https://charts.example'}
---
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: csi}
spec: {clusterSelector: {}, chartName: csi, repoURL: 'https://charts.example'}
";
        let found = from_text(text, "teams").unwrap();
        let names: Vec<_> =
            found.iter().map(|it| (it.name_any(), it.namespace().unwrap_or_default())).collect();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(names, [pair("cni", "own"), pair("csi", "teams")]);
        let invalid = text.replace("chartName: csi, ", "");
        let error = from_text(&invalid, "teams").unwrap_err().to_string();
        assert_eq!(error, "HelmChartProxy csi is not valid");
        assert!(from_text("a: [", "teams").is_err());
    }
}
