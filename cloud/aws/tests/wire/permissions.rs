//! The published IAM policy against what the adapter really calls.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use capasg_cloud::{ErrorClass, Selector};
use capasg_fake_aws::{LogFilter, Settings};
use serde_json::Value;

use crate::{
    fixtures::{every_write, set},
    replay::{Replay, Reply, Sent, refused},
    world::{ACCOUNT, World},
};

const POLICY: &str = include_str!("../../../../docs/iam-policy.json");
const POLICY_OF_THE_EXTENSION: &str = include_str!("../../../../docs/iam-policy-extension.json");
const QUEUE: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/capasg";
const QUEUE_PORT: &str = include_str!("../../../src/queue.rs");
const PORT: &str = include_str!("../../../src/port.rs");

/// What AWS checks on our behalf when a group with a launch template is made or changed (Auto Scaling user
/// guide, "Control Amazon EC2 launch template usage"), and on the first group and spot request of an account.
const INDIRECT: [&str; 3] = ["ec2:CreateTags", "ec2:RunInstances", "iam:CreateServiceLinkedRole"];

/// The same, of the roles that a user names: no policy without a name has it.
const NAMED: &str = "iam:PassRole";

/// Needs no permission.
const FREE: &str = "sts:GetCallerIdentity";

/// Calls every method of the port; whatever comes back does not matter.
async fn call_everything(replay: &Replay) -> Result<usize> {
    let cloud = replay.cloud();
    for write in every_write() {
        refused(cloud.write(&write).await)?;
    }
    let (one, ids) = (["x".to_owned()], Selector::Ids(set(&["x"])));
    let failures = [
        cloud.account().await.err(),
        cloud.groups(&one, None).await.err(),
        cloud.lifecycle_hooks("x").await.err(),
        cloud.scaling_activities("x", None).await.err(),
        cloud.instance_refreshes("x", None).await.err(),
        cloud.instances(&one, None).await.err(),
        cloud.instance_types(&one, None).await.err(),
        cloud.launch_template("x").await.err(),
        cloud.launch_templates("x", None).await.err(),
        cloud.latest_versions(None).await.err(),
        cloud.launch_template_versions("x", None).await.err(),
        cloud.subnets(&ids, None).await.err(),
        cloud.security_groups(&ids, None).await.err(),
        cloud.is_associated("x", "y").await.err(),
        cloud.image("x").await.err(),
        cloud.snapshot_gib("x").await.err(),
        cloud.parameter("x").await.err(),
    ];
    assert!(failures.iter().all(Option::is_some), "{failures:?}");
    Ok(failures.len() + 1)
}

/// Calls every method that the Runtime Extension calls; those that it shares with the manager are not counted.
async fn call_what_the_extension_calls(replay: &Replay) -> Result<usize> {
    let cloud = replay.cloud();
    let (one, ids) = (["x".to_owned()], Selector::Ids(set(&["x"])));
    let own = [
        cloud.type_offerings(&one, None).await.err(),
        cloud.subnet_addresses(&ids, None).await.err(),
        cloud.running_instances(None).await.err(),
        cloud.ec2_quota("x").await.err(),
    ];
    let shared = [
        cloud.account().await.err(),
        cloud.instance_types(&one, None).await.err(),
        cloud.subnets(&ids, None).await.err(),
        cloud.security_groups(&ids, None).await.err(),
        cloud.image("x").await.err(),
        cloud.parameter("x").await.err(),
    ];
    assert!(own.iter().chain(&shared).all(Option::is_some), "{own:?} {shared:?}");
    Ok(own.len())
}

async fn call_every_queue_method(replay: &Replay) -> Result<usize> {
    let queues = replay.queues();
    let (url, second) = (QUEUE, Duration::from_secs(1));
    let failures = [
        queues.url("capasg").await.err(),
        queues.receive(url, second, second).await.err(),
        queues.delete(url, &["r".to_owned()]).await.err(),
    ];
    assert!(failures.iter().all(Option::is_some), "{failures:?}");
    Ok(failures.len())
}

fn allowed(policy: &str) -> Result<BTreeSet<String>> {
    let policy: Value = serde_json::from_str(policy)?;
    let statements = policy["Statement"].as_array().context("Statement is a list")?;
    let mut actions = BTreeSet::new();
    for statement in statements {
        assert_eq!(statement["Effect"], "Allow");
        for action in statement["Action"].as_array().context("Action is a list")? {
            let action = action.as_str().context("an action is a string")?;
            actions.insert(action.to_owned());
        }
    }
    Ok(actions)
}

// Pains: W16
#[tokio::test]
async fn the_policy_allows_exactly_what_is_called() -> Result<()> {
    let replay = Replay::new([Reply::autoscaling_error(500, "InternalFailure", "")]);
    let methods = call_everything(&replay).await?;
    let extension = Replay::new([Reply::autoscaling_error(500, "InternalFailure", "")]);
    let methods = methods + call_what_the_extension_calls(&extension).await?;
    assert_eq!(methods, PORT.matches("    async fn ").count(), "a method of the port is not called here");

    let methods = call_every_queue_method(&replay).await?;
    assert_eq!(
        methods,
        QUEUE_PORT.matches("    async fn ").count(),
        "a method of the port is not called here"
    );

    let mut called = permissions(&replay)?;
    called.extend(INDIRECT.map(str::to_owned));
    assert_eq!(allowed(POLICY)?, called);
    assert!(!allowed(POLICY)?.contains(NAMED));
    assert_eq!(allowed(POLICY_OF_THE_EXTENSION)?, permissions(&extension)?);
    Ok(())
}

/// With the policy enforced, which does not allow the queues of the manager.
#[tokio::test]
async fn nothing_that_the_extension_reads_is_denied() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let policy: Value = serde_json::from_str(POLICY_OF_THE_EXTENSION)?;
    let user = format!("arn:aws:iam::{ACCOUNT}:user/simulated");
    world.simulator.set_policies(&user, &[policy]).map_err(anyhow::Error::msg)?;
    let (cloud, ids) = (&world.cloud, Selector::Ids(set(&["subnet-0a1b2c3d"])));
    cloud.account().await?;
    cloud.instance_types(&["m7i.large".to_owned()], None).await?;
    cloud.type_offerings(&["m7i.large".to_owned()], None).await?;
    cloud.subnets(&ids, None).await?;
    cloud.subnet_addresses(&ids, None).await?;
    cloud.security_groups(&Selector::Ids(set(&["sg-0a1b2c3d"])), None).await?;
    cloud.image("ami-0a1b2c3d").await?;
    cloud.parameter("/images/node/v1.36").await?;
    cloud.running_instances(None).await?;
    cloud.ec2_quota("L-1216C47A").await?;
    let refused = world.queues.url("capasg").await;
    ensure!(refused.is_err_and(|error| error.class == ErrorClass::Denied));
    let denied = world.simulator.counts(&LogFilter::default().denied());
    assert_eq!((denied.calls, denied.by_action.get("GetQueueUrl")), (1, Some(&1)), "{denied:?}");
    Ok(())
}

/// The permissions that the calls require.
fn permissions(replay: &Replay) -> Result<BTreeSet<String>> {
    // A batch is allowed by the permission of the single call.
    let permission = |sent: &Sent| {
        let action = if sent.service == "sqs" { sent.action.trim_end_matches("Batch") } else { &sent.action };
        format!("{}:{action}", sent.service)
    };
    let mut called: BTreeSet<String> = replay.sent().iter().map(permission).collect();
    ensure!(called.remove(FREE), "{called:?}");
    Ok(called)
}
