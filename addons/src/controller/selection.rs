//! The Clusters that a `HelmChartProxy` selects, with their values.

use std::collections::BTreeMap;

use capasg_api::{
    capi::{self, pause_state},
    names::annotations::{DELETION_PROTECTION, protects},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt as _,
    api::ListParams,
    core::{DynamicObject, Selector},
};
use serde_json::Value;

use super::{
    Context, ReconcileError, kept_results,
    template_data::{self, Objects},
};
use crate::{
    HelmChartProxy,
    decide::{Kubernetes, Selected, Values},
    values::{Kept, Rendered, Template, ValuesError},
};

/// What a template is rendered from.
struct Input {
    data: Value,
    kept: Kept,
}

/// The selected Clusters, and the first results of functions in their values.
pub(super) struct Selection {
    pub clusters: Vec<Selected>,
    secrets: BTreeMap<String, Secret>,
    kept: Vec<(String, Kept)>,
    /// Whether the program for values did not answer, so that it is run again soon.
    pub is_retried: bool,
}

impl Selection {
    /// Writes results before values that contain them.
    pub(super) async fn keep(&self, context: &Context, proxy: &HelmChartProxy) -> Result<(), ReconcileError> {
        for (cluster, kept) in &self.kept {
            kept_results::write(context, proxy, cluster, self.secrets.get(cluster), kept).await?;
        }
        Ok(())
    }
}

/// The selected Clusters; none if the selector is not valid. Nothing is written.
pub(super) async fn of(
    context: &Context,
    proxy: &HelmChartProxy,
) -> Result<Option<Selection>, ReconcileError> {
    let Ok(selector) = Selector::try_from(proxy.spec.cluster_selector.clone()) else { return Ok(None) };
    let namespace = proxy.namespace().unwrap_or_default();
    let api: Api<DynamicObject> =
        Api::namespaced_with(context.client.clone(), &namespace, &template_data::clusters());
    let listed = api.list(&ListParams::default().labels_from(&selector)).await;
    let listed = listed.map_err(|source| ReconcileError::Read { what: "Clusters", source })?.items;
    let secrets = kept_results::read(context, proxy).await?;
    let (mut clusters, mut inputs, mut objects) = (Vec::new(), Vec::new(), Objects::new(listed.len()));
    let mut unreadable = BTreeMap::new();
    for cluster in &listed {
        let data = match template_data::of(context, cluster, &mut objects).await {
            // An object that this Cluster alone refers to does not hold up others.
            Err(error) if error.is_forbidden() => {
                unreadable.insert(cluster.name_any(), error.to_string());
                None
            }
            read => read?,
        };
        let kept = kept_results::results(secrets.get(&cluster.name_any()));
        clusters.push(of_cluster(cluster, data.as_ref()));
        inputs.push(data.map(|data| Input { data, kept }));
    }
    let (rendered, is_retried) = match render(context, proxy, &inputs).await {
        Ok(rendered) => (rendered, false),
        // Releases of Clusters that are not selected any longer are uninstalled all the same.
        Err(error) => (inputs.iter().map(|_| Some(Err(error.to_string()))).collect(), true),
    };
    let mut kept = Vec::new();
    for (cluster, rendered) in clusters.iter_mut().zip(rendered) {
        cluster.values = match rendered {
            None => unreadable.remove(&cluster.name).map_or(Values::NotYet, Values::Failed),
            Some(Err(message)) => Values::Failed(message),
            Some(Ok(rendered)) => {
                kept.push((cluster.name.clone(), rendered.kept));
                Values::Rendered(rendered.text)
            }
        };
    }
    Ok(Some(Selection { clusters, secrets, kept, is_retried }))
}

fn of_cluster(cluster: &DynamicObject, data: Option<&Value>) -> Selected {
    let version =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let kubernetes = Kubernetes {
        actual: data.and_then(|data| version(data, "/ControlPlane/status/version")),
        requested: version(&cluster.data, "/spec/topology/version"),
    };
    let typed: Option<capi::Cluster> = serde_json::to_value(cluster).and_then(serde_json::from_value).ok();
    Selected {
        name: cluster.name_any(),
        labels: cluster.labels().clone(),
        is_protected: protects(cluster.annotations().get(DELETION_PROTECTION).map(String::as_str)),
        is_deleting: cluster.metadata.deletion_timestamp.is_some(),
        is_paused: pause_state(typed.as_ref(), cluster.annotations()).is_paused(),
        kubernetes,
        values: Values::NotYet,
        waits_for: Vec::new(),
    }
}

/// The values for each input, in one call.
async fn render<'a>(
    context: &Context,
    proxy: &'a HelmChartProxy,
    inputs: &'a [Option<Input>],
) -> Result<Vec<Option<Result<Rendered, String>>>, ValuesError> {
    let (name, template) = (&proxy.spec.chart_name, &proxy.spec.values_template);
    let of_input = |input: &'a Input| Template { name, template, data: &input.data, kept: &input.kept };
    let templates: Vec<Template<'_>> = inputs.iter().flatten().map(of_input).collect();
    let answers = context.values.render(&templates).await?;
    let mut answers = answers.into_iter();
    let answer = |input: &Option<Input>| {
        input.as_ref()?;
        Some(answers.next()?.map_err(|rejection| rejection.message))
    };
    Ok(inputs.iter().map(answer).collect())
}
