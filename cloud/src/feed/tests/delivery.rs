//! What is received, passed on and deleted, and what becomes of messages that cannot be.

use std::time::Duration;

use super::{Bench, FakeQueue, bench, bench_over};
use crate::{
    CloudError, EventKind, EventOutcome, NoticeKind,
    testing::{
        events::{event, event_of, health, launched, spot},
        group, pass,
    },
};

const SECOND: Duration = Duration::from_secs(1);

// Pains: W18, P20
#[tokio::test(start_paused = true)]
async fn an_event_has_its_group_read_at_once_and_is_deleted_then() {
    let bench = bench().await;
    let before = bench.polls();
    bench.cloud.put_group(group("a", &["i-a", "i-new"]));
    bench.queue.send(launched("a"));
    pass(SECOND).await;
    assert_eq!(bench.polls(), before + 1);
    assert_eq!(bench.inventory.view("a").group().unwrap().instances.len(), 2);
    pass(SECOND * 3).await;
    assert_eq!(bench.queue.len(), 0);
    assert_eq!(bench.taken(EventKind::Launched, EventOutcome::Processed), 1);
}

// Pains: W18
#[tokio::test(start_paused = true)]
async fn a_hundred_events_of_one_moment_share_reads() {
    let bench = bench().await;
    let before = bench.polls();
    for _ in 0..100 {
        bench.queue.send(launched("a"));
    }
    pass(SECOND * 5).await;
    assert_eq!(bench.queue.len(), 0);
    let polls = bench.polls() - before;
    assert!(polls <= 3, "{polls} reads for 100 events");
    assert_eq!(bench.taken(EventKind::Launched, EventOutcome::Processed), 100);
}

// Pains: W18
#[tokio::test(start_paused = true)]
async fn a_message_stays_while_its_group_cannot_be_read() {
    let bench = bench().await;
    let failing = CloudError::answered("DescribeAutoScalingGroups", 500, "InternalFailure", "");
    bench.cloud.upset("DescribeAutoScalingGroups", vec![crate::testing::Upset::Fail(failing); 4]);
    bench.queue.send(launched("a"));
    pass(SECOND * 2).await;
    assert_eq!(bench.queue.len(), 1, "nothing was seen yet");
    pass(SECOND * 120).await;
    assert_eq!(bench.queue.len(), 0);
}

// Pains: P17
#[tokio::test(start_paused = true)]
async fn a_warning_wakes_its_pool_and_stays_until_that_has_seen_it() {
    let bench = bench().await;
    let mut changes = bench.inventory.changes();
    let mark = bench.inventory.notice_revision("a");
    bench.queue.send(spot("i-a"));
    pass(SECOND).await;
    assert_eq!(changes.try_recv().unwrap(), "a");
    assert_eq!(bench.inventory.instance_notice("i-a").unwrap().kind, NoticeKind::SpotInterruption);
    // A reconcile that had begun before ends: it saw nothing of it.
    bench.inventory.acknowledge_notices("a", mark);
    pass(SECOND * 5).await;
    assert_eq!(bench.queue.len(), 1);
    bench.inventory.acknowledge_notices("a", bench.inventory.notice_revision("a"));
    pass(SECOND * 5).await;
    assert_eq!(bench.queue.len(), 0);
}

// Pains: P17
#[tokio::test(start_paused = true)]
async fn a_warning_that_nobody_sees_comes_again_and_is_given_up_at_last() {
    let bench = bench().await;
    bench.queue.send(spot("i-a"));
    pass(SECOND * 70).await;
    assert_eq!(bench.queue.len(), 1);
    assert!(bench.taken(EventKind::SpotInterruption, EventOutcome::Processed) >= 2);
    pass(SECOND * 600).await;
    assert_eq!(bench.queue.len(), 0);
    assert_eq!(bench.taken(EventKind::SpotInterruption, EventOutcome::Discarded), 1);
}

/// A process that has just begun does not know all instances yet.
// Pains: P17
#[tokio::test(start_paused = true)]
async fn a_warning_about_an_instance_that_is_listed_later_is_kept() {
    let bench = bench().await;
    bench.queue.send(spot("i-late"));
    pass(SECOND * 2).await;
    assert_eq!(bench.queue.len(), 1, "it comes once more");
    bench.cloud.put_group(group("a", &["i-a", "i-late"]));
    bench.inventory.request_read("a");
    pass(SECOND).await;
    assert!(bench.inventory.instance_notice("i-late").is_some());
    pass(SECOND * 40).await;
    assert_eq!(bench.taken(EventKind::SpotInterruption, EventOutcome::Processed), 1);
    bench.inventory.acknowledge_notices("a", bench.inventory.notice_revision("a"));
    pass(SECOND * 3).await;
    assert_eq!(bench.queue.len(), 0);
}

