//! How often each kind of act occurs in the stories of seeds: what is never drawn proves nothing.

use std::{collections::BTreeMap, fmt::Write as _};

use super::act::{Act, ExistingGroup, Field, SpecEdit, Story};

/// In how many stories a kind occurs, and how often in all.
type Counts = BTreeMap<String, (u64, u64)>;

/// The kind of an act: its name, with what tells acts of one name apart that matter one by one.
fn kind(act: &Act) -> String {
    let name = |text: &str| text.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
    match act {
        Act::Spec(edit) => format!("Spec: {}", name(&format!("{edit:?}"))),
        Act::Fault(_, failure, _) => format!("Fault: {}", name(&format!("{failure:?}"))),
        Act::Outage(operation, _) => format!("Outage: {operation}"),
        Act::Field(act) => format!("Field: {}", name(&format!("{act:?}"))),
        Act::Second(act) => format!("Second pool: {}", kind(act)),
        Act::Suspend(process, true) => format!("Suspend: {process}"),
        other => name(&format!("{other:?}")),
    }
}

/// Whether it only ends something, or does nothing.
fn is_end(act: &Act) -> bool {
    match act {
        Act::Wait
        | Act::RestoreIdentity
        | Act::HealNodes
        | Act::OutageEnds(..)
        | Act::Known
        | Act::Field(Field::LaunchesDie(None) | Field::LaunchHook(false) | Field::ImageGone(_, false))
        | Act::Suspend(_, false)
        | Act::Maintenance(-1, -1) => true,
        Act::Spec(SpecEdit::PauseRollouts(on) | SpecEdit::Preview(on))
        | Act::Alarm(on)
        | Act::BlockDrains(on)
        | Act::CoreDown(on)
        | Act::Managed(on)
        | Act::Mute(on)
        | Act::WorkloadUnreachable(on)
        | Act::OlderVersions(on)
        | Act::PauseCluster(on)
        | Act::PausePool(on)
        | Act::Rebalances(on)
        | Act::Shortage(on) => !on,
        _ => false,
    }
}

/// What a story is as a whole.
fn traits(story: &Story) -> Vec<String> {
    let mut traits = vec![format!("(story) ends with {:?}", story.finale)];
    let mut add = |is: bool, what: &str| {
        if is {
            traits.push(format!("(story) {what}"));
        }
    };
    add(story.setup.latency.is_some(), "calls take time");
    add(story.setup.clock_off_seconds != 0, "a clock is off");
    add(story.setup.events, "has a queue of events");
    add(story.spec.identity_ref.is_some(), "an identity of another account");
    add(story.expiry.is_some(), "tokens expire");
    add(story.fixed, "bootstrap data without a token");
    add(story.second.is_some(), "has a second pool");
    add(story.second.as_ref().is_some_and(|second| second.elsewhere), "has a second Cluster");
    add(story.existing_group == Some(ExistingGroup::Foreign), "its group's name is taken");
    add(story.existing_group == Some(ExistingGroup::Adoptable), "adopts a group");
    add(super::spec::refreshes(&story.spec), "AWS replaces outdated instances");
    traits
}

/// A table of what the stories of these seeds have, per 1 000 seeds.
#[must_use]
pub fn tally(first: u64, seeds: u64, interruptions: bool) -> String {
    let mut counts = Counts::new();
    for seed in first..first.saturating_add(seeds) {
        let story = Story::with(seed, interruptions);
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        for (_, act) in story.acts.iter().chain(&story.last_acts) {
            if !is_end(act) {
                *own.entry(kind(act)).or_default() += 1;
            }
        }
        for what in traits(&story) {
            own.insert(what, 1);
        }
        for (what, times) in own {
            let (stories, all) = counts.entry(what).or_default();
            *stories += 1;
            *all += times;
        }
    }
    table(&counts, seeds.max(1))
}

fn table(counts: &Counts, seeds: u64) -> String {
    let width = counts.keys().map(String::len).max().unwrap_or_default();
    let mut text = format!("{:width$}  {:>12}  {:>8}\n", "of 1000 seeds", "in how many", "in all");
    for (what, (stories, all)) in counts {
        let (stories, all) = (per_thousand(*stories, seeds), per_thousand(*all, seeds));
        let _ = writeln!(text, "{what:width$}  {stories:>12}  {all:>8}");
    }
    text
}

/// With one decimal.
fn per_thousand(count: u64, seeds: u64) -> String {
    let tenths = count * 10_000 / seeds;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_new_kind_occurs_often_enough_to_be_met_by_two_thousand_seeds() {
        let text = tally(0, 2_000, true);
        assert_eq!(text, tally(0, 2_000, true), "the same seeds, the same table");
        for kind in [
            "Outage: PutLifecycleHook",
            "Outage: DescribeLaunchTemplateVersions",
            "Outage: ReceiveMessage",
            "Outage: DeleteAutoScalingGroup",
            "OlderVersions",
            "LaunchByOthers",
            "VersionByOthers",
            "Maintenance",
            "Rebalances",
            "Stop",
            "Unknown",
            "DeleteNode",
            "KubeletDown",
            "RejectCredentials",
            "WithdrawIdentity",
            "DeleteIdentity",
            "SwitchIdentity",
            "WorkloadUnreachable",
            "(story) ends with DeleteNamespace",
            "(story) has a second Cluster",
            "(story) has a second pool",
            "(story) its group's name is taken",
            "(story) adopts a group",
            "Field: NameFreed",
            "Field: TemplateGone",
            "Field: Attach",
            "Field: Reattach",
            "Field: LaunchesDie",
            "Field: LaunchHook",
            "Field: ImageGone",
            "Field: VersionUnknown",
            "Field: ReferencesLost",
            "LoseReplies",
            "ListAgain",
            "RestartInThePast",
            "RestartWithClockOff",
            "ClockSet",
        ] {
            let line = text.lines().find(|line| line.starts_with(kind));
            let stories = line.and_then(|line| line.split_whitespace().rev().nth(1)?.parse::<f64>().ok());
            assert!(stories.is_some_and(|stories| stories >= 1.0), "{kind}: {line:?}");
        }
    }
}
