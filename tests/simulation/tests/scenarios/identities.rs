//! Several identities: which one a pool uses, what happens while it may not, and while AWS rejects the credentials.

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    conditions::CLOUD_REACHABLE,
    identity::{IdentityOrigin, IdentityReference},
};
use capasg_fake_aws::LogFilter;
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{SOON, reach, running};

const OTHER: &str = "999988887777";

fn role(account: &str) -> Value {
    json!({"type": "Role", "role": {"arn": format!("arn:aws:iam::{account}:role/capasg"), "externalID": "tenant"}})
}

fn uses(kind: &str, name: &str) -> IdentityReference {
    IdentityReference { kind: kind.to_owned(), name: name.to_owned() }
}

/// A pool with an identity of another account.
fn in_other(world: &mut World, name: &str, replicas: i32, kind: &str, identity: &str) -> Pool {
    let pool = world.add_pool_with(name, replicas, |spec| spec.identity_ref = Some(uses(kind, identity)));
    world.in_account(&pool, OTHER);
    pool
}

/// The accounts that were called since a mark.
fn accounts(world: &World, mark: u64) -> Vec<String> {
    let calls = world.simulator.log(&LogFilter::default().since(mark));
    let mut accounts: Vec<String> = calls.into_iter().map(|call| call.account).collect();
    accounts.sort();
    accounts.dedup();
    accounts
}

fn account_of(world: &World, pool: &Pool) -> Option<String> {
    let name = world.group_name(pool);
    let of = world.dumps().into_iter().find(|dump| dump.groups.iter().any(|group| group.name == name))?;
    Some(of.scope.account)
}

fn origin(world: &World, pool: &Pool) -> Option<IdentityOrigin> {
    Some(world.pool(pool)?.status.as_ref()?.identity.as_ref()?.origin)
}

/// Two pools with two identities live side by side in two accounts, each seen only with its own credentials.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn pools_of_two_accounts_live_side_by_side() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.identity("other", role(OTHER));
    let own = world.add_pool("workers", 2);
    let theirs = in_other(&mut world, "theirs", 3, "ASGIdentity", "other");
    reach(&mut world, &own, 2).await?;
    reach(&mut world, &theirs, 3).await?;
    ensure!(account_of(&world, &own).as_deref() == Some(capasg_fake_aws::DEFAULT_ACCOUNT));
    ensure!(account_of(&world, &theirs).as_deref() == Some(OTHER));
    ensure!(origin(&world, &own) == Some(IdentityOrigin::Manager));
    ensure!(origin(&world, &theirs) == Some(IdentityOrigin::Pool));
    world.scale(&theirs, 1);
    world.kill_process();
    reach(&mut world, &theirs, 1).await?;
    world.delete_machine_pool(&theirs);
    world.run_until("it is deleted", SOON, |world| world.pool(&theirs).is_none()).await?;
    ensure!(account_of(&world, &theirs).is_none());
    reach(&mut world, &own, 2).await
}

/// A pool of a namespace that the identity does not allow makes no call at all, says so, and can be deleted.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_allowed_is_refused_in_words() -> Result<()> {
    let mut world = World::new(Setup::default());
    let mut spec = role(OTHER);
    spec["allowedNamespaces"] = json!({"names": ["elsewhere"], "selector": {"matchLabels": {"team": "a"}}});
    world.identity("other", spec);
    let mark = world.mark();
    let pool = in_other(&mut world, "theirs", 3, "ASGIdentity", "other");
    world
        .run_until("it is told", SOON, |world| {
            world.says(&pool, CLOUD_REACHABLE, "False", "IdentityNotAllowed")
        })
        .await?;
    let message = world.condition(&pool, CLOUD_REACHABLE).context("a condition")?.message;
    ensure!(message.contains("ASGIdentity other does not allow namespace"), "{message}");
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(accounts(&world, mark).is_empty(), "no call: {:?}", accounts(&world, mark));
    world.delete_machine_pool(&pool);
    world.run_until("it is deleted", SOON, |world| world.pool(&pool).is_none()).await?;
    // The labels of the namespace may allow it.
    let pool = in_other(&mut world, "theirs", 3, "ASGIdentity", "other");
    world.run_for(TimeDelta::minutes(2)).await?;
    world.label_namespace(&[("team", "a")]);
    reach(&mut world, &pool, 3).await?;
    world.finish()
}