// Pains: W18
#[tokio::test(start_paused = true)]
async fn what_concerns_nobody_here_costs_no_read_and_is_deleted() {
    let bench = bench().await;
    let before = bench.polls();
    let detail = r#"{"AutoScalingGroupName":"a"}"#;
    let kind = "EC2 Instance Launch Successful";
    bench.queue.send(event_of("999988887777", "eu-west-1", "aws.autoscaling", kind, detail));
    bench.queue.send(event_of("123456789012", "us-east-1", "aws.autoscaling", kind, detail));
    bench.queue.send(launched("of-somebody-else"));
    bench.queue.send(event("aws.ec2", "EC2 Instance State-change Notification", r#"{"instance-id":"i-x"}"#));
    bench.queue.send(event("aws.s3", "Object Created", "{}"));
    bench.queue.send("poison \u{1f4a5}");
    bench.queue.send(event("aws.autoscaling", kind, "{}"));
    pass(SECOND * 5).await;
    assert_eq!(bench.queue.len(), 0);
    assert_eq!(bench.polls(), before);
    assert_eq!(bench.taken(EventKind::Launched, EventOutcome::OtherSource), 2);
    assert_eq!(bench.taken(EventKind::Launched, EventOutcome::NotManaged), 1);
    assert_eq!(bench.taken(EventKind::Unknown, EventOutcome::Unreadable), 2);
    let receives = *bench.queue.receives.lock().unwrap();
    pass(SECOND * 60).await;
    let more = *bench.queue.receives.lock().unwrap() - receives;
    assert!(more <= 6, "{more} receives in a quiet minute");
}

// Pains: P17
#[tokio::test(start_paused = true)]
async fn a_warning_from_long_ago_is_no_warning() {
    let bench = bench().await;
    let old = spot("i-a").replace("2024-10-04T00:00:00Z", "2024-10-03T23:00:00Z");
    bench.queue.send(old);
    pass(SECOND).await;
    assert_eq!(bench.inventory.instance_notice("i-a"), None);
}

// Pains: P17
#[tokio::test(start_paused = true)]
async fn an_event_at_the_limits_of_time_does_not_stop_the_feed() {
    let bench = bench().await;
    let at = |time: &str| spot("i-a").replace("2024-10-04T00:00:00Z", time);
    bench.queue.send(at("-200000-01-01T00:00:00Z"));
    pass(SECOND * 3).await;
    assert_eq!(bench.inventory.instance_notice("i-a"), None, "it is over");
    bench.queue.send(at("+262142-12-31T23:59:59Z"));
    pass(SECOND * 3).await;
    assert_eq!(bench.inventory.instance_notice("i-a").unwrap().kind, NoticeKind::SpotInterruption);
    assert_eq!(bench.taken(EventKind::SpotInterruption, EventOutcome::Processed), 2);
    bench.queue.send(launched("a"));
    pass(SECOND * 3).await;
    assert_eq!(bench.taken(EventKind::Launched, EventOutcome::Processed), 1, "the feed works");
}

// Pains: P17
#[tokio::test(start_paused = true)]
async fn a_message_that_panics_is_counted_and_discarded() {
    let bench = bench().await;
    *bench.reported.panics_at.lock().unwrap() = Some(EventKind::SpotInterruption);
    bench.queue.send(spot("i-a"));
    bench.queue.send(launched("a"));
    pass(SECOND * 5).await;
    assert_eq!(bench.queue.len(), 0);
    assert_eq!(bench.taken(EventKind::Unknown, EventOutcome::Panicked), 1);
    assert_eq!(bench.taken(EventKind::Launched, EventOutcome::Processed), 1, "the others are processed");
}

fn refusing(errors: impl IntoIterator<Item = CloudError>) -> FakeQueue {
    let queue = FakeQueue::default();
    queue.fail(errors);
    queue
}

/// A queue that is missing, somebody else's or forbidden: one warning, slow tries, polling as without.
// Rules: N5
#[tokio::test(start_paused = true)]
async fn a_queue_that_cannot_be_read_harms_nothing() {
    for (status, code) in [
        (400, "AWS.SimpleQueueService.NonExistentQueue"),
        (400, "QueueDoesNotExist"),
        (403, "AccessDenied"),
        (400, "InvalidAddress"),
    ] {
        let error = CloudError::answered("ReceiveMessage", status, code, "no");
        let bench: Bench = bench_over(refusing(vec![error; 3])).await;
        let before = bench.polls();
        pass(SECOND * 290).await;
        assert!((4..=5).contains(&(bench.polls() - before)), "{code}: polled as without");
        assert_eq!(*bench.reported.queues.lock().unwrap(), [false, true], "{code}: told once each way");
        let receives = *bench.queue.receives.lock().unwrap();
        assert!(receives <= 3 + 14, "{code}: {receives} receives");
    }
}

// Rules: N5
#[tokio::test(start_paused = true)]
async fn a_queue_that_never_works_is_asked_ever_more_seldom() {
    let error = CloudError::answered("ReceiveMessage", 403, "AccessDenied", "no");
    let bench = bench_over(refusing(vec![error; 1000])).await;
    pass(SECOND * 3600).await;
    let receives = *bench.queue.receives.lock().unwrap();
    assert!((10..=20).contains(&receives), "{receives} tries in an hour");
}

fn undeletable(code: &str) -> CloudError {
    CloudError::answered("DeleteMessageBatch", 403, code, "no")
}

/// What comes again and again would have its group read each time.
// Rules: N5
// Pains: W18
#[tokio::test(start_paused = true)]
async fn a_queue_that_may_be_read_but_not_deleted_from_is_one_that_fails() {
    let bench = bench().await;
    bench.queue.refuse_deletes(vec![undeletable("AccessDenied"); 5]);
    bench.queue.send(launched("a"));
    bench.queue.send("no event");
    pass(SECOND * 5).await;
    assert_eq!(*bench.reported.queues.lock().unwrap(), [true, false], "told once");
    assert!(!bench.inventory.relies_on_events(), "it is not relied on");
    assert_eq!(bench.taken(EventKind::Unknown, EventOutcome::Unreadable), 0, "it is there still");
    let receives = *bench.queue.receives.lock().unwrap();
    pass(SECOND * 600).await;
    let more = *bench.queue.receives.lock().unwrap() - receives;
    assert!(more <= 20, "{more} receives in ten minutes");
    assert_eq!(*bench.reported.queues.lock().unwrap(), [true, false]);
    // Somebody mends the policy.
    bench.queue.undeletable.lock().unwrap().clear();
    pass(SECOND * 400).await;
    assert_eq!(bench.queue.len(), 0);
    assert_eq!(*bench.reported.queues.lock().unwrap(), [true, false, true]);
    assert_eq!(bench.taken(EventKind::Unknown, EventOutcome::Unreadable), 1, "told when it was deleted");
}

// Pains: W18
#[tokio::test(start_paused = true)]
async fn a_receipt_that_is_too_old_says_nothing_of_the_queue() {
    let bench = bench().await;
    bench.queue.refuse_deletes([undeletable("ReceiptHandleIsInvalid")]);
    bench.queue.send(launched("a"));
    pass(SECOND * 40).await;
    assert_eq!(bench.queue.len(), 0);
    assert_eq!(*bench.reported.queues.lock().unwrap(), [true]);
}

// Pains: W18, P17
#[tokio::test(start_paused = true)]
async fn an_event_about_several_groups_wakes_all_and_stays_until_each_saw_it() {
    let bench = bench().await;
    bench.cloud.put_group(group("b", &["i-b"]));
    bench.inventory.register("b");
    pass(SECOND).await;
    let mut changes = bench.inventory.changes();
    bench.queue.send(health("upcoming", &["i-a", "i-b", "i-of-somebody"]));
    pass(SECOND).await;
    let mut woken: Vec<String> = std::iter::from_fn(|| changes.try_recv().ok()).collect();
    woken.sort();
    woken.dedup();
    assert_eq!(woken, ["a", "b"]);
    for id in ["i-a", "i-b"] {
        assert_eq!(bench.inventory.instance_notice(id).unwrap().kind, NoticeKind::ScheduledRetirement);
    }
    bench.inventory.acknowledge_notices("a", bench.inventory.notice_revision("a"));
    pass(SECOND * 5).await;
    assert_eq!(bench.queue.len(), 1, "the other one has not");
    bench.inventory.acknowledge_notices("b", bench.inventory.notice_revision("b"));
    pass(SECOND * 5).await;
    assert_eq!(bench.queue.len(), 0);
    let asked = bench.cloud.calls("DescribeInstances");
    assert!(!asked.iter().any(|call| call.args.contains(&"i-of-somebody".to_owned())), "{asked:?}");
}

/// Before the machine is known nobody can tell whether a warning is to be believed.
// Pains: W18, P17
#[tokio::test(start_paused = true)]
async fn a_warning_is_not_seen_before_its_machine_is_known() {
    let bench = bench().await;
    let failing = CloudError::answered("DescribeInstances", 500, "InternalFailure", "");
    bench.cloud.upset("DescribeInstances", vec![crate::testing::Upset::Fail(failing); 2]);
    bench.cloud.put_group(group("a", &["i-a", "i-new"]));
    bench.inventory.request_read("a");
    pass(Duration::from_millis(200)).await;
    bench.queue.send(spot("i-new"));
    pass(Duration::from_millis(200)).await;
    assert!(bench.inventory.instance_notice("i-new").is_some());
    assert_eq!(bench.inventory.notice_revision("a"), 0, "its machine is not known");
    pass(SECOND * 20).await;
    assert!(bench.inventory.notice_revision("a") > 0);
}

/// `DescribeAutoScalingGroups` may lag behind the event that tells of a change.
// Pains: W18, P20
#[tokio::test(start_paused = true)]
async fn what_a_lagging_read_did_not_show_is_seen_seconds_later() {
    let bench = bench().await;
    bench.queue.send(launched("a"));
    pass(SECOND * 2).await;
    let before = bench.polls();
    bench.cloud.put_group(group("a", &["i-a", "i-new"]));
    pass(SECOND * 8).await;
    assert_eq!(bench.polls(), before + 1);
    assert_eq!(bench.inventory.view("a").group().unwrap().instances.len(), 2);
    pass(SECOND * 30).await;
    assert_eq!(bench.polls(), before + 1, "once");
    assert!(bench.inventory.relies_on_events());
}
