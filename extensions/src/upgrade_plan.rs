//! The versions of an upgrade over several minor versions. Pure.

use std::{cmp::Ordering, collections::BTreeSet};

use thiserror::Error;

use crate::version::Version;

/// A kubelet may be this many minor versions older than the API server, by the version skew policy of Kubernetes.
const SKEW: u64 = 3;
/// The most minor versions of a plan.
const MOST: u64 = 50;

/// The versions to upgrade to, one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Those of the control plane: one of each minor version, the last one is the target.
    pub control_plane: Vec<Version>,
    /// Those of the workers: as few as the skew allows, the last one is the target.
    pub workers: Vec<Version>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No versions are offered.
    #[error(
        "the setting kubernetesVersions is required for an upgrade plan; set it to the offered versions, separated by commas"
    )]
    NothingOffered,
    /// The target is not offered.
    #[error("{0} is not offered; the setting kubernetesVersions has {offered}", offered = .1.join(", "))]
    TargetNotOffered(String, Vec<String>),
    /// No version of a minor version is offered.
    #[error(
        "an upgrade from {from} to {to} requires a {major}.{minor} version, but the setting kubernetesVersions contains none"
    )]
    MinorNotOffered {
        /// The version of the control plane.
        from: String,
        /// The target.
        to: String,
        /// The major version.
        major: u64,
        /// The minor version without an offered version.
        minor: u64,
    },
    /// The target is older, or of another major version, or too far.
    #[error("an upgrade from {0} to {1} cannot be planned")]
    NotAnUpgrade(String, String),
    /// The workers are too old for the versions of the control plane.
    #[error(
        "the workers run {0}, which is more than {SKEW} minor versions older than every version that the control plane can have"
    )]
    WorkersTooOld(String),
}

/// Plans an upgrade from the offered versions. The target itself must be offered.
///
/// # Errors
/// If no plan is possible.
pub fn plan(
    offered: &[Version],
    control_plane: &Version,
    workers: Option<&Version>,
    to: &Version,
) -> Result<Plan, PlanError> {
    if offered.is_empty() {
        return Err(PlanError::NothingOffered);
    }
    if !offered.iter().any(|version| version.is_same(to)) {
        let offered = offered.iter().map(ToString::to_string).collect();
        return Err(PlanError::TargetNotOffered(to.to_string(), offered));
    }
    let steps = control_plane_steps(offered, control_plane, to)?;
    let workers = match workers {
        Some(workers) if !workers.is_same(to) => workers_steps(control_plane, &steps, workers, to)?,
        _ => Vec::new(),
    };
    Ok(Plan { control_plane: steps, workers })
}

/// The offered versions without those that miss an image, as long as another one of the minor version is left: the control
/// plane may have to pass it although workers do not.
pub fn with_images(offered: &[Version], missing: &BTreeSet<Version>) -> Vec<Version> {
    let minor = |version: &Version| (version.major(), version.minor());
    let with: BTreeSet<(u64, u64)> =
        offered.iter().filter(|version| !missing.contains(version)).map(minor).collect();
    let is_kept = |version: &&Version| !missing.contains(version) || !with.contains(&minor(version));
    offered.iter().filter(is_kept).cloned().collect()
}

fn control_plane_steps(offered: &[Version], from: &Version, to: &Version) -> Result<Vec<Version>, PlanError> {
    if from.is_same(to) {
        return Ok(Vec::new());
    }
    let other_build = from.compare(to) == Ordering::Equal;
    let is_upgrade = from.compare(to) == Ordering::Less || other_build;
    if !is_upgrade || from.major() != to.major() || to.minor() - from.minor() > MOST {
        return Err(PlanError::NotAnUpgrade(from.to_string(), to.to_string()));
    }
    let mut steps = Vec::new();
    for minor in from.minor() + 1..to.minor() {
        let newest =
            offered.iter().filter(|version| version.major() == to.major() && version.minor() == minor).max();
        let newest = newest.ok_or_else(|| PlanError::MinorNotOffered {
            from: from.to_string(),
            to: to.to_string(),
            major: to.major(),
            minor,
        })?;
        steps.push(newest.clone());
    }
    steps.push(to.clone());
    Ok(steps)
}

