//! Draws what happens, with what ends it where it must end.

use super::{
    act::{Act, Failure, SpecEdit},
    placement::gap,
    spec::{
        IMAGES, SUBNETS, TYPES, drain_timeout, max_disrupted, progress_deadline, rolling, some as some_of,
        windows,
    },
};
use crate::Random;

type Acts = Vec<(i64, Act)>;

/// Operations whose failure matters most.
const OPERATIONS: [&str; 12] = [
    "TerminateInstanceInAutoScalingGroup",
    "TerminateInstanceInAutoScalingGroup",
    "UpdateAutoScalingGroup",
    "SetDesiredCapacity",
    "CompleteLifecycleAction",
    "RecordLifecycleActionHeartbeat",
    "CreateAutoScalingGroup",
    "CreateLaunchTemplate",
    "CreateLaunchTemplateVersion",
    "DescribeAutoScalingGroups",
    "DescribeInstances",
    "*",
];

/// One thing more that happens, and what follows from it.
pub(super) fn some(random: &Random, size: i32, acts: &mut Acts) {
    let which = random.next();
    let act = match random.below(118) {
        0..16 => Act::Scale(replicas(random, size)),
        16..19 => Act::ScaleDownMarked((0..=random.below(2)).map(|_| random.next()).collect()),
        19..31 => Act::Spec(edit(random, size)),
        31..34 => Act::Version(["v1.36.3", "v1.37.0", "v1.35.4"][random.index(3)]),
        34..36 => Act::NodeDrainTimeout([None, Some(0), Some(5), Some(60), Some(600)][random.index(5)]),
        36 => Act::MinReady([0, 15, 60][random.index(3)]),
        37..39 => bootstrap(random, acts),
        39..42 => Act::DeleteMachine(which),
        42 => Act::DeleteAsgMachine(which),
        43..45 => Act::Mark(which),
        45 => Act::ExcludeDrain(which),
        46..49 => Act::MarkUnhealthy(which),
        49 => Act::Recover(which),
        50..54 => return lasting(random, acts, pause(random)),
        54..56 => return lasting(random, acts, (Act::Managed(true), Act::Managed(false))),
        56..59 => return lasting(random, acts, (Act::BlockDrain(which), Act::BlockDrains(false))),
        59 => return lasting(random, acts, (Act::BlockDrains(true), Act::BlockDrains(false))),
        60 => return lasting(random, acts, (Act::Mute(true), Act::Mute(false))),
        61..76 => cloud(random, size),
        76..90 => mishap(random, acts),
        90..100 => process(random),
        100..115 => return rollouts(random, size, acts),
        115 => return lasting(random, acts, (Act::Standby(which), Act::BackFromStandby)),
        116 => Act::Detach(which),
        _ => Act::Shield(which, random.chance(80)),
    };
    acts.push((gap(random), act));
}

/// What says when and how many are replaced, mostly while something is.
fn rollouts(random: &Random, size: i32, acts: &mut Acts) {
    let which = random.next();
    if random.chance(60) {
        acts.push((gap(random), image_edit(random)));
    }
    let between = |edit: fn(bool) -> SpecEdit| (Act::Spec(edit(true)), Act::Spec(edit(false)));
    let act = match random.below(15) {
        0..2 => Act::Spec(max_disrupted(random, size)),
        2..4 => Act::Spec(windows(random)),
        4..7 => return lasting(random, acts, between(SpecEdit::PauseRollouts)),
        7..10 => return lasting(random, acts, between(SpecEdit::Preview)),
        10 => Act::Replace(which),
        11 => Act::Shield(which, true),
        12 => Act::RolloutAfter([0, 0, 60, 600][random.index(4)]),
        13 if random.chance(50) => {
            acts.push((gap(random), Act::Spec(SpecEdit::Lifetime(Some(3600)))));
            acts.push((3_200_000 + random.below(800_000).cast_signed(), Act::Wait));
            return;
        }
        13 => Act::LetGoOn,
        _ => Act::Spec(progress_deadline(random)),
    };
    acts.push((gap(random), act));
}

/// One thing more that happens while everything goes.
pub(super) fn during_deletion(random: &Random, size: i32, acts: &mut Acts) {
    let which = random.next();
    let act = match random.below(100) {
        0..10 => Act::Scale(replicas(random, size)),
        10..20 => Act::DeleteMachine(which),
        20..25 => Act::DeleteAsgMachine(which),
        25..35 => Act::Kill(which),
        35..40 => Act::Unhealthy(which),
        40..45 => return lasting(random, acts, pause(random)),
        45..48 => return lasting(random, acts, (Act::BlockDrain(which), Act::BlockDrains(false))),
        48 => Act::Spec(SpecEdit::Preview(true)),
        49 => Act::Spec(SpecEdit::PauseRollouts(true)),
        50..55 => Act::DesiredByOthers(1),
        55..75 => mishap(random, acts),
        _ => process(random),
    };
    acts.push((gap(random) / 3, act));
}

