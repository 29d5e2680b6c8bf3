//! Drift: resources of a release that another actor has changed in the workload cluster.

use std::{collections::BTreeMap, fmt};

use capasg_api::{
    conditions::{DRIFTED, Finding, Status},
    names::listed,
};
use chrono::{DateTime, TimeDelta, Utc};

use crate::{kinds::conditions::reasons, names};

/// How often the resources of a release are compared.
const INTERVAL: TimeDelta = TimeDelta::minutes(10);
/// The longest time until a release is corrected again.
const LONGEST: TimeDelta = TimeDelta::hours(6);

/// What a user requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftSettings {
    /// Whether the release is upgraded if resources differ.
    pub corrects: bool,
    /// Parts that are not compared: a kind, and the beginning of a path.
    pub ignored: Vec<(String, String)>,
}

/// A resource that differs from the manifest of the release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drifted {
    /// Kind, namespace and name.
    pub resource: String,
    /// The parts that differ; none if the resource does not exist.
    pub paths: Vec<String>,
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriftFindings {
    /// The resources that differ.
    pub drifted: Vec<Drifted>,
    /// Resources that could not be compared, and why.
    pub unchecked: Vec<String>,
}

/// The last comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    revision: i64,
    next_at: DateTime<Utc>,
    findings: DriftFindings,
}

/// What is remembered of comparisons and corrections. Losing it means that a release is compared, and perhaps corrected, once
/// more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriftMemory {
    /// The first comparison of this process is not before.
    not_before: Option<DateTime<Utc>>,
    check: Option<Check>,
    corrections: u32,
    corrected_at: Option<DateTime<Utc>>,
}

/// What is requested, and what is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// What a user requests, or what is wrong with it.
    pub settings: Result<DriftSettings, String>,
    /// What is remembered.
    pub memory: DriftMemory,
}

impl DriftSettings {
    /// Reads the annotations; none without them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn of(annotations: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        let corrects = match annotations.get(names::DRIFT).map(String::as_str) {
            None => return Ok(None),
            Some("Report") => false,
            Some("Correct") => true,
            Some(other) => {
                return Err(format!("annotation {} is {other:?}, and not Report or Correct", names::DRIFT));
            }
        };
        let ignored = annotations.get(names::DRIFT_IGNORED).map(String::as_str).unwrap_or_default();
        let ignored = ignored.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(|entry| {
            let (kind, path) = entry.split_once(':').ok_or_else(|| {
                format!("annotation {} has {entry:?}, and not <kind>:<path>", names::DRIFT_IGNORED)
            })?;
            Ok((kind.to_owned(), path.to_owned()))
        });
        Ok(Some(Self { corrects, ignored: ignored.collect::<Result<_, String>>()? }))
    }

    /// Whether a part of a resource is not compared: it, or a part that contains it, is named.
    #[must_use]
    pub fn ignores(&self, kind: &str, path: &str) -> bool {
        let is_within = |named: &str| {
            path.strip_prefix(named).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.ignored.iter().any(|(of, named)| of == kind && is_within(named))
    }
}

impl DriftMemory {
    /// After a start, comparisons of releases that were compared before are spread over an interval. `spread` is from 0 to 1.
    pub fn started(&mut self, spread: f64, now: DateTime<Utc>) {
        if self.check.is_none() && self.not_before.is_none() {
            self.not_before = Some(now + part(INTERVAL, spread));
        }
    }

    /// Whether the resources are compared now: at intervals, and at once after a new revision.
    #[must_use]
    pub fn is_due(&self, revision: i64, now: DateTime<Utc>) -> bool {
        match &self.check {
            None => self.not_before.is_none_or(|at| now >= at),
            Some(check) => check.revision != revision || now >= check.next_at,
        }
    }

    /// Remembers a comparison. `spread` is from 0 to 1, and delays the next one by up to a fifth of the interval.
    pub fn checked(&mut self, revision: i64, findings: DriftFindings, spread: f64, now: DateTime<Utc>) {
        let is_at_interval = self.check.as_ref().is_some_and(|check| check.revision == revision);
        // The comparison after a correction does not show yet that it lasts.
        if is_at_interval && findings.drifted.is_empty() {
            (self.corrections, self.corrected_at) = (0, None);
        }
        let next_at = now + INTERVAL + part(INTERVAL, spread / 5.0);
        self.check = Some(Check { revision, next_at, findings });
    }

