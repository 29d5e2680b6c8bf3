//! What a `HelmChartProxy` would do to the `HelmReleaseProxies` of each Cluster: now, and once it is the Cluster's turn.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::{
    conditions::{Finding, Status},
    names::listed,
};

use crate::{
    HelmChartProxy, HelmReleaseProxy,
    decide::{Chart, Deletion, Selected, Step, fan_out},
};

/// What would happen on one Cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The Cluster.
    pub cluster: String,
    /// The object that it has.
    pub known: Option<HelmReleaseProxy>,
    /// What happens to the object; none if nothing does.
    pub step: Option<Step>,
    /// The object that follows one that is deleted.
    pub successor: Option<HelmReleaseProxy>,
    /// Why nothing happens, or not at once.
    pub note: Option<String>,
}

/// What would happen on all Clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In the order of the names of Clusters.
    pub clusters: Vec<Planned>,
}

/// Plans by the decision of the controller: for all Clusters at once, which says what happens now, and for each one alone,
/// which says what happens once other Clusters and dependencies allow it.
#[must_use]
pub fn plan(
    proxy: &HelmChartProxy,
    chart: &Chart,
    selected: &[Selected],
    releases: &[HelmReleaseProxy],
) -> Plan {
    let is_deleting = proxy.metadata.deletion_timestamp.is_some();
    let selected: &[Selected] = if is_deleting { &[] } else { selected };
    let next = fan_out(proxy, chart, selected, releases);
    let is_next = |step: &Step| next.steps.iter().any(|other| other.object() == step.object());
    let mut of_cluster: BTreeMap<&str, Vec<HelmReleaseProxy>> = BTreeMap::new();
    for release in releases {
        of_cluster.entry(&release.spec.cluster_ref.name).or_default().push(release.clone());
    }
    let names: BTreeSet<&str> =
        selected.iter().map(|cluster| cluster.name.as_str()).chain(of_cluster.keys().copied()).collect();
    let mut clusters = Vec::new();
    for name in names {
        let own = of_cluster.remove(name).unwrap_or_default();
        let cluster = selected.iter().find(|cluster| cluster.name == name);
        let alone: Vec<Selected> = cluster
            .map(|cluster| Selected { waits_for: Vec::new(), ..cluster.clone() })
            .into_iter()
            .collect();
        let outcome = fan_out(proxy, chart, &alone, &own);
        if outcome.steps.is_empty() {
            let note = cluster.map_or_else(
                || Some("the Cluster is not selected; the release stays".to_owned()),
                |cluster| unchanged(cluster, outcome.condition),
            );
            let known = own.into_iter().next();
            clusters.push(Planned { cluster: name.to_owned(), known, step: None, successor: None, note });
            continue;
        }
        for step in outcome.steps {
            let known = own.iter().find(|release| release_name(release) == step.object()).cloned();
            let note = if is_next(&step) { None } else { Some(later(cluster)) };
            let successor = successor(proxy, chart, &alone, &step);
            clusters.push(Planned { cluster: name.to_owned(), known, step: Some(step), successor, note });
        }
    }
    Plan { clusters }
}

fn release_name(release: &HelmReleaseProxy) -> String {
    release.metadata.name.clone().unwrap_or_default()
}

/// Why nothing happens on a selected Cluster; none if everything is as requested.
fn unchanged(cluster: &Selected, condition: Finding) -> Option<String> {
    if cluster.is_deleting {
        return Some("the Cluster is being deleted".to_owned());
    }
    if cluster.is_paused {
        return Some("the Cluster is paused".to_owned());
    }
    let message = condition.message.into_owned();
    let own = message.strip_prefix(&format!("Cluster {}: ", cluster.name)).map(str::to_owned);
    (condition.status != Status::True).then(|| own.unwrap_or(message))
}

/// Why something does not happen at once: dependencies, or the limit on how many Clusters change at the same time.
fn later(cluster: Option<&Selected>) -> String {
    let waits_for: Vec<&str> =
        cluster.iter().flat_map(|cluster| &cluster.waits_for).map(String::as_str).collect();
    if waits_for.is_empty() {
        return "later: other Clusters change first".to_owned();
    }
    format!("later: once the releases of these HelmChartProxies are ready: {}", listed(&waits_for))
}

/// The object after one that is deleted since it is another release now.
fn successor(
    proxy: &HelmChartProxy,
    chart: &Chart,
    alone: &[Selected],
    step: &Step,
) -> Option<HelmReleaseProxy> {
    if !matches!(step, Step::Delete { why: Deletion::Reinstall, .. }) {
        return None;
    }
    fan_out(proxy, chart, alone, &[]).steps.into_iter().find_map(|step| match step {
        Step::Create(release) => Some(*release),
        _ => None,
    })
}
