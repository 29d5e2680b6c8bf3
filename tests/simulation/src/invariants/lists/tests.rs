//! What a pool may report of its group.

use anyhow::Result;

use crate::{World, run};

/// The rules that versions of a pool's status break, one after another, while it has no group.
fn broken(versions: &[(bool, bool)]) -> Result<Vec<&'static str>> {
    run(async {
        let mut world = World::judged();
        let pool = world.add_pool("workers", 1);
        for (ready, provisioned) in versions {
            world.edit_pool(&pool, |pool| {
                let status = pool.status.get_or_insert_default();
                (status.ready, status.initialization.provisioned) = (*ready, *provisioned);
            });
            world.invariants().unwrap().look();
        }
        world.invariants().unwrap().broken().into_iter().map(|violation| violation.rule).collect()
    })
}

#[test]
fn a_pool_without_a_group_is_not_ready() -> Result<()> {
    assert_eq!(broken(&[(false, false)])?, [""; 0]);
    assert_eq!(broken(&[(false, false), (true, true)])?, ["ready_follows_the_group"]);
    Ok(())
}

#[test]
fn ready_and_provisioned_are_equal_and_stay_true() -> Result<()> {
    let taken_back = "ready_is_never_taken_back";
    assert!(broken(&[(true, true), (false, false)])?.contains(&taken_back));
    assert!(broken(&[(true, false)])?.contains(&taken_back));
    assert!(broken(&[(false, true)])?.contains(&taken_back));
    assert!(!broken(&[(true, true), (true, true)])?.contains(&taken_back));
    Ok(())
}
