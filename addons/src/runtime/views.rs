//! What matters of an object for the queue: whom its changes wake.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::{
    capi::{self, ContractReference, pause_state},
    conditions::{DRIFTED, is_true},
    names::addons::Phase,
};
use kube::{
    ResourceExt as _,
    core::{DynamicObject, Selector, SelectorExt as _},
};

use crate::{
    HelmChartProxy, HelmReleaseProxy,
    controller::ObjectKey,
    decide::{LocalReference, archive_reference, asks_for, dependencies, is_changing, is_ready, values_from},
    helm::ReleaseState,
    names,
};

/// A kind that Clusters refer to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub group: String,
    pub kind: String,
}

/// What is watched while another object refers to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Referenced {
    /// The objects of a kind.
    Kind(Kind),
    /// A `ConfigMap` or a Secret: the archive of a chart, or values.
    Object { namespace: String, reference: LocalReference },
}

/// A `HelmChartProxy`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChartView {
    generation: Option<i64>,
    is_deleting: bool,
    is_paused: bool,
    selector: Option<Selector>,
    /// The `HelmChartProxies` that this one waits for.
    pub depends_on: BTreeSet<String>,
    /// Whether others wait for this one on new Clusters.
    pub is_first: bool,
    /// The archive of the chart.
    pub archive: Option<LocalReference>,
    /// Annotations that it depends on: they do not change the generation.
    annotations: [Option<String>; 8],
}

/// A `HelmReleaseProxy`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReleaseView {
    /// What its own reconcile depends on.
    pub own: OwnView,
    /// The ID of its release, and whether it was installed, which its own reconcile records.
    records: (Option<String>, bool),
    /// Its Cluster.
    pub cluster: ObjectKey,
    /// Its `HelmChartProxy`.
    pub chart: Option<ObjectKey>,
    /// Namespace and name of the release, if it has a name.
    pub release: Option<(String, String)>,
    /// The `ConfigMaps` and Secrets with values.
    pub values_from: BTreeSet<LocalReference>,
    /// Whether it is ready for its current spec.
    pub is_ready: bool,
    /// Whether it takes one of the places for Clusters that change at the same time.
    pub is_changing: bool,
    /// What the Runtime Extension requests: its `HelmChartProxy` changes the spec.
    next_kubernetes_version: Option<String>,
    /// The state of its release, as Helm names it.
    pub state: Option<ReleaseState>,
    /// Whether another actor changed its resources.
    pub is_drifted: bool,
}

/// What the reconcile of a `HelmReleaseProxy` depends on, without the annotations that it writes itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OwnView {
    generation: Option<i64>,
    is_deleting: bool,
    is_paused: bool,
    /// Annotations that it depends on: they do not change the generation.
    annotations: [Option<String>; 4],
}

/// A Cluster.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClusterView {
    /// Templates refer to the whole object.
    version: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// What releases depend on.
    pub state: ClusterState,
    /// The control plane and the infrastructure object.
    pub references: Vec<ContractReference>,
}

/// What releases depend on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClusterState {
    is_paused: bool,
    is_initialized: bool,
    is_deleting: bool,
}

impl ChartView {
    pub(super) fn of(object: &DynamicObject) -> Option<Self> {
        let proxy: HelmChartProxy = parsed(object)?;
        Some(Self {
            generation: proxy.metadata.generation,
            is_deleting: proxy.metadata.deletion_timestamp.is_some(),
            is_paused: pause_state(None, proxy.annotations()).is_paused(),
            depends_on: dependencies(&proxy),
            is_first: asks_for(&proxy, Phase::AfterControlPlaneInitialized),
            archive: archive_reference(proxy.annotations()).and_then(Result::ok),
            annotations: [
                names::VERSIONS,
                names::MAX_CHANGING,
                names::PHASES,
                names::DELETION_POLICY,
                names::CHART_ARCHIVE,
                names::DRIFT,
                names::DRIFT_IGNORED,
                names::VALUES_FROM,
            ]
            .map(|name| proxy.annotations().get(name).cloned()),
            selector: Selector::try_from(proxy.spec.cluster_selector).ok(),
        })
    }

    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }
}

impl ReleaseView {
    pub(super) fn of(object: &DynamicObject) -> Option<Self> {
        let proxy: HelmReleaseProxy = parsed(object)?;
        let namespace = proxy.namespace().unwrap_or_default();
        let annotation = |name: &str| proxy.annotations().get(name).cloned();
        let name = Some(&proxy.spec.release_name).filter(|name| !name.is_empty());
        Some(Self {
            own: OwnView {
                generation: proxy.metadata.generation,
                is_deleting: proxy.metadata.deletion_timestamp.is_some(),
                is_paused: pause_state(None, proxy.annotations()).is_paused(),
                annotations: [names::CHART_ARCHIVE, names::DRIFT, names::DRIFT_IGNORED, names::VALUES_FROM]
                    .map(annotation),
            },
            records: (annotation(names::RELEASE_ID), proxy.is_installed()),
            cluster: ObjectKey::new(&namespace, &proxy.spec.cluster_ref.name),
            chart: proxy.labels().get(names::CHART_PROXY_LABEL).map(|name| ObjectKey::new(&namespace, name)),
            release: name.map(|name| (proxy.spec.release_namespace.clone(), name.clone())),
            values_from: values_from(proxy.annotations())
                .map(|sources| sources.into_iter().map(|source| source.object).collect())
                .unwrap_or_default(),
            is_ready: is_ready(&proxy),
            is_changing: is_changing(&proxy),
            is_drifted: proxy.status.as_ref().is_some_and(|it| is_true(&it.conditions, DRIFTED)),
            state: proxy.status.as_ref().and_then(|it| it.status.as_deref()).and_then(ReleaseState::parse),
            next_kubernetes_version: proxy.status.and_then(|status| status.next_kubernetes_version),
        })
    }
}

impl ClusterView {
    pub(super) fn of(object: &DynamicObject) -> Option<Self> {
        let cluster: capi::Cluster = parsed(object)?;
        let references = ["controlPlaneRef", "infrastructureRef"].into_iter().filter_map(|field| {
            let reference = object.data.get("spec")?.get(field)?.clone();
            serde_json::from_value(reference).ok().filter(ContractReference::is_set)
        });
        Some(Self {
            version: object.metadata.resource_version.clone(),
            labels: object.labels().clone(),
            state: ClusterState {
                is_paused: pause_state(Some(&cluster), object.annotations()).is_paused(),
                is_initialized: cluster.is_control_plane_initialized(),
                is_deleting: cluster.is_deleting(),
            },
            references: references.collect(),
        })
    }
}

impl Kind {
    pub(super) fn of(reference: &ContractReference) -> Self {
        Self { group: reference.api_group.clone(), kind: reference.kind.clone() }
    }
}

/// An object that cannot be parsed is left out: its definition rejects it, or another program has changed the definition.
fn parsed<K: serde::de::DeserializeOwned>(object: &DynamicObject) -> Option<K> {
    let value = serde_json::to_value(object).ok()?;
    let parsed = serde_json::from_value(value);
    if parsed.is_err() {
        tracing::warn!(
            object = object.name_any(),
            namespace = object.namespace(),
            "an object cannot be parsed and is not reconciled"
        );
    }
    parsed.ok()
}
