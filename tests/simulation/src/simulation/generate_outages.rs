//! Draws calls of one operation that fail for minutes, with what needs that call meanwhile and tokens that go on being
//! rotated: from a sequence of its own, so that stories without any stay as they are.

use super::{
    act::{Act, Rejection, SpecEdit, Story},
    generate_acts::image_edit,
    placement::{gap, insert},
    spec,
};
use crate::Random;

type Acts = Vec<(i64, Act)>;

/// Every operation that a pool needs while it lives. One of them at a time fails.
pub(super) const OPERATIONS: [&str; 26] = [
    "TerminateInstanceInAutoScalingGroup",
    "CompleteLifecycleAction",
    "RecordLifecycleActionHeartbeat",
    "PutLifecycleHook",
    "DeleteLifecycleHook",
    "DescribeLifecycleHooks",
    "CreateOrUpdateTags",
    "DeleteTags",
    "SetInstanceProtection",
    "SuspendProcesses",
    "ResumeProcesses",
    "UpdateAutoScalingGroup",
    "SetDesiredCapacity",
    "CreateAutoScalingGroup",
    "CreateLaunchTemplate",
    "CreateLaunchTemplateVersion",
    "DeleteLaunchTemplateVersions",
    "DescribeLaunchTemplates",
    "DescribeLaunchTemplateVersions",
    "DescribeAutoScalingGroups",
    "DescribeScalingActivities",
    "DescribeInstances",
    "DescribeInstanceTypes",
    "DescribeSubnets",
    "DescribeSecurityGroups",
    "DescribeImages",
];

/// Those of a story with a queue, beside the others.
const OF_QUEUES: [&str; 3] = ["ReceiveMessage", "DeleteMessageBatch", "GetQueueUrl"];

/// Those of a story whose instances AWS replaces.
const OF_REFRESHES: [&str; 4] =
    ["StartInstanceRefresh", "CancelInstanceRefresh", "RollbackInstanceRefresh", "DescribeInstanceRefreshes"];

/// Those of a deletion.
const OF_DELETIONS: [&str; 7] = [
    "DeleteAutoScalingGroup",
    "DeleteLaunchTemplate",
    "DeleteLifecycleHook",
    "DescribeAutoScalingGroups",
    "DescribeLaunchTemplates",
    "TerminateInstanceInAutoScalingGroup",
    "UpdateAutoScalingGroup",
];

/// In every sixth story an operation fails for minutes; in every twentieth one does while everything is deleted.
pub(super) fn some(story: &mut Story) {
    let random = Random::new(story.seed ^ 0x6f75_7461_6765_7300);
    if random.chance(17) {
        if random.chance(60) {
            story.expiry = Some([300, 450][random.index(2)]);
        }
        for _ in 0..=u64::from(random.chance(25)) {
            let acts = outage(&random, story);
            insert(&random, story, acts);
        }
    }
    if random.chance(5) {
        let (operation, rejection) = (OF_DELETIONS[random.index(OF_DELETIONS.len())], rejection(&random));
        story.last_acts.insert(0, (gap(&random) / 10, Act::Outage(operation, rejection)));
        story.last_acts.push((random_gap(&random, 60, 900), Act::OutageEnds(operation, rejection)));
    }
}

fn random_gap(random: &Random, from: u64, to: u64) -> i64 {
    (1_000 * from + random.below(1_000 * (to - from))).cast_signed()
}

fn rejection(random: &Random) -> Rejection {
    [Rejection::Invalid, Rejection::Denied, Rejection::Internal, Rejection::Internal][random.index(4)]
}

fn operation(random: &Random, story: &Story) -> &'static str {
    if story.setup.events && random.chance(25) {
        return OF_QUEUES[random.index(OF_QUEUES.len())];
    }
    if spec::refreshes(&story.spec) && random.chance(30) {
        return OF_REFRESHES[random.index(OF_REFRESHES.len())];
    }
    OPERATIONS[random.index(OPERATIONS.len())]
}

