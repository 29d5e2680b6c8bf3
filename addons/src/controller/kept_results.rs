//! First results of functions such as `randAlphaNum`, in a Secret for each Cluster of a `HelmChartProxy`. The Secret has the
//! `HelmChartProxy` as its owner, so that it is moved and deleted with it.

use std::collections::BTreeMap;

use capasg_api::names::{hash, labels};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Resource as _, ResourceExt as _,
    api::{ListParams, PostParams},
};

use super::{Context, ReconcileError};
use crate::{HelmChartProxy, names, values::Kept};

/// The key in a Secret.
const KEY: &str = "results.json";
/// The longest readable part of a name.
const READABLE: usize = 200;

/// The Secrets of a `HelmChartProxy`, by Cluster.
pub(super) async fn read(
    context: &Context,
    proxy: &HelmChartProxy,
) -> Result<BTreeMap<String, Secret>, ReconcileError> {
    let selector = format!("{}={}", names::CHART_PROXY_LABEL, proxy.name_any());
    let listed = api(context, proxy).list(&ListParams::default().labels(&selector)).await;
    let listed =
        listed.map_err(|source| ReconcileError::Read { what: "Secrets of the HelmChartProxy", source })?;
    let of_cluster = |secret: Secret| {
        let cluster = secret.labels().get(labels::CLUSTER_NAME)?.clone();
        Some((cluster, secret))
    };
    Ok(listed.items.into_iter().filter_map(of_cluster).collect())
}

/// The results in a Secret; none if they cannot be read.
pub(super) fn results(secret: Option<&Secret>) -> Kept {
    let data = secret.and_then(|secret| secret.data.as_ref()?.get(KEY));
    data.and_then(|data| serde_json::from_slice(&data.0).ok()).unwrap_or_default()
}

/// Writes results before values that contain them. Without results, there is no Secret.
pub(super) async fn write(
    context: &Context,
    proxy: &HelmChartProxy,
    cluster: &str,
    known: Option<&Secret>,
    kept: &Kept,
) -> Result<(), ReconcileError> {
    if *kept == results(known) {
        return Ok(());
    }
    let data = serde_json::to_vec(kept).unwrap_or_default();
    let mut secret = known.cloned().unwrap_or_else(|| new(proxy, cluster));
    secret.data = Some([(KEY.to_owned(), ByteString(data))].into());
    let (api, parameters) = (api(context, proxy), PostParams::default());
    let written = match known {
        Some(known) => api.replace(&known.name_any(), &parameters, &secret).await,
        None => api.create(&parameters, &secret).await,
    };
    written
        .map(drop)
        .map_err(|source| ReconcileError::Write { what: "a Secret with results of functions", source })
}

fn new(proxy: &HelmChartProxy, cluster: &str) -> Secret {
    let readable: String = proxy.name_any().chars().take(READABLE).collect();
    let of = hash(&format!("{}\0{cluster}", proxy.name_any()));
    let mut secret = Secret::default();
    secret.metadata.name = Some(format!("{}-results-{of}", readable.trim_end_matches(['-', '.'])));
    secret.metadata.namespace = proxy.namespace();
    secret.metadata.owner_references = proxy.controller_owner_ref(&()).map(|owner| vec![owner]);
    let labels = [(labels::CLUSTER_NAME, cluster.to_owned()), (names::CHART_PROXY_LABEL, proxy.name_any())];
    secret.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value)).into());
    secret
}

fn api(context: &Context, proxy: &HelmChartProxy) -> Api<Secret> {
    Api::namespaced(context.client.clone(), &proxy.namespace().unwrap_or_default())
}
