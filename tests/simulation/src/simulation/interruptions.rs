//! Interruptions: calls take time, in which everything else goes on, and what Sieve (OSDI 2022) found to break controllers:
//! writes without an answer, caches of the past, states that are never observed. They are drawn from a sequence of their own,
//! so that a seed has the same story otherwise.

use std::time::Duration;

use chrono::TimeDelta;

use super::{
    act::{Act, Story},
    placement::{gap, insert},
};
use crate::{Kind, Latency, Random, World};

/// How far a clock that nothing sets may be off.
const APART: i64 = 15;
/// Shorter than the shortest time-out of a call (`Limits::read_timeout`).
const TIME_OUT: Duration = Duration::from_secs(8);
/// A host whose clock was set to another time zone.
const AN_HOUR: i64 = 3600;

/// Adds interruptions to a story.
pub(super) fn some(story: &mut Story) {
    let random = Random::new(story.seed ^ 0x0069_6e74_6572);
    // The longest outlast the time-outs of the gateway.
    story.setup.latency = Some(latency(&random, &[2_000, 8_000, 25_000]));
    if random.chance(30) {
        story.setup.clock_off_seconds = if random.chance(50) { APART } else { -APART };
    }
    for _ in 0..random.below(3) {
        let act = match random.below(100) {
            0..40 => Act::LoseReplies(1 + u32::try_from(random.below(3)).unwrap_or(0)),
            40..70 => Act::ListAgain(random.index(Kind::ALL.len())),
            70..92 => {
                let (age, catches_up) = (2 + random.below(40), 200 + random.below(15_000));
                Act::RestartInThePast(age.cast_signed(), catches_up.cast_signed())
            }
            _ if random.chance(40) => Act::ClockSet(-AN_HOUR),
            _ => Act::RestartWithClockOff(-AN_HOUR),
        };
        let acts = vec![(gap(&random), act)];
        insert(&random, story, acts);
    }
}

/// How long calls take.
pub(super) fn latency(random: &Random, slow_millis: &[u64]) -> Latency {
    Latency {
        typical_millis: [20, 60, 150, 600][random.index(4)],
        slow_per_thousand: [0, 5, 20, 60][random.index(4)],
        slow_millis: slow_millis[random.index(slow_millis.len())],
    }
}

/// Lets one happen.
pub(super) fn perform(world: &mut World, act: &Act) {
    match act {
        Act::LoseReplies(count) => world.lose_kubernetes_replies(*count),
        Act::ListAgain(kind) => world.list_again(Kind::ALL[*kind]),
        Act::RestartInThePast(age, catches_up) => {
            world.restart_in_the_past(TimeDelta::seconds(*age), TimeDelta::milliseconds(*catches_up));
        }
        Act::ClockSet(seconds) => world.set_clock_off(TimeDelta::seconds(*seconds)),
        Act::RestartWithClockOff(seconds) => world.restart_with_clock_off(TimeDelta::seconds(*seconds)),
        _ => {}
    }
}

/// A clock that is an hour off is set right, and no call outlasts its time-out any longer. Calls go on to take time, and
/// clocks to be seconds apart.
pub(super) fn end(world: &mut World) {
    world.keep_calls_within(TIME_OUT);
    if world.clock.off().abs() > TimeDelta::seconds(APART) {
        world.restart_with_clock_off(TimeDelta::zero());
    }
}
