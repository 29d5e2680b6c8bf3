//! What the extension reported about one Cluster, for users: the last answer of each hook, since when it blocks, and what
//! ends the block. Everything comes from events; nothing is called.

use std::fmt;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::{
    blocks::{Block, Cause, Record},
    names::{annotations, events},
    protocol::{ClusterKey, Hook},
};

/// While a hook blocks, its record is written at least every 10 minutes. One that was not written for longer than this is of a
/// hook that core no longer calls.
const CURRENT: TimeDelta = TimeDelta::minutes(15);

/// An event of the extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The hook.
    pub hook: Hook,
    /// One of [`events`].
    pub reason: String,
    /// The text.
    pub message: String,
    /// When it was last written.
    pub last: DateTime<Utc>,
}

/// What is known about one Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The Cluster.
    pub cluster: ClusterKey,
    /// The condition `TopologyReconciled` of the Cluster: status, reason and message, as core reports them.
    pub topology: Option<String>,
    /// What blocks the Cluster, as hooks read it themselves.
    pub record: Option<Record>,
    /// What the extension reported, in any order.
    pub reports: Vec<Report>,
    /// The time of the question.
    pub now: DateTime<Utc>,
}

impl Why {
    /// The record, if core has called the hook recently.
    fn current(&self, hook: Hook) -> Option<&Record> {
        self.record.as_ref().filter(|record| record.hook == hook && self.now - record.last <= CURRENT)
    }

    /// What the hook blocks for.
    fn blocks(&self, hook: Hook) -> Vec<(Cause, &Block)> {
        self.current(hook).into_iter().flat_map(|record| record.blocks_of(hook)).collect()
    }

    fn last(&self, hook: Hook) -> Option<&Report> {
        self.reports.iter().filter(|report| report.hook == hook).max_by_key(|report| report.last)
    }