/// An identity that disallows the namespace of a running pool, or is deleted, changes nothing of it; nothing counts as
/// absent, and the pool continues once it is allowed again.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn an_identity_that_is_withdrawn_stops_every_call() -> Result<()> {
    for deleted in [true, false] {
        let mut world = World::new(Setup::default());
        world.identity("other", role(OTHER));
        let pool = in_other(&mut world, "theirs", 3, "ASGIdentity", "other");
        reach(&mut world, &pool, 3).await?;
        let before = world.in_service(&pool);
        let reason = if deleted {
            world.delete_identity("other");
            "IdentityNotFound"
        } else {
            let mut spec = role(OTHER);
            spec["allowedNamespaces"] = json!({});
            world.identity("other", spec);
            "IdentityNotAllowed"
        };
        world
            .run_until("it is told", SOON, |world| world.says(&pool, CLOUD_REACHABLE, "False", reason))
            .await?;
        let mark = world.mark();
        world.scale(&pool, 5);
        world.run_for(TimeDelta::minutes(20)).await?;
        world.kill_process();
        world.delete_machine_pool(&pool);
        world.run_for(TimeDelta::minutes(20)).await?;
        ensure!(accounts(&world, mark).is_empty(), "no call: {:?}", accounts(&world, mark));
        ensure!(world.pool(&pool).is_some() && world.in_service(&pool) == before, "{}", world.describe());
        world.identity("other", role(OTHER));
        world.run_until("it is deleted", TimeDelta::hours(1), |world| world.pool(&pool).is_none()).await?;
        ensure!(account_of(&world, &pool).is_none());
    }
    Ok(())
}

/// Credentials that expire, are revoked or rotate are a condition of the pools that use them, and of no other; with kill -9
/// in between nothing is taken for absent.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn rejected_credentials_are_a_condition_and_never_an_absence() -> Result<()> {
    for code in ["ExpiredToken", "AccessDenied", "InvalidClientTokenId", "AuthFailure"] {
        let mut world = World::new(Setup::default());
        world.identity("other", role(OTHER));
        let own = world.add_pool("workers", 2);
        let pool = in_other(&mut world, "theirs", 3, "ASGIdentity", "other");
        reach(&mut world, &own, 2).await?;
        reach(&mut world, &pool, 3).await?;
        let (before, machines) = (world.in_service(&pool), world.machines(&pool).len());
        world.reject_credentials("ASGIdentity/other", Some(code));
        world
            .run_until("it is told", SOON, |world| {
                world.says(&pool, CLOUD_REACHABLE, "False", "AccessDenied")
            })
            .await
            .with_context(|| code.to_owned())?;
        world.kill_process();
        let mark = world.mark();
        world.run_for(TimeDelta::minutes(20)).await?;
        world.kill_process();
        world.run_for(TimeDelta::minutes(20)).await?;
        ensure!(world.says(&pool, CLOUD_REACHABLE, "False", "AccessDenied"));
        ensure!(world.says(&own, CLOUD_REACHABLE, "True", "CloudReachable"), "the other one is not affected");
        ensure!(accounts(&world, mark) == [capasg_fake_aws::DEFAULT_ACCOUNT], "{:?}", accounts(&world, mark));
        ensure!(world.in_service(&pool) == before && world.machines(&pool).len() == machines);
        world.reject_credentials("ASGIdentity/other", None);
        world.scale(&pool, 4);
        reach(&mut world, &pool, 4).await?;
        ensure!(world.in_service(&pool).is_superset(&before), "nothing was replaced");
    }
    Ok(())
}

