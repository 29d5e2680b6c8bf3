//! Draws what has to do with instance refreshes, into a story that was made without: from a sequence of its own, so that
//! stories without any stay as they are.

use capasg_api::pool::{InstanceRefresh, OnRefreshFailure, StandbyInstances};

use super::{
    act::{Act, Failure, SpecEdit, Story},
    generate_acts::image_edit,
    placement::{gap, insert},
    spec::{self, ALARM, TYPES, max_disrupted, rolling, some as some_of, windows},
};
use crate::Random;

type Acts = Vec<(i64, Act)>;

/// What a refresh needs; its failures matter most.
const OPERATIONS: [&str; 5] = [
    "StartInstanceRefresh",
    "StartInstanceRefresh",
    "CancelInstanceRefresh",
    "RollbackInstanceRefresh",
    "DescribeInstanceRefreshes",
];

/// In every eighth story AWS replaces outdated instances, from the beginning or later; in a few others somebody has it
/// replace some.
pub(super) fn some(story: &mut Story, size: i32) {
    let random = Random::new(story.seed ^ 0x7265_6672_6573_6800);
    let chosen = random.below(100);
    if chosen >= 16 {
        return;
    }
    if chosen >= 12 {
        let acts = vec![(gap(&random), by_others(&random))];
        return insert(&random, story, acts);
    }
    story.fixed = random.chance(50);
    if story.fixed {
        // Nobody renders anything anew.
        for (_, act) in &mut story.acts {
            if matches!(act, Act::Token | Act::BootstrapEdit(_)) {
                *act = Act::Wait;
            }
        }
    }
    spec::apply(&mut story.spec, &SpecEdit::HoldEnds(true));
    let refreshes = SpecEdit::Refresh(preferences(&random));
    if random.chance(75) {
        spec::apply(&mut story.spec, &refreshes);
    } else {
        insert(&random, story, vec![(gap(&random), Act::Spec(refreshes))]);
    }
    for _ in 0..=random.below(5) {
        let mut acts = Vec::new();
        if random.chance(70) {
            acts.push((gap(&random), image_edit(&random)));
        }
        meanwhile(&random, size, &mut acts);
        insert(&random, story, acts);
    }
}

fn by_others(random: &Random) -> Act {
    Act::RefreshByOthers([0, 50, 90][random.index(3)], random.chance(50))
}

/// What happens while AWS replaces instances, or so it is hoped.
fn meanwhile(random: &Random, size: i32, acts: &mut Acts) {
    let between = |edit: fn(bool) -> SpecEdit| (Act::Spec(edit(true)), Act::Spec(edit(false)));
    let (begin, end) = match random.below(26) {
        0..3 => (image_edit(random), None),
        3..5 => (Act::Spec(SpecEdit::Types(some_of(random, &TYPES))), Some(image_edit(random))),
        5..8 => (Act::Spec(SpecEdit::Refresh(preferences(random))), None),
        8 => (Act::Spec(rolling(random, size)), Some(Act::Spec(SpecEdit::Refresh(preferences(random))))),
        9 => (Act::Spec(SpecEdit::OnDelete), Some(Act::Spec(SpecEdit::Refresh(preferences(random))))),
        10..12 => (Act::CancelRefresh, Some(Act::LetGoOn)),
        12 => (Act::CancelRefresh, None),
        13 => (Act::RollRefreshBack, Some(Act::LetGoOn)),
        14 => (by_others(random), random.chance(50).then_some(Act::CancelRefresh)),
        15..17 => (Act::Alarm(true), Some(Act::Alarm(false))),
        17..20 => {
            let (begin, end) = between(SpecEdit::PauseRollouts);
            (begin, Some(end))
        }
        20 => {
            let (begin, end) = between(SpecEdit::Preview);
            (begin, Some(end))
        }
        21 => (Act::Spec(windows(random)), None),
        22 => (Act::Spec(max_disrupted(random, size)), Some(Act::Scale(size + 2))),
        23 => (Act::Suspend("InstanceRefresh", true), Some(Act::Suspend("InstanceRefresh", false))),
        _ => (fault(random), random.chance(50).then(|| image_edit(random))),
    };
    acts.push((gap(random), begin));
    if let Some(end) = end {
        acts.push((gap(random), end));
    }
}