    /// Remembers a correction.
    pub fn corrected(&mut self, now: DateTime<Utc>) {
        self.corrections = self.corrections.saturating_add(1);
        self.corrected_at = Some(now);
    }

    /// What the last comparison of a revision found.
    #[must_use]
    pub fn findings(&self, revision: i64) -> Option<&DriftFindings> {
        self.check.as_ref().filter(|check| check.revision == revision).map(|check| &check.findings)
    }

    /// When the release may be corrected again. The delay doubles with each correction that does not last.
    fn may_correct_at(&self) -> Option<DateTime<Utc>> {
        let doublings = self.corrections.saturating_sub(1).min(16);
        let delay = INTERVAL.checked_mul(1 << doublings).map_or(LONGEST, |delay| delay.min(LONGEST));
        self.corrected_at.map(|at| at + delay)
    }
}

impl Drift {
    fn is_correcting(&self) -> bool {
        self.settings.as_ref().is_ok_and(|settings| settings.corrects)
    }

    /// Whether the release is corrected now.
    pub(super) fn corrects(&self, revision: i64, now: DateTime<Utc>) -> bool {
        let differs = self.memory.findings(revision).is_some_and(|findings| !findings.drifted.is_empty());
        self.is_correcting() && differs && self.memory.may_correct_at().is_none_or(|at| now >= at)
    }

    /// When the next comparison or correction is: always later, also if nothing can be compared.
    #[must_use]
    pub fn next(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let check = self.memory.check.as_ref();
        let compared = check.map_or(self.memory.not_before, |check| Some(check.next_at));
        let differs = check.is_some_and(|check| !check.findings.drifted.is_empty());
        let corrected = self.memory.may_correct_at().filter(|_| self.is_correcting() && differs);
        let later = [compared, corrected].into_iter().flatten().filter(|at| *at > now);
        later.min().unwrap_or(now + INTERVAL)
    }

    /// The condition; none until the revision is compared.
    #[must_use]
    pub fn condition(&self, revision: i64) -> Option<Finding> {
        if let Err(why) = &self.settings {
            return Some(Finding::new(DRIFTED, Status::Unknown, reasons::ANNOTATION_NOT_VALID, why.clone()));
        }
        let findings = self.memory.findings(revision)?;
        let (status, reason) = match (&findings.drifted[..], &findings.unchecked[..]) {
            ([], []) => (Status::False, reasons::NO_DRIFT),
            ([], _) => (Status::Unknown, reasons::DRIFT_NOT_CHECKED),
            _ => (Status::True, reasons::RESOURCES_CHANGED),
        };
        let mut message = String::new();
        if !findings.drifted.is_empty() {
            let drifted: Vec<String> = findings.drifted.iter().map(ToString::to_string).collect();
            message = format!("resources differ from the release: {}", named(&drifted));
            message.push_str(match (self.is_correcting(), self.memory.corrections) {
                (false, _) => "",
                (true, 0) => ". The release is upgraded to correct them",
                (true, _) => ". A correction did not last; the next one is later each time",
            });
        }
        if !findings.unchecked.is_empty() {
            let separator = if message.is_empty() { "" } else { ". " };
            message = format!("{message}{separator}Not compared: {}", named(&findings.unchecked));
        }
        Some(Finding::new(DRIFTED, status, reason, message))
    }
}

fn named(all: &[String]) -> String {
    listed(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

fn part(of: TimeDelta, share: f64) -> TimeDelta {
    let milliseconds = of.to_std().unwrap_or_default().mul_f64(share.clamp(0.0, 1.0)).as_millis();
    TimeDelta::milliseconds(i64::try_from(milliseconds).unwrap_or_default())
}

/// Prints no value.
impl fmt::Display for Drifted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.paths.is_empty() {
            return write!(formatter, "{} does not exist", self.resource);
        }
        write!(formatter, "{} ({})", self.resource, named(&self.paths))
    }
}

#[cfg(test)]
mod tests;
