//! A second pool of the same Cluster, or of another one: it shares credentials, polls, caches and failures with the first, and
//! what happens to one of them must not change the other. Drawn from a sequence of its own, so that stories without one stay
//! as they are.

use super::{
    act::{Act, SecondPool, Story},
    generate_acts::image_edit,
    placement::{gap, insert},
    spec,
};
use crate::Random;

/// With more replicas of the first pool a story takes long enough.
const LARGE: i32 = 20;

/// Adds a second pool to every sixth story.
pub(super) fn some(story: &mut Story) {
    let random = Random::new(story.seed ^ 0x7365_636f_6e64_0000);
    if story.replicas > LARGE || !random.chance(17) {
        return;
    }
    let replicas = size(&random);
    let mut spec = spec::spec(&random, replicas);
    spec.identity_ref.clone_from(&story.spec.identity_ref);
    // It goes last, and nothing is left then.
    spec.deletion_policy = None;
    let elsewhere = random.chance(50);
    story.second = Some(SecondPool { elsewhere, spec, replicas });
    for _ in 0..=random.below(5) {
        let acts = vec![(gap(&random), Act::Second(Box::new(act(&random))))];
        insert(&random, story, acts);
    }
}

fn size(random: &Random) -> i32 {
    i32::try_from(random.below(5)).unwrap_or(1)
}

fn act(random: &Random) -> Act {
    let which = random.next();
    match random.below(10) {
        0..3 => Act::Scale(size(random)),
        3 => image_edit(random),
        4 => Act::Token,
        5 => Act::Kill(which),
        6 => Act::Unhealthy(which),
        7 => Act::DeleteMachine(which),
        8 => Act::Replace(which),
        _ if random.chance(30) => Act::PauseCluster(random.chance(50)),
        _ => Act::PausePool(random.chance(50)),
    }
}
