//! Which `HelmReleaseProxies` a `HelmChartProxy` creates, changes and deletes (X2, X4).

use std::collections::BTreeMap;

use capasg_api::{
    conditions::Finding,
    names::{
        addons::{Phase, Phases},
        listed,
    },
};
use kube::ResourceExt as _;

use super::{
    archive::Chart,
    deletion_policy::orphans,
    kubernetes::{Kubernetes, version_for},
    phases::phases,
    release_spec::{cluster_ref, is_another_release, new, updated},
    values_from::values_from,
    versions::{ChartVersion, chart_version},
    waves::Slots,
};
use crate::kinds::{
    ObjectReference,
    conditions::{SPECS_UP_TO_DATE, reasons},
};
use crate::{HelmChartProxy, HelmReleaseProxy};

/// A Cluster that the labels select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether it is protected from deletion: the Runtime Extension blocks it.
    pub is_protected: bool,
    /// Whether it is paused: `spec.paused`, or it is being moved.
    pub is_paused: bool,
    /// Its Kubernetes versions.
    pub kubernetes: Kubernetes,
    /// The values for it.
    pub values: Values,
    /// The `HelmChartProxies` that this one depends on and whose releases on it are not ready.
    pub waits_for: Vec<String>,
}

#[cfg(test)]
impl Selected {
    /// A Cluster for which these values are rendered, and nothing else is known.
    pub(crate) fn with_values(name: &str, values: &str) -> Self {
        Self {
            name: name.to_owned(),
            labels: BTreeMap::new(),
            is_deleting: false,
            is_protected: false,
            is_paused: false,
            kubernetes: Kubernetes::default(),
            values: Values::Rendered(values.to_owned()),
            waits_for: Vec::new(),
        }
    }
}

/// The values of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// Rendered from the template.
    Rendered(String),
    /// The template cannot be rendered: the reason, without values.
    Failed(String),
    /// An object that the template refers to does not exist yet.
    NotYet,
}

/// What is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Creates an object. One that exists with this name is the same.
    Create(Box<HelmReleaseProxy>),
    /// Replaces an object: its spec, or annotations, are others.
    Update(Box<HelmReleaseProxy>),
    /// Deletes an object, which uninstalls its release.
    Delete {
        /// Name of the object.
        name: String,
        /// Why.
        why: Deletion,
    },
}

impl Step {
    /// The name of the object.
    #[must_use]
    pub fn object(&self) -> String {
        match self {
            Self::Create(release) | Self::Update(release) => release.name_any(),
            Self::Delete { name, .. } => name.clone(),
        }
    }
}

/// Why an object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Its Cluster is not selected.
    NotSelected,
    /// The release is another one now; it is installed once the old one is uninstalled.
    Reinstall,
    /// The `HelmChartProxy` is being deleted.
    ProxyDeleted,
    /// The Cluster is being deleted, and the `HelmChartProxy` asks to be uninstalled before.
    BeforeClusterDelete,
}

/// What follows for a `HelmChartProxy`.
#[derive(Debug, Clone, PartialEq)]
pub struct FanOut {
    /// What is written, in any order.
    pub steps: Vec<Step>,
    /// `status.matchingClusters`.
    pub matching: Vec<ObjectReference>,
    /// The condition `HelmReleaseProxySpecsUpToDate`.
    pub condition: Finding,
    /// Whether the finalizer is removed: the object is being deleted, and has no `HelmReleaseProxy`.
    pub is_released: bool,
}