/// It lasts for a while.
fn lasting(random: &Random, acts: &mut Acts, (begin, end): (Act, Act)) {
    acts.push((gap(random), begin));
    if random.chance(40) {
        some(random, 3, acts);
    }
    acts.push((gap(random), end));
}

fn replicas(random: &Random, size: i32) -> i32 {
    let most = u64::try_from(size).unwrap_or(0).max(3) * 3 / 2;
    if random.chance(10) { 0 } else { i32::try_from(random.below(most + 1)).unwrap_or(0) }
}

fn edit(random: &Random, size: i32) -> SpecEdit {
    match random.below(14) {
        0..3 => SpecEdit::Image(IMAGES[random.index(IMAGES.len())]),
        3 => SpecEdit::Volume([30, 40, 50][random.index(3)]),
        4 => SpecEdit::Types(some_of(random, &TYPES)),
        5 => SpecEdit::Subnets(some_of(random, &SUBNETS)),
        6 => SpecEdit::Tag(["a", "b", "c"][random.index(3)]),
        7 => rolling(random, size),
        8 => SpecEdit::OnDelete,
        9 => drain_timeout(random),
        10 => SpecEdit::HoldEnds(random.chance(60)),
        11 => SpecEdit::Bounds(
            random.chance(50).then_some(i32::try_from(random.below(3)).unwrap_or(0)),
            random.chance(50).then_some(size.max(3)),
        ),
        12 => SpecEdit::Newest(random.chance(50)),
        _ => SpecEdit::Remediate(random.chance(60)),
    }
}

fn bootstrap(random: &Random, acts: &mut Acts) -> Act {
    if random.chance(40) {
        acts.push((gap(random), Act::BootstrapEdit(["2", "3", "4"][random.index(3)])));
    }
    Act::Token
}

fn pause(random: &Random) -> (Act, Act) {
    if random.chance(60) {
        (Act::PauseCluster(true), Act::PauseCluster(false))
    } else {
        (Act::PausePool(true), Act::PausePool(false))
    }
}

fn cloud(random: &Random, size: i32) -> Act {
    let which = random.next();
    match random.below(22) {
        0..4 => Act::Kill(which),
        4 => Act::Impair(which),
        5..9 => Act::Unhealthy(which),
        9 => Act::Interrupt(which),
        10..13 => Act::EndByOthers(which, random.chance(50)),
        13..15 => Act::DesiredByOthers(random.below(7).cast_signed() - 3),
        15 => Act::BoundsByOthers(
            random.below(3).cast_signed(),
            i64::from(size) + random.below(4).cast_signed() - 1,
        ),
        16 => Act::HookGone,
        17 => Act::TagsGone,
        18 => Act::Unprotect(which),
        19 => Act::Suspend(["Launch", "Terminate", "ReplaceUnhealthy"][random.index(3)], true),
        20 => Act::Shortage(true),
        _ => Act::Wait,
    }
}

fn mishap(random: &Random, acts: &mut Acts) -> Act {
    let times = 1 + u32::try_from(random.below(4)).unwrap_or(0);
    match random.below(20) {
        0..11 => {
            let failure = match random.below(10) {
                0 => Failure::Throttled,
                1 => Failure::Internal,
                2 => Failure::Conflict,
                3 => Failure::Denied,
                4..7 => Failure::LostReply,
                7..9 => Failure::LostRequest,
                _ => Failure::Late(500 + random.below(15_000)),
            };
            // Most have no such call under way: what makes one follows at once.
            if random.chance(50) {
                acts.push((gap(random), Act::Wait));
            }
            Act::Fault(OPERATIONS[random.index(OPERATIONS.len())], failure, times.min(2))
        }
        11 => Act::EmptyLists(times),
        12 => Act::Hang(times),
        13 => Act::Throttle(true),
        14..16 => Act::Conflicts(times),
        16..18 => Act::ApiFailures(times),
        18 => Act::Freeze(random.index(6), true),
        _ => Act::CoreDown(true),
    }
}

fn process(random: &Random) -> Act {
    let count = |most| usize::try_from(random.below(most)).unwrap_or(0);
    match random.below(10) {
        0..2 => Act::Restart,
        2..5 => Act::CrashAfterWrite(1 + count(6)),
        5..8 => Act::CrashBeforeCall(1 + count(20)),
        8 => Act::LandLate(count(15), 100 + random.below(13_000)),
        _ => Act::LoseLease,
    }
}

/// Another image, or the same.
pub(super) fn image_edit(random: &Random) -> Act {
    Act::Spec(SpecEdit::Image(IMAGES[random.index(IMAGES.len())]))
}

/// Something after which an instance is launched.
pub(super) fn launches(random: &Random) -> Act {
    match random.below(3) {
        0 => Act::Kill(random.next()),
        1 => Act::Unhealthy(random.next()),
        _ => Act::DesiredByOthers(1),
    }
}
