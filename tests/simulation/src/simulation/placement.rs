//! Where acts stand in a story.

use super::act::{Act, Story};
use crate::Random;

/// The time until the next act, in milliseconds.
pub(super) fn gap(random: &Random) -> i64 {
    let (from, to): (u64, u64) = match random.below(100) {
        0..30 => (0, 2_000),
        30..65 => (2_000, 30_000),
        65..92 => (30_000, 120_000),
        _ => (120_000, 900_000),
    };
    (from + random.below(to - from)).cast_signed()
}

/// A shorter time, of a minute at most.
pub(super) fn soon(random: &Random) -> i64 {
    random.below(60_000).cast_signed()
}

/// A kind of acts that some stories have: a sequence of its own, so that stories without it stay as they are; in how many
/// of a hundred stories it occurs; and what it draws, with the times between the acts in milliseconds.
pub(super) type Kind = (u64, u64, fn(&Random, &mut Story) -> Vec<(i64, Act)>);

/// Puts the acts of those kinds into a story that occur in it.
pub(super) fn insert_some(kinds: &[Kind], story: &mut Story) {
    for (sequence, percent, kind) in kinds {
        let random = Random::new(story.seed ^ sequence);
        if random.chance(*percent) {
            let acts = kind(&random, story);
            insert(&random, story, acts);
        }
    }
}

/// Puts acts somewhere into a story, one after the other.
pub(super) fn insert(random: &Random, story: &mut Story, acts: Vec<(i64, Act)>) {
    let at = random.index(story.acts.len() + 1);
    story.acts.splice(at..at, acts);
}

/// One of them.
pub(super) fn one(of: impl IntoIterator<Item = String>, which: u64) -> Option<String> {
    let all: Vec<String> = of.into_iter().collect();
    let length = u64::try_from(all.len()).ok().filter(|length| *length > 0)?;
    all.into_iter().nth(usize::try_from(which % length).ok()?)
}
