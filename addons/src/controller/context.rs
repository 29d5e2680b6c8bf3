//! What all reconciles share.

use std::{
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capasg_api::names::hash;
use capasg_cloud::WriteGuard;
use chrono::{DateTime, Utc};
use kube::Client;

use super::newest::Newest;
use crate::{
    decide::{
        Chart, LocalReference,
        release::{DriftMemory, Fresh, Memory},
    },
    helm::{ChartName, Helm, PlainHttp},
    values::Values,
};

/// The longest readable part of a generated name: with the hash it is within Helm's limit.
const READABLE: usize = 40;

/// An object by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// An object by namespace and name.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// What the operator allows beyond the defaults.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policy {
    /// Whether repositories without TLS are accepted.
    pub plain_http: PlainHttp,
    /// Whether credentials and certificate authorities may be in Secrets of other namespaces. A user who may
    /// create `HelmChartProxies` then uses any of these Secrets.
    pub foreign_secrets: bool,
}

/// Receives each operation on a release, for metrics.
pub trait OperationObserver: Send + Sync + 'static {
    /// An operation (`install`, `upgrade`, `uninstall`, `mark-failed`) ended with `outcome` (`ok`, or a bounded reason).
    fn operated(&self, operation: &'static str, outcome: &'static str, took: Duration);
}

/// Observes nothing.
impl OperationObserver for () {
    fn operated(&self, _: &'static str, _: &'static str, _: Duration) {}
}

/// What all reconciles share.
pub struct Context {
    parts: Parts,
    remembered: Mutex<HashMap<ObjectKey, Remembered>>,
    archives: Mutex<HashMap<ObjectKey, KnownArchive>>,
    /// The newest versions of charts.
    pub(super) newest: Newest,
}

/// What a [`Context`] consists of.
pub struct Parts {
    /// The management cluster.
    pub client: Client,
    /// Helm.
    pub helm: Helm,
    /// The program for values.
    pub values: Values,
    /// What the operator allows.
    pub policy: Policy,
    /// Whether this process leads: no operation on a release begins without it.
    pub guard: Arc<dyn WriteGuard>,
    /// Receives operations.
    pub observer: Arc<dyn OperationObserver>,
    /// The name of this replica, for events.
    pub identity: String,
}

impl Deref for Context {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

/// What is remembered of an object between reconciles; losing it costs time only.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    pub memory: Memory,
    pub unreachable_since: Option<DateTime<Utc>>,
    pub drift: DriftMemory,
    pub fresh: Fresh,
}

/// What is known of the archive of a `HelmChartProxy`.
#[derive(Debug, Clone)]
pub(super) struct KnownArchive {
    pub reference: LocalReference,
    /// The name that the chart is expected to have.
    pub name: ChartName,
    /// The resource version of the object.
    pub version: Option<String>,
    pub chart: Chart,
}

impl Context {
    /// A context without memories.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self { parts, remembered: Mutex::default(), archives: Mutex::default(), newest: Newest::default() }
    }

    /// What is remembered of an object whose chart is `chart`.
    pub(super) fn remembered(&self, key: &ObjectKey, chart: &str) -> Remembered {
        let mut all = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Remembered {
            memory: Memory::default(),
            unreachable_since: None,
            drift: DriftMemory::default(),
            fresh: Fresh { id: format!("{:016x}", rand::random::<u64>()), name: generated_name(key, chart) },
        };
        all.entry(key.clone()).or_insert_with(new).clone()
    }

    pub(super) fn remember(&self, key: &ObjectKey, remembered: Remembered) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), remembered);
    }

    /// What is known of the archive of a `HelmChartProxy`.
    pub(super) fn known_archive(&self, proxy: &ObjectKey) -> Option<KnownArchive> {
        self.archives.lock().unwrap_or_else(PoisonError::into_inner).get(proxy).cloned()
    }

    pub(super) fn know_archive(&self, proxy: ObjectKey, known: KnownArchive) {
        self.archives.lock().unwrap_or_else(PoisonError::into_inner).insert(proxy, known);
    }

    pub(super) fn forget_archive(&self, proxy: &ObjectKey) {
        self.archives.lock().unwrap_or_else(PoisonError::into_inner).remove(proxy);
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// A name for the release of an object: always the same.
fn generated_name(key: &ObjectKey, chart: &str) -> String {
    let readable = chart.to_ascii_lowercase().replace('_', "-");
    let mut name: String = readable.chars().take(READABLE).collect();
    name.truncate(name.trim_end_matches(['-', '.']).len());
    format!("{name}-{}", hash(&format!("{}\0{}", key.namespace, key.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helm::ReleaseName;

    #[test]
    fn generated_names_are_valid_and_stable() {
        let key = |name: &str| ObjectKey { namespace: "teams".to_owned(), name: name.to_owned() };
        for chart in ["cilium", "Cilium_Chart", "a.b", &"long-".repeat(50), "x".repeat(253).as_str()] {
            let name = generated_name(&key("a"), chart);
            ReleaseName::parse(&name).unwrap();
            assert_eq!(name, generated_name(&key("a"), chart));
            assert_ne!(name, generated_name(&key("b"), chart));
        }
    }
}