/// Keys rotate in their Secret without a restart; another account is refused.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn keys_rotate_without_a_restart_and_never_to_another_account() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.access_key("keys", OTHER, 1);
    world.identity("keys", json!({"type": "Secret", "secret": {"name": "keys"}}));
    let pool = in_other(&mut world, "theirs", 2, "ASGIdentity", "keys");
    reach(&mut world, &pool, 2).await?;
    let before = world.in_service(&pool);
    world.access_key("keys", OTHER, 2);
    world.run_for(TimeDelta::minutes(1)).await?;
    let mark = world.mark();
    world.check_identities().await;
    world.run_for(TimeDelta::minutes(1)).await?;
    let read = world.calls_since(mark, Some("DescribeAutoScalingGroups"));
    ensure!(!read.is_empty(), "the new key is used");
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    ensure!(world.in_service(&pool).is_superset(&before), "nothing was replaced");
    let mark = world.mark();
    world.access_key("keys", "111122223333", 3);
    world
        .run_until("it is told", TimeDelta::hours(1), |world| {
            world.says(&pool, CLOUD_REACHABLE, "False", "AccessDenied")
        })
        .await?;
    let message = world.condition(&pool, CLOUD_REACHABLE).context("a condition")?.message;
    ensure!(message.contains("111122223333") && message.contains(OTHER), "{message}");
    world.scale(&pool, 1);
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(world.simulator.log(&LogFilter::default().since(mark).mutations()).is_empty());
    ensure!(world.in_service(&pool).is_superset(&before), "{}", world.describe());
    world.access_key("keys", OTHER, 4);
    reach(&mut world, &pool, 1).await
}

/// Another identity of the same account applies in place.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn another_identity_of_the_same_account_applies_in_place() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 3).await?;
    let before = world.in_service(&pool);
    world.identity("same", role(capasg_fake_aws::DEFAULT_ACCOUNT));
    world.edit_pool(&pool, |pool| pool.spec.identity_ref = Some(uses("ASGIdentity", "same")));
    world.run_until("it is used", SOON, |world| origin(world, &pool) == Some(IdentityOrigin::Pool)).await?;
    world.scale(&pool, 4);
    reach(&mut world, &pool, 4).await?;
    ensure!(world.in_service(&pool).is_superset(&before), "nothing was replaced");
    world.finish()
}

/// The pool's identity, then the default of the namespace, then the manager's, as far as an operator allows them.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn the_default_of_the_namespace_applies_to_pools_without_an_identity() -> Result<()> {
    let mut world = World::new(Setup::default());
    let mut spec = role(OTHER);
    spec["selectionPolicy"] = json!("Default");
    world.identity("other", spec.clone());
    let pool = world.add_pool("workers", 2);
    world.in_account(&pool, OTHER);
    reach(&mut world, &pool, 2).await?;
    ensure!(account_of(&world, &pool).as_deref() == Some(OTHER));
    ensure!(origin(&world, &pool) == Some(IdentityOrigin::Namespace));
    world.identity("second", spec);
    world
        .run_until("it is told", SOON, |world| {
            world.says(&pool, CLOUD_REACHABLE, "False", "IdentityAmbiguous")
        })
        .await?;
    world.delete_identity("second");
    world.run_until("it continues", SOON, |world| world.is_running(&pool, 2)).await?;

    // Once an operator says who has the manager's credentials, no other namespace has them.
    world.identity("manager", json!({"type": "Controller", "allowedNamespaces": {"names": ["elsewhere"]}}));
    world.delete_identity("other");
    world
        .run_until("it is told", SOON, |world| {
            world.says(&pool, CLOUD_REACHABLE, "False", "IdentityNotAllowed")
        })
        .await
}

