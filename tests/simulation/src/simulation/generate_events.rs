//! Draws a queue of events into a story that was made without: from a sequence of its own, so that stories without one stay
//! as they are.

use capasg_api::pool::RebalanceRecommendationPolicy;

use super::{
    act::{Act, Story},
    placement::{gap, insert},
};
use crate::Random;

/// In every fourth story events come: late, twice, in another order, or not.
pub(super) fn some(story: &mut Story) {
    let random = Random::new(story.seed ^ 0x6576_656e_7473_0000);
    if !random.chance(25) {
        return;
    }
    story.setup.events = true;
    let settings = &mut story.setup.settings;
    settings.event_millis = [100, 500, 2_000][random.index(3)];
    settings.event_jitter_millis = [0, 1_000, 10_000, 120_000][random.index(4)];
    settings.event_twice_percent = [0, 0, 20, 100][random.index(4)];
    settings.event_lost_percent = [0, 0, 10, 50, 100][random.index(5)];
    if random.chance(40) {
        story.spec.rebalance_recommendation_policy = Some(RebalanceRecommendationPolicy::Replace);
    }
    for _ in 0..random.below(4) {
        let which = random.next();
        let act = match random.below(4) {
            0 => Act::Interrupt(which),
            1 | 2 => Act::Recommend(which),
            _ => Act::Retire(which),
        };
        insert(&random, story, vec![(gap(&random), act)]);
    }
}