    /// The last answer of a hook that does not block.
    fn answer(&self, last: &Report) -> &'static str {
        match last.reason.as_str() {
            events::HOOK_SKIPPED => "skipped",
            events::HOOK_TIMED_OUT => "continued, since a deadline passed",
            events::HOOK_BLOCKED | events::HOOK_BLOCKED_FOR_LONG
                if self.record.as_ref().is_none_or(|record| record.is_blocking(last.hook)) =>
            {
                "blocked, and has not been called since"
            }
            _ => "does not block",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClusterKey { namespace, name, .. } = &self.cluster;
        writeln!(out, "Cluster {namespace}/{name}")?;
        if let Some(topology) = &self.topology {
            writeln!(out, "TopologyReconciled: {topology}")?;
        }
        let mut blocked = None;
        for hook in Hook::ALL {
            let (last, blocks) = (self.last(hook), self.blocks(hook));
            if blocks.is_empty() {
                if let Some(last) = last {
                    writeln!(out, "\n{hook}: {}", self.answer(last))?;
                    writeln!(out, "  {} {}: {}", time(last.last), last.reason, last.message)?;
                }
                continue;
            }
            blocked = Some(hook);
            writeln!(out, "\n{hook}: blocks")?;
            for (cause, block) in blocks {
                let minutes = (self.now - block.since).num_minutes();
                let (name, since) = (cause.as_str(), time(block.since));
                writeln!(out, "  {name} since {since} ({minutes} min): {}", block.message)?;
                writeln!(out, "  It ends {}.", cause.ends())?;
            }
        }
        if self.reports.is_empty() && blocked.is_none() {
            writeln!(
                out,
                "\nThe extension has reported nothing. The API server keeps events for an hour by default."
            )?;
        }
        if let Some(hook) = blocked {
            let command = format!("kubectl annotate cluster {name} --namespace {namespace} --overwrite");
            writeln!(out, "\nTo skip all checks of a hook: {command} {}={hook}", annotations::SKIP_HOOK)?;
        }
        Ok(())
    }
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: Hook = Hook::BeforeClusterUpgrade;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::minutes(minute)
    }

    fn report(hook: Hook, reason: &str, last: i64) -> Report {
        Report { hook, reason: reason.into(), message: "a message".into(), last: at(last) }
    }

    /// A record with causes, each since a minute, and whether the hook blocks for it.
    fn record(hook: Hook, last: i64, causes: &[(Cause, i64, bool)]) -> Record {
        let block = |(cause, since, blocks): &(Cause, i64, bool)| {
            (*cause, Block { since: at(*since), blocks: *blocks, message: format!("because of {cause:?}") })
        };
        let causes = causes.iter().map(block).collect();
        Record { hook, version: "v1.36.3".into(), last: at(last), causes }
    }

    fn why(record: impl Into<Option<Record>>, reports: Vec<Report>) -> Why {
        let cluster = ClusterKey { namespace: "teams".into(), name: "prod".into(), uid: "1".into() };
        Why { cluster, topology: None, record: record.into(), reports, now: at(60) }
    }

    // Rules: R18
    #[test]
    fn a_block_has_its_causes_their_beginning_and_their_end() {
        let record = record(HOOK, 58, &[(Cause::PoolNotReady, 40, true), (Cause::NotApproved, 50, true)]);
        let reports = vec![report(HOOK, events::HOOK_BLOCKED, 50)];
        let text = Why { topology: Some("False ClusterUpgrading: waits".into()), ..why(record, reports) }
            .to_string();
        assert_eq!(
            text,
            "Cluster teams/prod\n\
             TopologyReconciled: False ClusterUpgrading: waits\n\
             \n\
             BeforeClusterUpgrade: blocks\n\
             \x20 PoolNotReady since 2027-01-15T08:40:00Z (20 min): because of PoolNotReady\n\
             \x20 It ends when the pools are ready (kubectl describe asgmachinepool), or by its deadline unless \
             onBlockTimeout is Block.\n\
             \x20 NotApproved since 2027-01-15T08:50:00Z (10 min): because of NotApproved\n\
             \x20 It ends when the annotation asg.infrastructure.cluster.x-k8s.io/upgrade-approved of the Cluster has \
             the version.\n\
             \n\
             To skip all checks of a hook: kubectl annotate cluster prod --namespace teams --overwrite \
             asg.infrastructure.cluster.x-k8s.io/skip-hook=BeforeClusterUpgrade\n"
        );
        // The annotation may have another hook already.
        assert!(text.contains("--overwrite"));
    }

    // Rules: R17
    #[test]
    fn a_hook_that_continued_does_not_block() {
        let timed_out = record(HOOK, 59, &[(Cause::PoolNotReady, 40, false)]);
        let reports =
            || vec![report(HOOK, events::HOOK_BLOCKED, 50), report(HOOK, events::HOOK_TIMED_OUT, 59)];
        let text = why(timed_out, reports()).to_string();
        assert!(text.contains("BeforeClusterUpgrade: continued, since a deadline passed\n"), "{text}");
        assert!(!text.contains("To skip"), "{text}");
        // Another hook blocks now.
        let text = why(record(Hook::BeforeWorkersUpgrade, 59, &[(Cause::WindowClosed, 59, true)]), reports())
            .to_string();
        assert!(text.contains("BeforeClusterUpgrade: continued"), "{text}");
        assert!(text.contains("BeforeWorkersUpgrade: blocks\n  WindowClosed since"), "{text}");
    }

    #[test]
    fn add_ons_that_a_hook_waits_for_are_explained() {
        let text = why(record(HOOK, 58, &[(Cause::AddonsNotReady, 40, true)]), Vec::new()).to_string();
        for part in ["  AddonsNotReady since ", "It ends when the releases are ready for the version"] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
    }

    #[test]
    fn a_block_that_ended_or_is_not_repeated_is_the_past() {
        let blocked = || vec![report(HOOK, events::HOOK_BLOCKED, 30)];
        // The event of the end may be lost, or older than that of the block.
        let text = why(record(HOOK, 59, &[]), blocked()).to_string();
        assert!(text.contains("BeforeClusterUpgrade: does not block\n"), "{text}");
        let old = record(HOOK, 44, &[(Cause::NotApproved, 30, true)]);
        let text = why(old, blocked()).to_string();
        assert!(text.contains("blocked, and has not been called since"), "{text}");
        let ends = vec![report(HOOK, events::HOOK_UNBLOCKED, 59)];
        let again = why(record(HOOK, 60, &[(Cause::NotApproved, 60, true)]), ends).to_string();
        assert!(again.contains("BeforeClusterUpgrade: blocks"), "{again}");
    }

    #[test]
    fn without_reports_there_is_nothing_to_skip() {
        let text = why(None, Vec::new()).to_string();
        assert!(text.contains("has reported nothing") && !text.contains("skip-hook"), "{text}");
    }
}
