//! Which objects the event of a watch wakes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::api::core::v1::Secret;
use kube::{
    ResourceExt as _,
    core::{DynamicObject, PartialObjectMeta},
    runtime::watcher::Event,
};

use super::{
    Item,
    known::{Change, Known},
    views::{ChartView, ClusterView, Kind, Referenced, ReleaseView},
};
use crate::{controller::ObjectKey, decide::LocalReference, helm::ReleaseState};

/// How long an object waits after a change of one that it refers to: changes come in groups. One reconcile of a
/// `HelmChartProxy` renders the values of all Clusters.
const SETTLE: Duration = Duration::from_secs(1);
/// The end of the name of a Secret with a kubeconfig.
const KUBECONFIG: &str = "-kubeconfig";

/// An event of a watch.
#[derive(Debug)]
pub(super) enum Seen {
    Chart(Event<DynamicObject>),
    Release(Event<DynamicObject>),
    Cluster(Event<DynamicObject>),
    Secret(Event<PartialObjectMeta<Secret>>),
    /// An object that is watched while another one refers to it.
    Referenced(Referenced, Event<PartialObjectMeta<DynamicObject>>),
}

/// An object to reconcile, and after which delay.
pub(super) type Wake = (Item, Duration);

/// How many releases there are by their state, as Helm names it, or `none`, and by whether they are ready.
pub type ReleaseCounts = BTreeMap<(&'static str, bool), usize>;

/// What is known of all kinds.
#[derive(Debug, Default)]
pub(super) struct Index {
    charts: Known<ChartView>,
    releases: Known<ReleaseView>,
    clusters: Known<ClusterView>,
    /// The version of each Secret with a kubeconfig.
    kubeconfigs: Known<Option<String>>,
    /// The same of objects that others refer to.
    referenced: BTreeMap<Referenced, Known<Option<String>>>,
    /// Whether objects may refer to others than before.
    may_refer_to_others: bool,
}

impl Index {
    /// What an event wakes.
    pub(super) fn take(&mut self, seen: Seen) -> Vec<Wake> {
        match seen {
            Seen::Chart(event) => {
                let changes = self.charts.take(&event, ChartView::of);
                self.may_refer_to_others |= !changes.is_empty();
                changes.into_iter().map(|change| now(Item::Chart(change.key))).collect()
            }
            Seen::Release(event) => {
                let changes = self.releases.take(&event, ReleaseView::of);
                // Their statuses change often.
                self.may_refer_to_others |= changes.iter().any(|change| {
                    let sources = |view: Option<&ReleaseView>| view.map(|view| view.values_from.clone());
                    sources(change.old.as_ref()).unwrap_or_default()
                        != sources(change.new.as_ref()).unwrap_or_default()
                });
                changes.iter().flat_map(|change| self.of_release(change)).collect()
            }
            Seen::Cluster(event) => {
                let changes = self.clusters.take(&event, ClusterView::of);
                self.may_refer_to_others |= !changes.is_empty();
                changes.iter().flat_map(|change| self.of_cluster(change)).collect()
            }
            Seen::Secret(event) => {
                let view = |secret: &PartialObjectMeta<Secret>| {
                    secret.name_any().ends_with(KUBECONFIG).then(|| secret.resource_version())
                };
                let changes = self.kubeconfigs.take(&event, view);
                changes.iter().flat_map(|change| self.of_kubeconfig(&change.key)).collect()
            }
            Seen::Referenced(referenced, event) => {
                let known = self.referenced.entry(referenced.clone()).or_default();
                let changes = known.take(&event, |object| Some(object.resource_version()));
                changes.iter().flat_map(|change| self.of_referenced(&referenced, &change.key)).collect()
            }
        }
    }

    /// The Cluster of a release.
    pub(super) fn cluster_of(&self, release: &ObjectKey) -> Option<ObjectKey> {
        self.releases.get(release).map(|release| release.cluster.clone())
    }

    /// How many releases there are in each state, apart by whether they are ready.
    pub(super) fn releases(&self) -> ReleaseCounts {
        let mut counts = ReleaseCounts::new();
        for (_, release) in self.releases.iter() {
            let state = release.state.map_or("none", ReleaseState::as_str);
            *counts.entry((state, release.is_ready)).or_default() += 1;
        }
        counts
    }

    /// How many releases have resources that another actor changed.
    pub(super) fn drifted(&self) -> usize {
        self.releases.iter().filter(|(_, release)| release.is_drifted).count()
    }

    /// What objects refer to, if that may have changed since the last call.
    pub(super) fn changed_references(&mut self) -> Option<BTreeSet<Referenced>> {
        std::mem::take(&mut self.may_refer_to_others).then(|| self.references())
    }

    /// What objects refer to.
    fn references(&self) -> BTreeSet<Referenced> {
        let kinds = self.clusters.iter().flat_map(|(_, cluster)| &cluster.references);
        let archives = self.charts.iter().filter_map(|(key, chart)| {
            let reference = chart.archive.clone()?;
            Some(Referenced::Object { namespace: key.namespace.clone(), reference })
        });
        let values = self.releases.iter().flat_map(|(key, release)| {
            let of = |reference: &LocalReference| Referenced::Object {
                namespace: key.namespace.clone(),
                reference: reference.clone(),
            };
            release.values_from.iter().map(of)
        });
        kinds.map(Kind::of).map(Referenced::Kind).chain(archives).chain(values).collect()
    }

    /// Forgets objects that are no longer watched.
    pub(super) fn retain(&mut self, watched: &BTreeSet<Referenced>) {
        self.referenced.retain(|referenced, _| watched.contains(referenced));
    }

    /// The release itself; its `HelmChartProxy`, which reports it; and those of the same release, which it may belong to now.
    fn of_release(&self, change: &Change<ReleaseView>) -> Vec<Wake> {
        let charts = change.views().filter_map(|view| view.chart.clone());
        let charts = charts.flat_map(|chart| [self.depending(&chart), vec![chart]].concat());
        let mut woken: Vec<Wake> = charts.map(|chart| (Item::Chart(chart), SETTLE)).collect();
        woken.extend(change.views().filter(|view| self.is_first(view)).flat_map(|view| {
            let cluster = self.clusters.get(&view.cluster);
            cluster.into_iter().flat_map(|cluster| self.selecting(&view.cluster.namespace, cluster))
        }));
        let own = |view: Option<&ReleaseView>| {
            view.map(|view| (view.own.clone(), view.cluster.clone(), view.release.clone()))
        };
        if own(change.old.as_ref()) == own(change.new.as_ref()) {
            return woken;
        }
        woken.push(now(Item::Release(change.key.clone())));
        let is_same = |other: &ReleaseView| {
            let same = |view: &ReleaseView| {
                view.release.is_some() && view.release == other.release && view.cluster == other.cluster
            };
            change.views().any(same)
        };
        let siblings = self.releases.iter().filter(|(key, other)| **key != change.key && is_same(other));
        woken.extend(siblings.map(|(key, _)| now(Item::Release(key.clone()))));
        woken
    }

    fn of_cluster(&self, change: &Change<ClusterView>) -> Vec<Wake> {
        let mut woken: Vec<Wake> =
            change.views().flat_map(|view| self.selecting(&change.key.namespace, view)).collect();
        let state = |view: Option<&ClusterView>| view.map(|view| view.state.clone());
        if state(change.old.as_ref()) != state(change.new.as_ref()) {
            woken.extend(self.on_cluster(&change.key));
        }
        woken
    }

    fn of_kubeconfig(&self, secret: &ObjectKey) -> Vec<Wake> {
        let cluster = secret.name.strip_suffix(KUBECONFIG).unwrap_or_default();
        self.on_cluster(&ObjectKey::new(&secret.namespace, cluster)).collect()
    }

    fn of_referenced(&self, referenced: &Referenced, object: &ObjectKey) -> Vec<Wake> {
        let kind = match referenced {
            Referenced::Kind(kind) => kind,
            Referenced::Object { namespace, reference } => {
                let charts = self.charts.iter().filter(|(key, chart)| {
                    key.namespace == *namespace && chart.archive.as_ref() == Some(reference)
                });
                let releases = self.releases.iter().filter(|(key, release)| {
                    key.namespace == *namespace && release.values_from.contains(reference)
                });
                let charts = charts.map(|(key, _)| (Item::Chart(key.clone()), SETTLE));
                return charts.chain(releases.map(|(key, _)| (Item::Release(key.clone()), SETTLE))).collect();
            }
        };
        let refers = |cluster: &ClusterView| {
            cluster.references.iter().any(|one| one.name == object.name && Kind::of(one) == *kind)
        };
        let clusters = self.clusters.iter().filter(|(key, _)| key.namespace == object.namespace);
        let clusters = clusters.filter(|(_, cluster)| refers(cluster));
        clusters.flat_map(|(key, cluster)| self.selecting(&key.namespace, cluster)).collect()
    }

    /// The `HelmChartProxies` that select a Cluster.
    fn selecting(&self, namespace: &str, cluster: &ClusterView) -> impl Iterator<Item = Wake> {
        let charts = self.charts.iter().filter(move |(key, _)| key.namespace == namespace);
        charts
            .filter(move |(_, chart)| chart.selects(&cluster.labels))
            .map(|(key, _)| (Item::Chart(key.clone()), SETTLE))
    }

    /// The `HelmChartProxies` that depend on one.
    fn depending(&self, on: &ObjectKey) -> Vec<ObjectKey> {
        let charts = self.charts.iter().filter(|(key, _)| key.namespace == on.namespace);
        charts.filter(|(_, chart)| chart.depends_on.contains(&on.name)).map(|(key, _)| key.clone()).collect()
    }

    /// Whether others wait for a release on its Cluster if it is new.
    fn is_first(&self, release: &ReleaseView) -> bool {
        release.chart.as_ref().and_then(|chart| self.charts.get(chart)).is_some_and(|chart| chart.is_first)
    }

    /// The `HelmReleaseProxies` of a Cluster.
    fn on_cluster(&self, cluster: &ObjectKey) -> impl Iterator<Item = Wake> {
        let releases = self.releases.iter().filter(move |(_, release)| release.cluster == *cluster);
        releases.map(|(key, _)| now(Item::Release(key.clone())))
    }
}

fn now(item: Item) -> Wake {
    (item, Duration::ZERO)
}

#[cfg(test)]
mod tests;
