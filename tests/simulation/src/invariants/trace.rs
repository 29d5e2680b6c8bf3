//! What happened, line by line, for people: time, who, what.

use std::{collections::BTreeSet, fmt};

use capasg_api::pool::ASGMachinePoolStatus;
use capasg_controllers::kubernetes::KubeWrite;
use capasg_fake_aws::{Happening, What};
use chrono::{DateTime, Utc};

use crate::{Drain, cloud::MANAGER};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Virtual time.
    pub at: DateTime<Utc>,
    /// Who.
    pub actor: &'static str,
    /// What.
    pub what: String,
}

/// The lines of a run, if it is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    lines: Option<Vec<Line>>,
    drains: usize,
    told: BTreeSet<String>,
}

impl Trace {
    pub(super) fn begin(&mut self) {
        self.lines.get_or_insert_with(Vec::new);
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.lines.is_some()
    }

    pub(super) fn add(&mut self, at: DateTime<Utc>, actor: &'static str, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(Line { at, actor, what: what() });
        }
    }

    /// The lines.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        self.lines.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let began = self.lines().first().map(|line| line.at);
        for line in self.lines() {
            let since = began.map_or(0, |began| (line.at - began).num_milliseconds());
            let (minutes, seconds, millis) = (since / 60_000, since / 1000 % 60, since % 1000);
            writeln!(f, "{minutes:4}:{seconds:02}.{millis:03}  {:<8} {}", line.actor, line.what)?;
        }
        Ok(())
    }
}

/// Whether two lines are about the same.
fn same(one: &str, other: &str) -> bool {
    one.split('=').next() == other.split('=').next()
}

/// What a status says, line by line.
fn summary(status: &ASGMachinePoolStatus) -> BTreeSet<String> {
    let value = serde_json::to_value(status).unwrap_or_default();
    let members = value.as_object().into_iter().flatten();
    let (conditions, others): (Vec<_>, Vec<_>) = members.partition(|(name, _)| *name == "conditions");
    let conditions = conditions.into_iter().filter_map(|(_, value)| value.as_array()).flatten();
    let words = |one: &serde_json::Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let conditions = conditions
        .map(|one| format!("{}={} {}", words(one, "type"), words(one, "status"), words(one, "reason")));
    conditions.chain(others.into_iter().map(|(name, value)| format!("{name}={value}"))).collect()
}

/// A write of the controllers that changed something, statuses of single instances apart.
pub(super) fn kubernetes(trace: &mut Trace, at: DateTime<Utc>, write: &KubeWrite, changed: bool) {
    if !changed || matches!(write, KubeWrite::PatchAsgMachineStatus { .. }) || trace.lines.is_none() {
        return;
    }
    if let KubeWrite::PatchPoolStatus { status, .. } = write {
        let now = summary(status);
        let news = now.difference(&trace.told).map(String::as_str);
        let gone = trace.told.iter().filter(|line| !now.iter().any(|new| same(new, line)));
        let gone = gone.map(|line| format!("no more {line}"));
        let news = news.map(str::to_owned).chain(gone).collect::<Vec<_>>().join(", ");
        trace.told = now;
        trace.add(at, "manager", || format!("tells {news}"));
        return;
    }
    trace.add(at, "manager", || {
        let why = match write {
            KubeWrite::DeleteMachine { reason: why, .. } => format!(" ({why:?})"),
            KubeWrite::AnnotateDeleteMachine { annotated, .. } => format!(" ({annotated})"),
            KubeWrite::PatchMachinePoolReplicas { replicas, .. } => format!(" ({replicas})"),
            _ => String::new(),
        };
        format!("{}{why}", write.what())
    });
}

/// What happened in the cloud.
pub(super) fn cloud(trace: &mut Trace, happening: &Happening) {
    let actor = match &happening.what {
        What::Changed(change) if change.by.as_deref() == Some(MANAGER) => "manager",
        What::Changed(_) => "somebody",
        _ => "aws",
    };
    trace.add(happening.at, actor, || match &happening.what {
        What::Changed(change) => {
            let (before, after) = change.desired;
            let number = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
            let desired = if before == after {
                String::new()
            } else {
                format!(" desired {} -> {}", number(before), number(after))
            };
            format!("{} {}{desired}", change.action, change.instances.join(","))
        }
        What::Launched { id } => format!("launches {id}"),
        What::InService { id } => format!("{id} in service"),
        What::Ending { id, cause, .. } => format!("begins to end {id}: {cause}"),
        What::Held { id, hooks } => format!("holds {id} for {}", hooks.join(",")),
        What::ShutDown(end) => format!(
            "{} shuts down{}{}",
            end.id,
            if end.cause.is_some() { "" } else { ", its group did not do it" },
            if end.timed_out { ", its hook timed out" } else { "" }
        ),
        What::Left { id } => format!("{id} left its group"),
    });
}

/// Drains that are over.
pub(super) fn core(trace: &mut Trace, drained: &[(String, Drain)], now: DateTime<Utc>) {
    for (machine, drain) in drained.iter().skip(trace.drains) {
        trace.add(now, "core", || format!("drain of {machine} is over: {drain:?}"));
    }
    trace.drains = drained.len();
}
