//! A queue of events: what is sent for each method, and how it looks through the unchanged SDK and the simulator.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use capasg_cloud::{Capacity, CloudEvent, ErrorClass, EventKind, NoticeKind, Write};
use capasg_fake_aws::{Scope, Settings};
use serde_json::{Value, json};

use crate::{
    fixtures::GROUP,
    replay::{REGION, Replay, Reply, refused},
    world::{ACCOUNT, World, group_of, template},
};

const URL: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/capasg";
const HIDDEN: Duration = Duration::from_secs(30);

fn body(replay: &Replay) -> Result<(String, Value)> {
    let sent = replay.only()?;
    assert_eq!(sent.service, "sqs");
    Ok((sent.action, serde_json::from_str(&sent.body)?))
}

fn read(body: &str) -> Result<CloudEvent> {
    CloudEvent::parse(body).map_err(|error| anyhow::anyhow!("{error:?}"))
}

#[tokio::test]
async fn a_receive_polls_long_and_says_how_often_a_message_came() -> Result<()> {
    let answer = json!({"Messages": [
        {"MessageId": "m", "ReceiptHandle": "r", "Body": "{}", "Attributes": {"ApproximateReceiveCount": "3"}},
        {"MessageId": "n", "ReceiptHandle": "s", "Body": "x"},
    ]});
    let replay = Replay::new([Reply::ok(&answer.to_string())]);
    let messages = replay.queues().receive(URL, Duration::from_secs(20), HIDDEN).await?;
    let sent = json!({
        "QueueUrl": URL,
        "MaxNumberOfMessages": 10,
        "WaitTimeSeconds": 20,
        "VisibilityTimeout": 30,
        "MessageSystemAttributeNames": ["ApproximateReceiveCount"],
    });
    assert_eq!(body(&replay)?, ("ReceiveMessage".to_owned(), sent));
    let seen: Vec<_> =
        messages.iter().map(|one| (one.id.as_str(), one.receipt.as_str(), one.receive_count)).collect();
    assert_eq!(seen, [("m", "r", 3), ("n", "s", 1)]);
    assert!(!format!("{messages:?}").contains("body"), "nobody knows who sent it");
    Ok(())
}

#[tokio::test]
async fn a_delete_that_fails_in_part_is_told() -> Result<()> {
    let answer = json!({
        "Successful": [{"Id": "0"}],
        "Failed": [{"Id": "1", "SenderFault": true, "Code": "ReceiptHandleIsInvalid", "Message": "no"}],
    });
    let replay = Replay::new([Reply::ok(&answer.to_string())]);
    let error = refused(replay.queues().delete(URL, &["a".to_owned(), "b".to_owned()]).await)?;
    assert_eq!((error.code.as_str(), error.class), ("ReceiptHandleIsInvalid", ErrorClass::Invalid));
    let entries = json!([{"Id": "0", "ReceiptHandle": "a"}, {"Id": "1", "ReceiptHandle": "b"}]);
    let sent = json!({"QueueUrl": URL, "Entries": entries});
    assert_eq!(body(&replay)?, ("DeleteMessageBatch".to_owned(), sent));
    Ok(())
}

#[tokio::test]
async fn what_keeps_a_queue_from_being_read_has_its_class() -> Result<()> {
    for (status, code, class) in [
        (400, "com.amazonaws.sqs#QueueDoesNotExist", ErrorClass::NotFound),
        (403, "AccessDenied", ErrorClass::Denied),
        (400, "RequestThrottled", ErrorClass::Throttled),
        (500, "InternalError", ErrorClass::Transient),
    ] {
        let answer = json!({"__type": code, "message": "no"}).to_string();
        let replay = Replay::new([Reply::Answer(status, answer)]);
        let error = refused(replay.queues().url("capasg").await)?;
        assert_eq!((error.class, error.message.as_str()), (class, "no"), "{code}");
        assert_eq!(body(&replay)?.1, json!({"QueueName": "capasg"}));
    }
    Ok(())
}

#[tokio::test]
async fn events_of_a_group_come_through_the_queue_until_they_are_deleted() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let scope = Scope::account(ACCOUNT, REGION);
    let error = refused(world.queues.url("capasg").await)?;
    assert_eq!(error.class, ErrorClass::NotFound);
    world.simulator.put_queue(&scope, "capasg");
    world.simulator.put_rule(&scope, "capasg", json!({"source": ["aws.autoscaling"]}));
    world.simulator.put_rule(&scope, "capasg", json!({"detail-type": [{"prefix": "EC2 Spot"}]}));
    let url = world.queues.url("capasg").await?;
    let receive = async || world.queues.receive(&url, Duration::ZERO, HIDDEN).await;
    assert_eq!(receive().await?, []);

    let id = template(&world, GROUP).await?;
    let mut create = group_of(&id, 1);
    create.capacity = Capacity { min: 0, max: 3, desired: 1 };
    create.hooks.clear();
    world.done(Write::CreateGroup(Box::new(create))).await?;
    world.pass(60);
    let event = read(&receive().await?.first().context("a message")?.body)?;
    assert_eq!((event.kind, event.group.as_deref()), (EventKind::Launched, Some(GROUP)));
    assert_eq!((event.account.as_str(), event.region.as_str()), (ACCOUNT, REGION));
    let instance = world.group().await?.instances[0].id.clone();
    assert_eq!(event.instances, std::slice::from_ref(&instance));

    assert_eq!(receive().await?, [], "hidden");
    world.pass(31);
    let again = receive().await?;
    assert_eq!((again.len(), again[0].receive_count), (1, 2));
    world.queues.delete(&url, &[again[0].receipt.clone()]).await?;
    world.pass(31);
    assert_eq!(receive().await?, []);

    assert!(world.simulator.interrupt(&scope, &instance));
    world.pass(1);
    let warning = read(&receive().await?.first().context("a warning")?.body)?;
    assert_eq!(warning.kind.notice_kind(), Some(NoticeKind::SpotInterruption));
    assert_eq!(warning.instances, [instance]);
    Ok(())
}

/// A connection that stands still is no fault here.
#[tokio::test]
async fn a_receive_waits_for_a_message() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let url = world.simulator.put_queue(&Scope::account(ACCOUNT, REGION), "capasg");
    let begun = Instant::now();
    let messages = world.queues.receive(&url, Duration::from_secs(2), HIDDEN).await?;
    assert_eq!(messages, []);
    assert!(begun.elapsed() >= Duration::from_secs(2), "it waited");
    Ok(())
}