/// From each version, the workers follow the control plane as late as the skew allows.
fn workers_steps(
    control_plane: &Version,
    steps: &[Version],
    workers: &Version,
    to: &Version,
) -> Result<Vec<Version>, PlanError> {
    let mut reached = workers.clone();
    let mut plan = Vec::new();
    while !reached.is_same(to) {
        // The newest version within the skew; a version of the same minor is no step unless it is the target.
        let within = |version: &&Version| {
            version.minor() <= reached.minor() + SKEW
                && (version.minor() > reached.minor() || version.is_same(to))
                && version.compare(&reached) != Ordering::Less
        };
        let next = std::iter::once(control_plane).chain(steps).rfind(within);
        let next = next.ok_or_else(|| PlanError::WorkersTooOld(reached.to_string()))?;
        reached = next.clone();
        plan.push(reached.clone());
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn planned(
        offered: &str,
        from: &str,
        workers: Option<&str>,
        to: &str,
    ) -> Result<(String, String), PlanError> {
        let offered: Vec<Version> = offered.split(' ').map(version).collect();
        let workers = workers.map(version);
        let plan = plan(&offered, &version(from), workers.as_ref(), &version(to))?;
        let text =
            |versions: Vec<Version>| versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        Ok((text(plan.control_plane), text(plan.workers)))
    }

    const OFFERED: &str = "v1.30.1 v1.30.9 v1.31.2 v1.32.0 v1.33.4 v1.34.1 v1.35.0";

    // Rules: R13
    #[test]
    fn the_control_plane_takes_the_newest_version_of_each_minor() {
        let plan = planned(OFFERED, "v1.29.0", Some("v1.29.0"), "v1.32.0").unwrap();
        assert_eq!(plan, ("v1.30.9 v1.31.2 v1.32.0".into(), "v1.32.0".into()));
        let plan = planned(OFFERED, "v1.30.1", Some("v1.30.1"), "v1.30.9").unwrap();
        assert_eq!(plan, ("v1.30.9".into(), "v1.30.9".into()));
    }

    // Rules: R13
    #[test]
    fn workers_take_the_steps_that_the_skew_requires() {
        let plan = planned(OFFERED, "v1.29.0", Some("v1.29.0"), "v1.35.0").unwrap();
        assert_eq!(plan.1, "v1.32.0 v1.35.0");
        let plan = planned(OFFERED, "v1.31.2", Some("v1.29.0"), "v1.33.4").unwrap();
        assert_eq!(plan.1, "v1.32.0 v1.33.4");
        // The control plane is there already; the workers follow.
        let plan = planned(OFFERED, "v1.32.0", Some("v1.30.9"), "v1.32.0").unwrap();
        assert_eq!(plan, (String::new(), "v1.32.0".into()));
        assert_eq!(planned(OFFERED, "v1.29.0", None, "v1.31.2").unwrap().1, "");
    }

    // Rules: R13
    #[test]
    fn what_cannot_be_planned_is_a_failure_in_words() {
        let text = |from, workers, to| {
            planned("v1.30.1 v1.32.0 v1.34.1", from, workers, to).unwrap_err().to_string()
        };
        assert_eq!(
            text("v1.29.0", None, "v1.32.0"),
            "an upgrade from v1.29.0 to v1.32.0 requires a 1.31 version, but the setting kubernetesVersions contains none"
        );
        assert_eq!(
            text("v1.29.0", None, "v1.31.0"),
            "v1.31.0 is not offered; the setting kubernetesVersions has v1.30.1, v1.32.0, v1.34.1"
        );
        assert_eq!(text("v1.32.0", None, "v1.30.1"), "an upgrade from v1.32.0 to v1.30.1 cannot be planned");
        assert!(text("v1.34.1", Some("v1.29.0"), "v1.34.1").contains("more than 3 minor versions older"));
        assert_eq!(plan(&[], &version("v1.1.0"), None, &version("v1.2.0")), Err(PlanError::NothingOffered));
    }

    proptest! {
        /// The rules that core checks of every plan.
        #[test]
        fn every_plan_is_one_that_core_accepts(
            from in 20_u64..30, up in 0_u64..12, behind in 0_u64..4, patches in prop::collection::vec(0_u64..20, 60),
        ) {
            let offered: Vec<Version> = (20..45_u64)
                .flat_map(|minor| {
                    let patch = patches[usize::try_from(minor).unwrap()];
                    [format!("v1.{minor}.{patch}"), format!("v1.{minor}.0")]
                })
                .map(|text| version(&text))
                .collect();
            let newest = |minor: u64| offered.iter().filter(|version| version.minor() == minor).max().unwrap().clone();
            let (control_plane, to, workers) = (newest(from), newest(from + up), version(&format!("v1.{}.0", from - behind)));
            let plan = plan(&offered, &control_plane, Some(&workers), &to).unwrap();
            let mut reached = control_plane.clone();
            for step in &plan.control_plane {
                prop_assert!(step.compare(&reached) == Ordering::Greater);
                prop_assert!(step.minor() <= reached.minor() + 1);
                reached = step.clone();
            }
            prop_assert!(reached.is_same(&to));
            let mut reached = workers.clone();
            for step in &plan.workers {
                prop_assert!(step.compare(&reached) == Ordering::Greater);
                prop_assert!(step.minor() <= reached.minor() + SKEW);
                prop_assert!(step.is_same(&control_plane) || plan.control_plane.iter().any(|version| version.is_same(step)));
                reached = step.clone();
            }
            prop_assert!(reached.is_same(&to));
        }
    }
}
