//! Draws what others and AWS seldom do to a group: launches from other versions, launches before ends, stopped machines,
//! instances that AWS does not know, Nodes that are deleted or not ready. Each from a sequence of its own, so that stories without it stay as they are.

use capasg_api::pool::InstancesDistribution;

use super::{
    act::{Act, Story},
    generate_acts::image_edit,
    placement::{Kind, gap, insert_some},
    spec::IMAGES,
};
use crate::Random;

type Acts = Vec<(i64, Act)>;

const KINDS: [Kind; 5] = [
    (0x7665_7273_696f_6e73, 7, other_versions),
    (0x6669_7273_7400_0000, 8, launches_first),
    (0x7374_6f70_0000_0000, 8, stopped),
    (0x756e_6b6e_6f77_6e00, 7, unknown),
    (0x6e6f_6465_7300_0000, 15, nodes),
];

pub(super) fn some(story: &mut Story) {
    insert_some(&KINDS, story);
}

fn soon(random: &Random) -> i64 {
    random.below(40_000).cast_signed()
}

fn by_others(random: &Random) -> Act {
    if random.chance(60) {
        Act::LaunchByOthers(random.next())
    } else {
        Act::VersionByOthers(IMAGES[random.index(IMAGES.len())])
    }
}

/// New instances come from another version than the group is pinned to: AWS launches or reports an older one for a while,
/// or somebody edits what the group launches, again and again.
fn other_versions(random: &Random, _story: &mut Story) -> Acts {
    let mut acts = Vec::new();
    let launches = |random: &Random| match random.below(4) {
        0 => Act::Kill(random.next()),
        1 => Act::Unhealthy(random.next()),
        2 => Act::DesiredByOthers(1),
        _ => image_edit(random),
    };
    if random.chance(50) {
        acts.push((gap(random), Act::OlderVersions(true)));
        for _ in 0..=random.below(3) {
            acts.push((soon(random), launches(random)));
        }
        acts.push((gap(random), Act::OlderVersions(false)));
    } else {
        acts.push((gap(random), by_others(random)));
        for _ in 0..random.below(4) {
            acts.push((soon(random) / 4, launches(random)));
            acts.push((soon(random), by_others(random)));
        }
    }
    acts
}

/// Somebody has the group launch replacements before it ends what they replace; the controllers take that back sooner or
/// later, so that what is to be replaced comes at once.
fn launches_first(random: &Random, story: &mut Story) -> Acts {
    let mut acts = Vec::new();
    let rebalances = random.chance(40);
    if rebalances {
        // EC2 recommends to replace Spot instances only.
        story.spec.instances_distribution = Some(InstancesDistribution {
            on_demand_base_capacity: Some(0),
            on_demand_percentage_above_base_capacity: Some(0),
            ..InstancesDistribution::default()
        });
    }
    let (least, most) = [(100, 110), (100, 200), (90, 120), (50, 150)][random.index(4)];
    acts.push((gap(random), Act::Wait));
    for _ in 0..=random.below(3) {
        let begin = if rebalances { Act::Rebalances(true) } else { Act::Maintenance(least, most) };
        acts.push((soon(random), begin));
        for _ in 0..=random.below(2) {
            let which = random.next();
            let act = if rebalances { Act::Recommend(which) } else { Act::Unhealthy(which) };
            acts.push((random.below(8_000).cast_signed(), act));
        }
    }
    if random.chance(50) {
        let end = if rebalances { Act::Rebalances(false) } else { Act::Maintenance(-1, -1) };
        acts.push((soon(random), end));
    }
    acts
}

/// A user stops machines, perhaps while the group does not look at them or does not replace them.
fn stopped(random: &Random, _story: &mut Story) -> Acts {
    let process = ["HealthCheck", "ReplaceUnhealthy", "Launch"][random.index(3)];
    let suspended = random.chance(35);
    let mut acts = Vec::new();
    if suspended {
        acts.push((gap(random), Act::Suspend(process, true)));
    }
    for _ in 0..=random.below(2) {
        acts.push((if suspended { soon(random) } else { gap(random) }, Act::Stop(random.next())));
    }
    if random.chance(30) {
        acts.push((soon(random), image_edit(random)));
    }
    if suspended {
        acts.push((gap(random), Act::Suspend(process, false)));
    }
    acts
}

/// AWS does not know an instance for a while that goes together with others.
fn unknown(random: &Random, _story: &mut Story) -> Acts {
    let which = random.next();
    let mut acts = vec![(gap(random), Act::Unknown(which))];
    for _ in 0..=random.below(3) {
        acts.push((random.below(3_000).cast_signed(), Act::DeleteMachine(random.next())));
    }
    acts.push((random.below(3_000).cast_signed(), Act::ScaleDownMarked(vec![which, random.next()])));
    acts.push((gap(random), Act::Known));
    acts
}

/// Nodes are deleted or not ready for a while, or nobody knows, while other things happen.
fn nodes(random: &Random, story: &mut Story) -> Acts {
    story.spec.node_startup_timeout_seconds = [None, None, Some(0), Some(30), Some(60)][random.index(5)];
    let mut acts = vec![(gap(random), Act::Wait)];
    for _ in 0..=random.below(3) {
        let act = match random.below(6) {
            0 | 1 => Act::DeleteNode(random.next()),
            2 | 3 => Act::KubeletDown(random.next()),
            4 => Act::WorkloadUnreachable(true),
            _ => Act::Mute(true),
        };
        acts.push((soon(random), act));
        if random.chance(40) {
            acts.push((soon(random), image_edit(random)));
        }
        // Longer than any timeout, or shorter.
        acts.push((if random.chance(40) { 700_000 } else { soon(random) }, Act::Wait));
    }
    acts.push((gap(random), Act::Mute(false)));
    acts.push((gap(random), Act::HealNodes));
    acts
}
