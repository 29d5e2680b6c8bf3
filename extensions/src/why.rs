//! What the extension reported about one Cluster, for users: the last answer of each hook, since when it blocks, and what
//! ends the block. Everything comes from events; nothing is called.

use std::{collections::BTreeMap, fmt};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::{
    blocks::Cause,
    names::{annotations, events},
    protocol::{ClusterKey, Hook},
};

/// While a hook blocks, its event is written every 10 minutes. One that was not written for longer than this describes a
/// block that has ended, or a hook that core no longer calls.
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
    /// The cause of the block that the event is about, if it is about one.
    pub cause: Option<Cause>,
    /// Whether it is the event that records when the block began. Its text is the first one, and other texts have other
    /// events.
    pub is_record: bool,
    /// Since when: the beginning of the block, or the time of the event.
    pub since: DateTime<Utc>,
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
    /// What the extension reported, in any order.
    pub reports: Vec<Report>,
    /// The time of the question.
    pub now: DateTime<Utc>,
}

impl Report {
    fn is_block(&self) -> bool {
        [events::HOOK_BLOCKED, events::HOOK_BLOCKED_FOR_LONG].contains(&self.reason.as_str())
    }
}

impl Why {
    /// The blocks of a hook that have not ended, one for each cause.
    fn blocks(&self, hook: Hook) -> Vec<&Report> {
        let of_hook = || self.reports.iter().filter(|report| report.hook == hook);
        let is_end = |report: &&Report| {
            [events::HOOK_UNBLOCKED, events::HOOK_SKIPPED].contains(&report.reason.as_str())
        };
        let ended = of_hook().filter(is_end).map(|report| report.last).max();
        let is_current = |report: &&Report| {
            self.now - report.last <= CURRENT && ended.is_none_or(|ended| report.last > ended)
        };
        let mut by_cause: BTreeMap<(Option<Cause>, &str), &Report> = BTreeMap::new();
        for report in of_hook().filter(|report| report.is_block()).filter(is_current) {
            // Without a cause, which earlier versions do not report, each text is a block.
            let key = (report.cause, if report.cause.is_none() { report.message.as_str() } else { "" });
            let best = by_cause.entry(key).or_insert(report);
            if (!report.is_record, report.last) > (!best.is_record, best.last) {
                *best = report;
            }
        }
        by_cause.into_values().collect()
    }

    fn last(&self, hook: Hook) -> Option<&Report> {
        self.reports.iter().filter(|report| report.hook == hook).max_by_key(|report| report.last)
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
            let Some(last) = self.last(hook) else { continue };
            let blocks = self.blocks(hook);
            writeln!(out, "\n{hook}: {}", if blocks.is_empty() { answer(last) } else { "blocks" })?;
            if blocks.is_empty() {
                writeln!(out, "  {} {}: {}", time(last.last), last.reason, last.message)?;
            }
            for block in blocks {
                blocked = Some(hook);
                let cause = block.cause.map_or("Unknown", Cause::as_str);
                let minutes = (self.now - block.since).num_minutes();
                writeln!(out, "  {cause} since {} ({minutes} min): {}", time(block.since), block.message)?;
                if let Some(cause) = block.cause {
                    writeln!(out, "  It ends {}.", cause.ends())?;
                }
            }
        }
        if self.reports.is_empty() {
            writeln!(
                out,
                "\nThe extension has reported nothing. The API server keeps events for an hour by default."
            )?;
        }
        if let Some(hook) = blocked {
            let command = format!("kubectl annotate cluster {name} --namespace {namespace}");
            writeln!(out, "\nTo skip all checks of a hook: {command} {}={hook}", annotations::SKIP_HOOK)?;
        }
        Ok(())
    }
}