/// What happens to the releases on one Cluster.
enum Of {
    UpToDate,
    Waits,
    Depends,
    Queued,
    Changes(Vec<Step>),
    Reinstalls(Vec<Step>),
    /// What neither waits for other releases nor counts as a change.
    AtOnce(Vec<Step>),
    Fails(&'static str, String),
}

/// Decides for all Clusters. `chart` is where its chart is; `selected` are those of the namespace that the labels select;
/// `releases` those with the label of this `HelmChartProxy`.
#[must_use]
pub fn fan_out(
    proxy: &HelmChartProxy,
    chart: &Chart,
    selected: &[Selected],
    releases: &[HelmReleaseProxy],
) -> FanOut {
    let mut matching: Vec<_> = selected.iter().map(|cluster| cluster_ref(proxy, &cluster.name)).collect();
    matching.sort_by(|a, b| a.name.cmp(&b.name));
    if proxy.metadata.deletion_timestamp.is_some() {
        let steps = deletions(releases.iter(), Deletion::ProxyDeleted);
        let condition = updating(format!("{} HelmReleaseProxies are being deleted", releases.len()));
        return FanOut { steps, matching, condition, is_released: releases.is_empty() };
    }
    let mut of_cluster: BTreeMap<&str, Vec<&HelmReleaseProxy>> = BTreeMap::new();
    for release in releases {
        of_cluster.entry(&release.spec.cluster_ref.name).or_default().push(release);
    }
    for own in of_cluster.values_mut() {
        own.sort_by_key(|release| (release.creation_timestamp(), release.name_any()));
    }
    let (mut steps, mut reinstalls) = (Vec::new(), Vec::new());
    let (mut waiting, mut depending, mut queued, mut failed) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let open = selected.iter().filter(|cluster| !cluster.is_deleting && !cluster.is_paused);
    let open = open.map(|cluster| cluster.name.as_str()).collect();
    let mut slots = Slots::of(proxy, selected.len(), &open, releases);
    let is_selected = |name: &str| selected.iter().any(|cluster| cluster.name == name);
    if !proxy.spec.reconcile_strategy.is_install_once() {
        let orphans = of_cluster.iter().filter(|(cluster, _)| !is_selected(cluster));
        steps.extend(deletions(orphans.flat_map(|(_, own)| own.iter().copied()), Deletion::NotSelected));
    }
    let phases = orphans(proxy).and_then(|_| phases(proxy));
    let decided = selected.iter().map(|cluster| {
        let own = of_cluster.get(cluster.name.as_str()).map(Vec::as_slice).unwrap_or_default();
        let of = match &phases {
            Ok(phases) => of(proxy, chart, phases, cluster, own),
            Err(why) => Of::Fails("AnnotationNotValid", why.clone()),
        };
        (cluster, in_order(cluster, of))
    });
    let decided: Vec<_> = decided.collect();
    // A release that is installed again counts although it does not exist for a moment.
    for (cluster, of) in &decided {
        if let (Ok(slots), true) = (&mut slots, creates(of)) {
            slots.changing.insert(cluster.name.clone());
        }
    }
    for (cluster, of) in decided {
        match in_turn(&mut slots, cluster, of) {
            Of::UpToDate => {}
            Of::Queued => queued.push(cluster.name.as_str()),
            Of::Depends => depending.push(cluster),
            Of::Waits => waiting.push(cluster.name.as_str()),
            Of::Changes(own) | Of::AtOnce(own) => steps.extend(own),
            Of::Reinstalls(own) => {
                reinstalls.push(cluster.name.as_str());
                steps.extend(own);
            }
            Of::Fails(reason, why) => failed.push((cluster.name.as_str(), reason, why)),
        }
    }
    let condition = match slots {
        Ok(slots) if !queued.is_empty() && failed.is_empty() => in_waves(&slots, &queued),
        _ => condition(steps.len(), &reinstalls, &waiting, &depending, &failed),
    };
    FanOut { steps, matching, condition, is_released: false }
}

/// What is written waits for dependencies; a release that is already being deleted does not.
fn in_order(cluster: &Selected, of: Of) -> Of {
    match of {
        Of::Changes(steps) | Of::Reinstalls(steps) if !steps.is_empty() && !cluster.waits_for.is_empty() => {
            Of::Depends
        }
        of => of,
    }
}

/// A release that exists changes if few enough others do; one that a Cluster does not have yet is created in any case.
fn in_turn(slots: &mut Result<Slots, String>, cluster: &Selected, of: Of) -> Of {
    let changes = matches!(&of, Of::Changes(steps) | Of::Reinstalls(steps) if !steps.is_empty());
    if !changes || creates(&of) {
        return of;
    }
    match slots {
        Ok(slots) => {
            if slots.take(&cluster.name) {
                of
            } else {
                Of::Queued
            }
        }
        Err(why) => Of::Fails("AnnotationNotValid", why.clone()),
    }
}

fn creates(of: &Of) -> bool {
    matches!(of, Of::Changes(steps) if steps.iter().any(|step| matches!(step, Step::Create(_))))
}

fn in_waves(slots: &Slots, queued: &[&str]) -> Finding {
    let changing: Vec<&str> = slots.changing.iter().map(String::as_str).collect();
    updating(format!(
        "the release changes on {} Clusters at the same time, now {}, and then {}",
        slots.limit.unwrap_or_default(),
        listed(&changing),
        listed(queued)
    ))
}

fn of(
    proxy: &HelmChartProxy,
    chart: &Chart,
    phases: &Phases,
    cluster: &Selected,
    own: &[&HelmReleaseProxy],
) -> Of {
    if cluster.is_paused {
        return Of::UpToDate;
    }
    if cluster.is_deleting {
        // Others stay: without the network and the cloud controller, what these have in the cloud would remain there.
        return if phases.contain(Phase::BeforeClusterDelete) && !cluster.is_protected {
            Of::AtOnce(deletions(own.iter().copied(), Deletion::BeforeClusterDelete))
        } else {
            Of::UpToDate
        };
    }
    let known = match own {
        [] => None,
        [release] => Some(*release),
        several => {
            let names: Vec<String> = several.iter().map(|release| release.name_any()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            // To delete one of them would uninstall the release that the other one has as well.
            let why = format!("it has several HelmReleaseProxies, of which one can stay: {}", listed(&names));
            return Of::Fails(reasons::RELEASE_PROXY_CREATION_FAILED, why);
        }
    };
    if let Some(release) = known {
        if proxy.spec.reconcile_strategy.is_install_once() && release.is_installed() {
            return Of::UpToDate;
        }
        if release.metadata.deletion_timestamp.is_some() {
            return Of::Reinstalls(Vec::new());
        }
    }
    let kubernetes = version_for(&cluster.kubernetes, known, phases);
    let version = match chart_version(proxy, chart, kubernetes) {
        ChartVersion::Is(version) => version,
        ChartVersion::NotYet => return Of::Waits,
        ChartVersion::Fails(reason, why) => return Of::Fails(reason, why),
    };
    let values = match &cluster.values {
        Values::Rendered(values) => values,
        Values::Failed(why) => {
            let why = format!("valuesTemplate cannot be rendered: {why}");
            return Of::Fails(reasons::VALUE_PARSING_FAILED, why);
        }
        Values::NotYet => return Of::Waits,
    };
    if let Err(why) = values_from(proxy.annotations()) {
        return Of::Fails("AnnotationNotValid", why);
    }
    // Nothing is uninstalled that cannot be installed again.
    if known.is_some_and(|release| is_another_release(release, proxy)) {
        return Of::Reinstalls(deletions(known.into_iter(), Deletion::Reinstall));
    }
    let kubernetes = kubernetes.filter(|_| phases.concern_upgrades()).map(str::to_owned);
    let Some(release) = known else {
        let mut release = new(proxy, &cluster.name, &version, values);
        release.set_kubernetes_version(kubernetes);
        return Of::Changes(vec![Step::Create(Box::new(release))]);
    };
    let mut changed = updated(release, proxy, &version, values);
    let is_same = changed == *release;
    changed.set_kubernetes_version(kubernetes);
    if changed == *release {
        return Of::UpToDate;
    }
    let update = vec![Step::Update(Box::new(changed))];
    if is_same { Of::AtOnce(update) } else { Of::Changes(update) }
}

/// Deletes those that are not being deleted yet.
fn deletions<'a>(releases: impl Iterator<Item = &'a HelmReleaseProxy>, why: Deletion) -> Vec<Step> {
    let left = releases.filter(|release| release.metadata.deletion_timestamp.is_none());
    left.map(|release| Step::Delete { name: release.name_any(), why }).collect()
}

fn condition(
    steps: usize,
    reinstalls: &[&str],
    waiting: &[&str],
    depending: &[&Selected],
    failed: &[(&str, &'static str, String)],
) -> Finding {
    if let [(first, reason, why), others @ ..] = failed {
        let more =
            if others.is_empty() { String::new() } else { format!(" (and {} more Clusters)", others.len()) };
        return Finding::new(SPECS_UP_TO_DATE, false, reason, format!("Cluster {first}{more}: {why}"));
    }
    if !reinstalls.is_empty() {
        let message =
            format!("the release is installed again once it is uninstalled: {}", listed(reinstalls));
        return Finding::new(SPECS_UP_TO_DATE, false, "HelmReleaseProxyReinstalling", message);
    }
    if !waiting.is_empty() {
        let message = format!(
            "objects of these Clusters, or versions in their status, do not exist yet: {}",
            listed(waiting)
        );
        return updating(message);
    }
    if let [first, others @ ..] = depending {
        let more =
            if others.is_empty() { String::new() } else { format!(" (and {} more Clusters)", others.len()) };
        let names: Vec<&str> = first.waits_for.iter().map(String::as_str).collect();
        let message = format!(
            "Cluster {}{more}: the releases of HelmChartProxies that this one depends on are not ready: {}",
            first.name,
            listed(&names)
        );
        return updating(message);
    }
    if steps > 0 {
        return updating(format!("{steps} HelmReleaseProxies are being written"));
    }
    Finding::plain(SPECS_UP_TO_DATE, true, "UpToDate")
}

fn updating(message: String) -> Finding {
    Finding::new(SPECS_UP_TO_DATE, false, "HelmReleaseProxySpecsUpdating", message)
}

#[cfg(test)]
mod tests;
