//! Why a release is upgraded.

use std::fmt;

use capasg_api::names::hash;
use serde_json::{Map, Value, json};

use super::input::{Desired, Found};
use crate::{
    decide::constraint::satisfies,
    helm::{Merge, ReleaseState},
    kinds::HelmOptions,
    names,
};

/// Why a release is upgraded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The last operation failed.
    Failed,
    /// The version of the chart differs.
    Version {
        /// The version of the release.
        from: String,
        /// The requested version.
        to: String,
    },
    /// The values differ.
    Values,
    /// The chart was in an archive with other content, or one of both is in a repository.
    Archive,
    /// Options differ that change what an upgrade applies.
    Options,
    /// Another actor changed or deleted resources.
    Drift,
    /// The release has the ID of another actor, from which it is taken over.
    TakenOver,
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed => out.write_str("the last operation had failed"),
            Self::Version { from, to } => write!(out, "version {from} is now {to}"),
            Self::Values => out.write_str("its values differed"),
            Self::Archive => out.write_str("its chart archive differed"),
            Self::Options => out.write_str("its options differed"),
            Self::Drift => out.write_str("another actor had changed its resources"),
            Self::TakenOver => out.write_str("it was taken over"),
        }
    }
}

/// A hash of the options that change what an operation applies. Others, such as time limits, apply to the next operation.
#[must_use]
pub fn options_hash(options: &HelmOptions) -> String {
    let (install, upgrade) =
        (options.install.clone().unwrap_or_default(), options.upgrade.clone().unwrap_or_default());
    let is_set = |option: Option<bool>| option == Some(true);
    let applied = json!([
        is_set(options.disable_hooks),
        is_set(options.skip_crds),
        is_set(options.sub_notes),
        is_set(options.disable_open_api_validation),
        is_set(install.include_crds),
        is_set(upgrade.force),
        is_set(upgrade.recreate),
        is_set(upgrade.reset_values),
        is_set(upgrade.reuse_values),
        is_set(upgrade.reset_then_reuse_values),
    ]);
    hash(&applied.to_string())
}

/// The first difference between a release that is not pending and what is requested.
pub(super) fn of(desired: &Desired<'_>, found: &Found) -> Option<Change> {
    let (spec, release) = (desired.spec, &found.release);
    if release.state != ReleaseState::Deployed {
        return Some(Change::Failed);
    }
    if found.labels.get(names::RELEASE_ID).is_some_and(|label| Some(label.as_str()) != desired.id) {
        return Some(Change::TakenOver);
    }
    let archive = found.labels.get(names::RELEASE_ARCHIVE).map(String::as_str).unwrap_or_default();
    let is_other_archive = archive != desired.archive.unwrap_or_default();
    // The content of an archive has one version, whatever a spec says.
    let is_this_archive = desired.archive.is_some() && !is_other_archive && found.is_of_our_operation();
    let requested = desired.newest.or_else(|| is_exact(&spec.version).then_some(spec.version.as_str()));
    if let Some(requested) = requested
        && !is_this_archive
        && !is_same_version(requested, &release.chart.version)
    {
        return Some(Change::Version { from: release.chart.version.clone(), to: requested.to_owned() });
    }
    // Without the newest version, Helm reads the repository, and a failure is reported.
    if desired.archive.is_none()
        && requested.is_none()
        && satisfies(&release.chart.version, &spec.version) == Some(false)
    {
        return Some(Change::Version { from: release.chart.version.clone(), to: spec.version.clone() });
    }
    if is_other_archive {
        return Some(Change::Archive);
    }
    let options = spec.options.clone().unwrap_or_default();
    if !are_applied(desired.values, &release.values, Merge::of(&options)) {
        return Some(Change::Values);
    }
    // Cluster API's add-on provider for Helm leaves no label: a hand-over upgrades nothing.
    let differs = found.labels.get(names::RELEASE_OPTIONS).is_some_and(|it| *it != options_hash(&options));
    differs.then_some(Change::Options)
}

/// Whether a version is no constraint: the release does not follow the repository.
#[must_use]
pub fn is_exact(version: &str) -> bool {
    let numbers = version.strip_prefix('v').unwrap_or(version);
    let core = numbers.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number) && !version.contains([' ', ',', '|'])
}

/// Whether versions are the same, as Helm compares them: without a leading `v` and without build metadata.
#[must_use]
pub fn is_same_version(a: &str, b: &str) -> bool {
    let normal = |version: &str| {
        let version = version.strip_prefix('v').unwrap_or(version);
        version.split('+').next().unwrap_or_default().to_owned()
    };
    normal(a) == normal(b)
}

