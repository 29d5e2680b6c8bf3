//! Identities of a story: the pool lives in another account than that of the process, and its credentials are rejected,
//! withdrawn and exchanged. Drawn from a sequence of its own, so that stories without an identity stay as they are.

use capasg_api::identity::IdentityReference;
use serde_json::{Value, json};

use super::{
    act::{Act, Story},
    placement::{gap, insert},
};
use crate::{Pool, Random, World};

/// The account of the pool.
const ACCOUNT: &str = "999988887777";
/// Two identities of this account.
const NAMES: [&str; 2] = ["tenant-a", "tenant-b"];
/// How AWS rejects credentials ("Common errors" of the references of Auto Scaling, EC2 and STS).
const CODES: [&str; 4] = ["ExpiredToken", "AccessDenied", "InvalidClientTokenId", "AuthFailure"];

/// In every eighth story the pool has an identity.
pub(super) fn some(story: &mut Story) {
    let random = Random::new(story.seed ^ 0x6964_656e_7469_7479);
    if !random.chance(12) {
        return;
    }
    ACCOUNT.clone_into(&mut story.setup.account);
    story.spec.identity_ref = Some(reference(NAMES[0]));
    for _ in 0..=random.below(3) {
        let acts = meanwhile(&random);
        insert(&random, story, acts);
    }
    if random.chance(20) {
        story.last_acts.insert(0, (gap(&random) / 10, outage(&random)));
        story.last_acts.push((gap(&random), Act::RestoreIdentity));
    }
}

fn outage(random: &Random) -> Act {
    match random.below(5) {
        0..3 => Act::RejectCredentials(CODES[random.index(CODES.len())]),
        3 => Act::WithdrawIdentity,
        _ => Act::DeleteIdentity,
    }
}

/// Something is wrong with the identity for a while, and the process may die meanwhile; or another one is used.
fn meanwhile(random: &Random) -> Vec<(i64, Act)> {
    if random.chance(30) {
        return vec![(gap(random), Act::SwitchIdentity)];
    }
    let mut acts = vec![(gap(random), outage(random))];
    for (percent, act) in [
        (30, Act::Restart),
        (30, Act::Kill(random.next())),
        (20, Act::SwitchIdentity),
        (20, Act::DeleteMachine(random.next())),
        (20, outage(random)),
    ] {
        if random.chance(percent) {
            acts.push((gap(random), act));
        }
    }
    acts.push((gap(random), Act::RestoreIdentity));
    acts
}

fn reference(name: &str) -> IdentityReference {
    IdentityReference { kind: "ASGIdentity".to_owned(), name: name.to_owned() }
}

fn spec() -> Value {
    json!({"type": "Role", "role": {"arn": format!("arn:aws:iam::{ACCOUNT}:role/capasg"), "externalID": "tenant"}})
}

/// Creates the identities, or makes them what they were.
pub(super) fn restore(world: &World) {
    if world.scope().account != ACCOUNT {
        return;
    }
    for name in NAMES {
        world.identity(name, spec());
        world.reject_credentials(&format!("ASGIdentity/{name}"), None);
    }
}

/// Lets something happen to them.
pub(super) fn perform(world: &World, pool: &Pool, act: &Act) {
    match act {
        Act::RejectCredentials(code) => {
            for name in NAMES {
                world.reject_credentials(&format!("ASGIdentity/{name}"), Some(code));
            }
        }
        Act::WithdrawIdentity => {
            for name in NAMES {
                let mut spec = spec();
                spec["allowedNamespaces"] = json!({"names": ["elsewhere"]});
                world.identity(name, spec);
            }
        }
        Act::DeleteIdentity => NAMES.into_iter().for_each(|name| world.delete_identity(name)),
        Act::SwitchIdentity => world.edit_pool(pool, |pool| {
            let other = pool.spec.identity_ref.as_ref().is_some_and(|now| now.name == NAMES[0]);
            pool.spec.identity_ref = Some(reference(NAMES[usize::from(other)]));
        }),
        Act::RestoreIdentity => restore(world),
        _ => {}
    }
}
