//! What is kept of announcements, in whichever order and from whomever they come.

use chrono::{DateTime, TimeDelta, Utc};

use super::{bench, health};
use crate::{
    EventKind, EventOutcome, Notice, NoticeKind,
    events::Notices,
    testing::{group, pass},
};

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

fn notice(kind: NoticeKind, seconds_ago: i64) -> Notice {
    Notice { kind, at: now() - TimeDelta::seconds(seconds_ago) }
}

/// What is kept of an instance that was told these things, in this order.
fn kept(told: &[Notice]) -> Option<Notice> {
    let mut notices = Notices::default();
    for one in told {
        notices.take("i-a", *one, now(), |_| true);
    }
    notices.of("i-a")
}

#[test]
fn w18_the_order_of_announcements_makes_no_difference() {
    use NoticeKind::{AllClear, Rebalance, Retirement, SpotInterruption};
    for (told, expected) in [
        ([notice(Rebalance, 60), notice(SpotInterruption, 30)], notice(SpotInterruption, 30)),
        ([notice(SpotInterruption, 60), notice(SpotInterruption, 30)], notice(SpotInterruption, 60)),
        ([notice(Retirement, 60), notice(AllClear, 30)], notice(AllClear, 30)),
        ([notice(AllClear, 60), notice(Retirement, 30)], notice(Retirement, 30)),
        ([notice(AllClear, 60), notice(AllClear, 30)], notice(AllClear, 30)),
        ([notice(AllClear, 30), notice(SpotInterruption, 60)], notice(SpotInterruption, 60)),
    ] {
        let [first, second] = told;
        assert_eq!(kept(&[first, second]), Some(expected), "{told:?}");
        assert_eq!(kept(&[second, first]), Some(expected), "{told:?} the other way round");
        assert_eq!(kept(&[first, second, first, second]), Some(expected), "{told:?} twice");
    }
}

#[test]
fn w18_nobody_says_anything_tomorrow() {
    let told = kept(&[notice(NoticeKind::SpotInterruption, -3600)]).unwrap();
    assert_eq!(told.at, now());
}

#[test]
fn w18_p17_a_flood_about_strangers_never_keeps_a_warning_of_ours_out() {
    let mut notices = Notices::default();
    let is_ours = |id: &str| id.starts_with("i-ours");
    let warning = notice(NoticeKind::SpotInterruption, 0);
    let mut taken = 0;
    while notices.take(&format!("i-{taken}"), warning, now(), is_ours) {
        taken += 1;
        assert!(taken <= 10_000, "there is a limit");
    }
    for number in 0..200 {
        assert!(notices.take(&format!("i-ours-{number}"), warning, now(), is_ours));
    }
    assert_eq!(notices.instances().count(), taken, "strangers made room");
    assert_eq!(notices.instances().filter(|id| is_ours(id)).count(), 200);
}

#[tokio::test(start_paused = true)]
async fn w18_p17_an_event_about_thousands_of_strangers_has_ours_looked_at_and_little_kept() {
    let bench = bench().await;
    let many: Vec<String> = (0..5_000).map(|number| format!("i-{number:05}")).collect();
    let mut named: Vec<&str> = many.iter().map(String::as_str).collect();
    named.push("i-a");
    bench.queue.send(health("upcoming", &named));
    pass(std::time::Duration::from_secs(1)).await;
    assert!(bench.inventory.notice("i-a").is_some());
    let strangers = many.iter().filter(|id| bench.inventory.notice(id).is_some()).count();
    assert_eq!(strangers, 100);
    assert_eq!(bench.taken(EventKind::ScheduledRetirement, EventOutcome::Taken), 1);
    let asked: usize = bench.cloud.calls("DescribeInstances").iter().map(|call| call.args.len()).sum();
    assert!(asked < 10, "{asked} machines asked for");
}

#[tokio::test(start_paused = true)]
async fn p17_a_retirement_that_is_closed_is_none() {
    let bench = bench().await;
    bench.queue.send(health("upcoming", &["i-a"]));
    pass(std::time::Duration::from_secs(1)).await;
    bench.inventory.saw("a", bench.inventory.announced("a"));
    let later = health("closed", &["i-a"]).replace("2024-10-04T00:00:00Z", "2024-10-04T00:00:30Z");
    bench.queue.send(later);
    pass(std::time::Duration::from_secs(1)).await;
    assert_eq!(bench.inventory.notice("i-a").unwrap().kind, NoticeKind::AllClear);
    bench.cloud.put_group(group("a", &[]));
    bench.inventory.refresh("a");
    pass(std::time::Duration::from_secs(700)).await;
    assert_eq!(bench.inventory.notice("i-a"), None, "it is kept as long as the instance");
}
