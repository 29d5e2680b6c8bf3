//! The description of what would change, as text. It has versions, keys of values and names of fields, and no values.

use std::fmt;

use capasg_api::conditions::Status;
use serde_json::{Map, Value};

use super::{differences::differences, manifests::ResourceDifference, plan::Planned};
use crate::{
    HelmReleaseProxy, HelmReleaseProxySpec,
    decide::{
        self, Deletion,
        release::{Change, Decision, Found, Removal, Step},
    },
    kinds::conditions::CLUSTER_AVAILABLE,
};

/// What is described elsewhere, or recorded by the controller.
const NOT_DESCRIBED: [&str; 4] = ["clusterRef", "releaseName", "values", "version"];

/// What would change for a `HelmChartProxy`.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Namespace and name.
    pub proxy: String,
    /// Why nothing happens at all, if it does not.
    pub note: Option<String>,
    /// The Clusters.
    pub clusters: Vec<ClusterPreview>,
}

/// What would change on a Cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterPreview {
    /// The Cluster.
    pub cluster: String,
    /// One word.
    pub action: &'static str,
    /// Namespace and name of the release, if its name is known.
    pub release: Option<String>,
    /// Details by topic.
    pub details: Vec<(&'static str, String)>,
    /// How resources differ, or why that is not known; none if it was not requested.
    pub resources: Option<Result<Vec<ResourceDifference>, String>>,
}

/// What was observed and decided for the object of a Cluster as it would be.
#[derive(Debug, Clone)]
pub struct Outcome<'a> {
    /// The object.
    pub object: &'a HelmReleaseProxy,
    /// The decision.
    pub decision: &'a Decision,
    /// The release that exists.
    pub found: Option<&'a Found>,
    /// The values before: of the release, or of the object.
    pub before: &'a Map<String, Value>,
    /// The values after.
    pub after: &'a Map<String, Value>,
    /// The newest version of the chart, if the release follows it.
    pub newest: Option<&'a str>,
}

/// Describes what would happen on a Cluster. Without a step, there is no outcome.
#[must_use]
pub fn describe(planned: &Planned, outcome: Option<&Outcome<'_>>) -> ClusterPreview {
    let mut preview = ClusterPreview {
        cluster: planned.cluster.clone(),
        action: if planned.note.is_some() { "nothing" } else { "unchanged" },
        release: planned.known.as_ref().and_then(release),
        details: Vec::new(),
        resources: None,
    };
    if let (Some(step), Some(outcome)) = (&planned.step, outcome) {
        preview.action = action(step, &outcome.decision.step);
        preview.release = release(outcome.object).or(preview.release);
        let is_deleted = matches!(step, decide::Step::Delete { .. });
        let after = planned.successor.as_ref().map(|successor| &successor.spec);
        let after = after.or_else(|| (!is_deleted).then_some(&outcome.object.spec));
        if let Some(after) = after {
            let known = planned.known.as_ref().map(|known| &known.spec);
            preview.details.extend(version(known, after, outcome));
            preview.details.extend(values(outcome));
            preview.details.extend(fields(known, after));
        }
        preview.details.extend(conditions(outcome.decision));
    }
    preview.details.extend(planned.note.clone().map(|note| ("note", note)));
    preview
}

fn release(object: &HelmReleaseProxy) -> Option<String> {
    let spec = &object.spec;
    (!spec.release_name.is_empty()).then(|| format!("{}/{}", spec.release_namespace, spec.release_name))
}

fn action(planned: &decide::Step, decided: &Step) -> &'static str {
    use decide::Step::{Create, Delete, Update};
    match (planned, decided) {
        (_, Step::Reject(_)) => "reject",
        (Delete { why: Deletion::Reinstall, .. }, _) | (_, Step::Uninstall(Removal::OtherChart)) => {
            "reinstall"
        }
        (Delete { .. }, Step::Release) => "leave",
        (Delete { .. }, _) => "uninstall",
        (_, Step::Install { .. }) | (Create(_), Step::Wait(_)) => "install",
        (_, Step::Upgrade(_) | Step::MarkFailed { .. } | Step::Uninstall(_)) | (Update(_), Step::Wait(_)) => {
            "upgrade"
        }
        (Create(_), _) => "adopt",
        (Update(_), _) => "update",
    }
}

