//! Which wish may still be acted on.

use anyhow::Result;
use capasg_cloud::Clock;
use chrono::TimeDelta;

use crate::{Kind, World, run};

#[test]
fn older_replicas_count_only_while_a_stalled_watch_shows_them() -> Result<()> {
    run(async {
        let mut world = World::judged();
        let pool = world.add_pool("workers", 1);
        world.api.state().deliver();
        let least = |world: &World| {
            let invariants = world.invariants().unwrap();
            invariants.look();
            let inner = invariants.inner();
            invariants.least(&inner, &pool, world.clock.now())
        };
        let wait = async |world: &World, seconds: i64| {
            world.clock.sleep_until(world.clock.now() + TimeDelta::seconds(seconds)).await;
        };
        assert_eq!(least(&world), Some(1));
        world.freeze(Kind::MachinePool, true);
        world.scale(&pool, 2);
        wait(&world, 60).await;
        world.api.state().deliver();
        assert_eq!(least(&world), Some(1), "nobody who reads the cache knows of the two");
        world.freeze(Kind::MachinePool, false);
        world.api.state().deliver();
        assert_eq!(least(&world), Some(1), "a decision made a moment ago");
        wait(&world, 11).await;
        assert_eq!(least(&world), Some(2));
    })
}