fn fault(random: &Random) -> Act {
    let failure = match random.below(8) {
        0 => Failure::Throttled,
        1 => Failure::Internal,
        2 => Failure::Conflict,
        3 => Failure::Denied,
        4 | 5 => Failure::LostReply,
        6 => Failure::LostRequest,
        _ => Failure::Late(500 + random.below(15_000)),
    };
    Act::Fault(OPERATIONS[random.index(OPERATIONS.len())], failure, 1 + u32::from(random.chance(30)))
}

/// Preferences that admission takes, with waits that a life of a few hours has room for.
fn preferences(random: &Random) -> InstanceRefresh {
    let some = |percent, of: &[i32]| random.chance(percent).then(|| of[random.index(of.len())]);
    let min = some(50, &[0, 50, 66, 90, 100]);
    let checkpoints = [vec![100], vec![50, 100], vec![20, 60, 100]];
    let checkpoint_percentages = random.chance(20).then(|| checkpoints[random.index(3)].clone());
    InstanceRefresh {
        min_healthy_percentage: min,
        // At most 100 above the least.
        max_healthy_percentage: some(35, &[100, 110, 150, 200]).map(|max| max.min(min.unwrap_or(90) + 100)),
        instance_warmup_seconds: Some([0, 0, 15, 60][random.index(4)]),
        checkpoint_delay_seconds: checkpoint_percentages.as_ref().map(|_| [0, 60, 300][random.index(3)]),
        checkpoint_percentages,
        bake_time_seconds: some(15, &[0, 30, 300]),
        alarms: random.chance(40).then(|| vec![ALARM.to_owned()]),
        standby_instances: random
            .chance(40)
            .then(|| [StandbyInstances::Terminate, StandbyInstances::Ignore][random.index(2)]),
        on_failure: random.chance(40).then_some(OnRefreshFailure::RollBack),
    }
}

#[cfg(test)]
mod tests {
    use capasg_api::{
        ASGMachinePoolSpec,
        pool::{OnCloudTermination, RolloutType},
    };

    use super::*;

    /// As the definition's rules say it.
    fn is_admitted(spec: &ASGMachinePoolSpec) -> bool {
        let strategy = spec.rollout.as_ref().and_then(|rollout| rollout.strategy.clone()).unwrap_or_default();
        let refreshes = strategy.type_ == Some(RolloutType::InstanceRefresh);
        let ignores = spec.drain.as_ref().and_then(|drain| drain.on_cloud_termination)
            == Some(OnCloudTermination::Ignore);
        let preferences = strategy.instance_refresh.clone().unwrap_or_default();
        let least = preferences.min_healthy_percentage.unwrap_or(90);
        !(refreshes && ignores)
            && (refreshes || strategy.instance_refresh.is_none())
            && (strategy.rolling_update.is_none() || strategy.type_ == Some(RolloutType::RollingUpdate))
            && preferences.max_healthy_percentage.is_none_or(|most| (100..=least + 100).contains(&most))
            && preferences.checkpoint_percentages.is_none_or(|all| all.last() == Some(&100))
    }

    #[test]
    fn scenarios_pass_admission_and_one_in_eight_uses_refreshes() {
        let mut count = 0;
        for seed in 0..4000 {
            let story = Story::of(seed);
            let mut spec = story.spec.clone();
            assert!(is_admitted(&spec), "seed {seed}: {spec:?}");
            let mut refreshes = spec::refreshes(&spec);
            for (_, act) in &story.acts {
                if let Act::Spec(edit) = act {
                    spec::apply(&mut spec, edit);
                    assert!(is_admitted(&spec), "seed {seed} after {edit:?}: {spec:?}");
                    refreshes |= spec::refreshes(&spec);
                }
            }
            count += usize::from(refreshes);
        }
        assert!((400..560).contains(&count), "{count}");
    }
}