/// Whether an upgrade with these values leaves those of the release as they are.
fn are_applied(new: &Map<String, Value>, current: &Map<String, Value>, merge: Merge) -> bool {
    match merge {
        Merge::Replace => new.len() == current.len() && contains(current, new, false),
        Merge::Reuse | Merge::ResetThenReuse => contains(current, new, true),
    }
}

/// Whether all entries of `part` are in `whole`; within maps, `whole` may have more if `is_merged`.
fn contains(whole: &Map<String, Value>, part: &Map<String, Value>, is_merged: bool) -> bool {
    part.iter().all(|(key, value)| match (whole.get(key), value) {
        (Some(Value::Object(whole)), Value::Object(part)) => {
            (is_merged || whole.len() == part.len()) && contains(whole, part, is_merged)
        }
        (Some(whole), part) => is_equal(whole, part),
        // Helm drops a key whose value is null when it merges.
        (None, value) => is_merged && value.is_null(),
    })
}

/// Whether values are equal. Helm stores numbers as JSON, where `1` and `1.0` are the same.
#[must_use]
pub fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_i64().is_none() || b.as_i64().is_none()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && contains(a, b, false),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn values_are_compared_by_their_content() {
        let same = |new: Value, current: Value| are_applied(&map(new), &map(current), Merge::Replace);
        assert!(same(json!({"a": {"b": [1, 2.0]}, "c": null}), json!({"c": null, "a": {"b": [1.0, 2]}})));
        assert!(same(json!({"a": 9_007_199_254_740_993_i64}), json!({"a": 9_007_199_254_740_993_i64})));
        assert!(!same(json!({"a": 9_007_199_254_740_993_i64}), json!({"a": 9_007_199_254_740_992_i64})));
        for (new, current) in [
            (json!({"a": 1}), json!({"a": "1"})),
            (json!({"a": true}), json!({"a": "true"})),
            (json!({}), json!({"a": 1})),
            (json!({"a": 1}), json!({})),
            (json!({"a": {}}), json!({"a": {"b": 1}})),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]})),
            (json!({"a": null}), json!({})),
        ] {
            assert!(!same(new.clone(), current.clone()), "{new} {current}");
        }
    }

    #[test]
    fn values_that_are_merged_only_have_to_be_contained() {
        let applied = |new: Value, current: Value| are_applied(&map(new), &map(current), Merge::Reuse);
        assert!(applied(json!({}), json!({"a": 1})));
        assert!(applied(json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}, "d": 3})));
        assert!(applied(json!({"a": null}), json!({"b": 1})), "the key was dropped");
        assert!(!applied(json!({"a": {"b": 2}}), json!({"a": {"b": 1, "c": 2}})));
        assert!(!applied(json!({"a": [1]}), json!({"a": [1, 2]})), "lists are not merged");
    }

    #[test]
    fn versions_are_compared_as_helm_does() {
        for version in ["1.2.3", "v1.2.3", "1.2.3-rc.1", "1.2.3+build"] {
            assert!(is_exact(version), "{version}");
        }
        for version in [
            "",
            "1.2",
            "^1.2.3",
            "1.2.x",
            "~1.2.3",
            ">=1.2.3",
            "1.2.3 || 2.0.0",
            "1.2.3 - 2.0.0",
            "*",
            "=1.2.3",
        ] {
            assert!(!is_exact(version), "{version}");
        }
        assert!(is_same_version("v1.2.3+a", "1.2.3"));
        assert!(!is_same_version("1.2.3", "1.2.3-rc.1"));
    }

    #[test]
    fn only_options_that_change_what_is_applied_change_the_hash() {
        let hash_of = |value: Value| options_hash(&serde_json::from_value(value).unwrap());
        let none = hash_of(json!({}));
        for same in [
            json!({"timeout": "1m", "wait": true, "atomic": true, "disableHooks": false, "takeOwnership": true}),
            json!({"upgrade": {"maxHistory": 3, "cleanupOnFail": true}, "uninstall": {"keepHistory": true}}),
        ] {
            assert_eq!(hash_of(same.clone()), none, "{same}");
        }
        for other in
            [json!({"skipCRDs": true}), json!({"options": true}), json!({"upgrade": {"force": true}})]
        {
            assert_ne!(hash_of(other.clone()), none, "{other}");
        }
    }
}