/// The identities of Cluster API Provider AWS have its rules, and its controller's identity gives nobody our manager's
/// credentials.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn identities_of_the_aws_provider_have_its_rules() -> Result<()> {
    let mut world = World::new(Setup::default());
    let arn = format!("arn:aws:iam::{OTHER}:role/capa");
    let kind = "AWSClusterRoleIdentity";
    world.provider_identity(kind, "none", json!({"roleARN": arn}));
    world.provider_identity(kind, "all", json!({"roleARN": arn, "allowedNamespaces": {}}));
    let controller = json!({"allowedNamespaces": {}});
    world.provider_identity("AWSClusterControllerIdentity", "default", controller);
    let refused = world.add_pool_with("refused", 1, |spec| spec.identity_ref = Some(uses(kind, "none")));
    let allowed = in_other(&mut world, "allowed", 1, kind, "all");
    let manager = world.add_pool_with("manager", 1, |spec| {
        spec.identity_ref = Some(uses("AWSClusterControllerIdentity", "default"));
    });
    reach(&mut world, &allowed, 1).await?;
    ensure!(account_of(&world, &allowed).as_deref() == Some(OTHER));
    for pool in [&refused, &manager] {
        ensure!(world.says(pool, CLOUD_REACHABLE, "False", "IdentityNotAllowed"), "{}", world.describe());
    }
    world.identity("manager", json!({"type": "Controller"}));
    reach(&mut world, &manager, 1).await?;
    ensure!(account_of(&world, &manager).as_deref() == Some(capasg_fake_aws::DEFAULT_ACCOUNT));
    Ok(())
}

/// A chain is assumed from its first identity on; one that refers to itself is refused.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn a_chain_of_roles_ends() -> Result<()> {
    let mut world = World::new(Setup::default());
    let chained = |arn: &str, from: &str| json!({"type": "Role", "role": {"arn": arn, "sourceIdentityRef": {"name": from}}});
    world.identity("loop", chained("arn:aws:iam::999988887777:role/a", "loop"));
    let pool = in_other(&mut world, "workers", 1, "ASGIdentity", "loop");
    world
        .run_until("it is told", SOON, |world| {
            world.says(&pool, CLOUD_REACHABLE, "False", "IdentityNotUsable")
        })
        .await?;
    world.identity("loop", chained("arn:aws:iam::999988887777:role/a", "missing"));
    world
        .run_until("it is told", SOON, |world| {
            world.says(&pool, CLOUD_REACHABLE, "False", "IdentityNotFound")
        })
        .await?;
    world.identity("missing", role("111122223333"));
    reach(&mut world, &pool, 1).await?;
    ensure!(account_of(&world, &pool).as_deref() == Some(OTHER));
    Ok(())
}

/// The status of an identity names its account while AWS accepts the credentials, and what is wrong while not.
// Rules: T1
#[tokio::test(start_paused = true)]
async fn the_status_of_an_identity_is_what_aws_says() -> Result<()> {
    let mut world = World::new(Setup::default());
    world.identity("other", role(OTHER));
    world.identity("keys", json!({"type": "Secret", "secret": {"name": "missing"}}));
    let pool = in_other(&mut world, "theirs", 1, "ASGIdentity", "other");
    reach(&mut world, &pool, 1).await?;
    let ready = |world: &World, name: &str| {
        let status = world.identity_status(name).unwrap_or_default();
        let ready = status.conditions.first().map(|one| format!("{}/{}", one.status, one.reason));
        (status.account, ready.unwrap_or_default())
    };
    world.check_identities().await;
    ensure!(ready(&world, "other") == (Some(OTHER.to_owned()), "True/IdentityReady".to_owned()));
    ensure!(ready(&world, "keys") == (None, "False/IdentityNotUsable".to_owned()));
    world.reject_credentials("ASGIdentity/other", Some("ExpiredToken"));
    world.run_for(TimeDelta::minutes(5)).await?;
    world.check_identities().await;
    ensure!(ready(&world, "other").1 == "False/AccessDenied", "{:?}", ready(&world, "other"));
    world.reject_credentials("ASGIdentity/other", None);
    world.run_for(TimeDelta::minutes(5)).await?;
    world.check_identities().await;
    ensure!(ready(&world, "other").1 == "True/IdentityReady", "{:?}", ready(&world, "other"));
    Ok(())
}