/// An operation fails for 2 to some 25 minutes: what needs it comes soon after it began, then tokens are rotated.
fn outage(random: &Random, story: &Story) -> Acts {
    let (operation, rejection) = (operation(random, story), rejection(random));
    let mut acts = vec![(gap(random), Act::Outage(operation, rejection))];
    let soon = |random: &Random| random_gap(random, 0, 30);
    if random.chance(85) {
        acts.extend(needs(random, operation).into_iter().map(|act| (soon(random), act)));
    }
    if random.chance(30) {
        acts.push((soon(random), Act::Restart));
    }
    if !story.fixed {
        let often = if story.expiry.is_some() { 1 + random.below(3) } else { random.below(2) };
        for _ in 0..often {
            acts.push((random_gap(random, 60, 420), Act::Token));
            // Who boots now needs a token that is still valid.
            if random.chance(60) {
                acts.push((
                    soon(random),
                    [Act::Kill(random.next()), Act::Unhealthy(random.next())][random.index(2)].clone(),
                ));
            }
        }
    }
    acts.push((random_gap(random, 30, 600), Act::OutageEnds(operation, rejection)));
    acts
}

/// What makes the controllers call an operation.
fn needs(random: &Random, operation: &str) -> Vec<Act> {
    let which = random.next();
    let image = || image_edit(random);
    match operation {
        "TerminateInstanceInAutoScalingGroup" => {
            vec![Act::DeleteMachine(which), Act::MarkUnhealthy(which / 7)]
        }
        "CompleteLifecycleAction" | "RecordLifecycleActionHeartbeat" => {
            vec![Act::Unhealthy(which), Act::EndByOthers(which / 7, random.chance(50))]
        }
        "PutLifecycleHook" => {
            vec![[Act::HookGone, Act::Spec(SpecEdit::DrainTimeout(Some(777)))][random.index(2)].clone()]
        }
        "DeleteLifecycleHook" => vec![Act::Spec(SpecEdit::HoldEnds(false))],
        "DescribeLifecycleHooks" => vec![Act::HookGone, Act::Restart, Act::Unhealthy(which)],
        "CreateOrUpdateTags" => {
            vec![
                [Act::TagsGone, Act::Spec(SpecEdit::Tag(["a", "b", "c"][random.index(3)]))][random.index(2)]
                    .clone(),
            ]
        }
        "DeleteTags" => vec![Act::Spec(SpecEdit::Tag("a")), Act::Spec(SpecEdit::Tag("b"))],
        "SetInstanceProtection" => vec![Act::Unprotect(which), Act::Unprotect(which / 7)],
        "SuspendProcesses" => vec![Act::Suspend("AZRebalance", false)],
        "ResumeProcesses" => vec![Act::Suspend(["Terminate", "ReplaceUnhealthy"][random.index(2)], true)],
        "UpdateAutoScalingGroup" | "CreateLaunchTemplateVersion" | "DescribeLaunchTemplateVersions" => {
            vec![image(), Act::Token]
        }
        "SetDesiredCapacity" | "DescribeInstances" => vec![Act::Kill(which), Act::DesiredByOthers(1)],
        "DeleteLaunchTemplateVersions" => vec![image(), Act::Token, Act::Token],
        "DescribeScalingActivities" => vec![Act::Shortage(true), Act::Kill(which), Act::Shortage(false)],
        "StartInstanceRefresh" | "DescribeInstanceRefreshes" | "RollbackInstanceRefresh" => vec![image()],
        "CancelInstanceRefresh" => vec![image(), Act::Spec(SpecEdit::PauseRollouts(true))],
        "ReceiveMessage" | "DeleteMessageBatch" | "GetQueueUrl" => {
            vec![Act::Interrupt(which), Act::Kill(which / 7), Act::Restart]
        }
        _ => vec![Act::Restart, image()],
    }
}