fn version(
    known: Option<&HelmReleaseProxySpec>,
    after: &HelmReleaseProxySpec,
    outcome: &Outcome<'_>,
) -> Option<(&'static str, String)> {
    let is_same = known.is_some_and(|known| known.version == after.version);
    let requested =
        outcome.newest.or_else(|| Some(after.version.as_str()).filter(|version| !version.is_empty()));
    let requested = requested.unwrap_or("the newest");
    let before = outcome.found.map(|found| found.release.chart.version.as_str());
    let before = before.or_else(|| known.map(|known| known.version.as_str()).filter(|it| !it.is_empty()));
    match before {
        Some(before) if before == requested || is_same && outcome.newest.is_none() => None,
        Some(before) => Some(("version", format!("{before} -> {requested}"))),
        None => Some(("version", requested.to_owned())),
    }
}

/// The keys of values that differ.
fn values(outcome: &Outcome<'_>) -> Option<(&'static str, String)> {
    let all: Vec<String> =
        differences(outcome.before, outcome.after).iter().map(ToString::to_string).collect();
    (!all.is_empty()).then(|| ("values", all.join(", ")))
}

/// The other fields that differ.
fn fields(
    known: Option<&HelmReleaseProxySpec>,
    after: &HelmReleaseProxySpec,
) -> Option<(&'static str, String)> {
    let map = |spec: &HelmReleaseProxySpec| match serde_json::to_value(spec) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let all = differences(&map(known?), &map(after));
    let all = all.iter().filter(|one| !NOT_DESCRIBED.contains(&one.path.as_str()));
    let all: Vec<String> = all.map(ToString::to_string).collect();
    (!all.is_empty()).then(|| ("spec", all.join(", ")))
}

/// Why the operation does not happen at once, or is another one than the difference implies.
fn conditions(decision: &Decision) -> Option<(&'static str, String)> {
    let mut all =
        decision.conditions.iter().filter(|one| one.status != Status::True && !one.message.is_empty());
    let is_of_interest = match &decision.step {
        Step::Upgrade(change) => !matches!(change, Change::Version { .. } | Change::Values | Change::Options),
        step => matches!(step, Step::Reject(_) | Step::Release | Step::Wait(_)),
    };
    // The condition of the Cluster is the first one.
    let first = all.find(|one| one.type_ == CLUSTER_AVAILABLE || is_of_interest)?;
    Some((if first.type_ == CLUSTER_AVAILABLE { "cluster" } else { "release" }, first.message.to_string()))
}

impl fmt::Display for Preview {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "HelmChartProxy {}", self.proxy)?;
        if let Some(note) = &self.note {
            writeln!(formatter, "  {note}")?;
        }
        if self.clusters.is_empty() {
            writeln!(formatter, "  no Cluster is selected")?;
        }
        let length = |text: &str| text.chars().count();
        let width = self.clusters.iter().map(|one| length(&one.cluster)).max().unwrap_or_default();
        for one in &self.clusters {
            let release = one.release.as_deref().unwrap_or_default();
            let line = format!("  {:width$}  {:9}  {release}", one.cluster, one.action);
            writeln!(formatter, "{}", line.trim_end())?;
            for (topic, text) in &one.details {
                writeln!(formatter, "      {topic}: {text}")?;
            }
            match &one.resources {
                None => {}
                Some(Err(why)) => writeln!(formatter, "      resources are not compared: {why}")?,
                Some(Ok(all)) if all.is_empty() => writeln!(formatter, "      no resource differs")?,
                Some(Ok(all)) => {
                    for line in all.iter().map(ToString::to_string).collect::<String>().lines() {
                        writeln!(formatter, "      {line}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