/// The last answer of a hook that does not block.
fn answer(last: &Report) -> &'static str {
    match last.reason.as_str() {
        events::HOOK_SKIPPED => "skipped",
        events::HOOK_TIMED_OUT => "continued, since a deadline passed",
        // The block was not written again.
        events::HOOK_BLOCKED | events::HOOK_BLOCKED_FOR_LONG => "blocked, and has not been called since",
        _ => "does not block",
    }
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::minutes(minute)
    }

    fn report(hook: Hook, reason: &str, message: &str, since: i64, last: i64) -> Report {
        Report {
            hook,
            reason: reason.into(),
            message: message.into(),
            cause: None,
            is_record: false,
            since: at(since),
            last: at(last),
        }
    }

    fn block(cause: Cause, message: &str, since: i64, last: i64) -> Report {
        let report = report(Hook::BeforeClusterUpgrade, events::HOOK_BLOCKED, message, since, last);
        Report { cause: Some(cause), ..report }
    }

    fn why(reports: Vec<Report>) -> Why {
        let cluster = ClusterKey { namespace: "teams".into(), name: "prod".into(), uid: "1".into() };
        Why { cluster, topology: None, reports, now: at(60) }
    }

    #[test]
    fn a_block_has_its_cause_its_beginning_and_its_end() {
        let first = Report { is_record: true, ..block(Cause::PoolNotReady, "pool a", 40, 58) };
        let reports = vec![
            first,
            block(Cause::PoolNotReady, "pools a, b", 40, 55),
            block(Cause::NotApproved, "no", 50, 50),
        ];
        let text = Why { topology: Some("False ClusterUpgrading: waits".into()), ..why(reports) }.to_string();
        assert_eq!(
            text,
            "Cluster teams/prod\n\
             TopologyReconciled: False ClusterUpgrading: waits\n\
             \n\
             BeforeClusterUpgrade: blocks\n\
             \x20 PoolNotReady since 2027-01-15T08:40:00Z (20 min): pools a, b\n\
             \x20 It ends when the pools are ready (kubectl describe asgmachinepool), or by its deadline unless \
             onBlockTimeout is Block.\n\
             \x20 NotApproved since 2027-01-15T08:50:00Z (10 min): no\n\
             \x20 It ends when the annotation asg.infrastructure.cluster.x-k8s.io/upgrade-approved of the Cluster has \
             the version.\n\
             \n\
             To skip all checks of a hook: kubectl annotate cluster prod --namespace teams \
             asg.infrastructure.cluster.x-k8s.io/skip-hook=BeforeClusterUpgrade\n"
        );
    }

    #[test]
    fn add_ons_that_a_hook_waits_for_are_explained() {
        let message =
            "HelmChartProxies whose releases are not ready for v1.36.3: cilium (VersionNotAvailable)";
        let text = why(vec![block(Cause::AddonsNotReady, message, 40, 58)]).to_string();
        for part in
            ["  AddonsNotReady since ", message, "It ends when the releases are ready for the version"]
        {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
    }

    #[test]
    fn a_block_that_ended_or_is_not_repeated_is_the_past() {
        let hook = Hook::BeforeClusterUpgrade;
        let ended = report(hook, events::HOOK_UNBLOCKED, "no longer blocks", 59, 59);
        let text = why(vec![block(Cause::NotApproved, "no", 30, 58), ended]).to_string();
        assert!(
            text.contains("BeforeClusterUpgrade: does not block\n  2027-01-15T08:59:00Z HookUnblocked"),
            "{text}"
        );
        assert!(!text.contains("To skip"), "{text}");
        let text = why(vec![block(Cause::NotApproved, "no", 30, 44)]).to_string();
        assert!(text.contains("blocked, and has not been called since"), "{text}");
        let again =
            vec![report(hook, events::HOOK_UNBLOCKED, "", 40, 40), block(Cause::NotApproved, "no", 50, 50)];
        assert!(why(again).to_string().contains("BeforeClusterUpgrade: blocks"));
    }

    #[test]
    fn without_reports_there_is_nothing_to_skip() {
        let text = why(Vec::new()).to_string();
        assert!(text.contains("has reported nothing") && !text.contains("skip-hook"), "{text}");
    }

    #[test]
    fn blocks_without_a_cause_are_told_apart_by_their_text() {
        let one = |text: &str| Report { cause: None, ..block(Cause::NotApproved, text, 50, 55) };
        let text = why(vec![one("first"), one("second")]).to_string();
        assert!(text.contains("(10 min): first") && text.contains("(10 min): second"), "{text}");
    }
}
