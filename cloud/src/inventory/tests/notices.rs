//! What is kept of notices, in whichever order they arrive and whoever sends them.

use chrono::{DateTime, TimeDelta, Utc};

use crate::{Notice, NoticeKind, inventory::notices::Notices};

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
        notices.add("i-a", *one, now(), |_| true);
    }
    notices.of("i-a")
}

// Pains: W18
#[test]
fn the_order_of_announcements_makes_no_difference() {
    use NoticeKind::{RebalanceRecommendation, RetirementClosed, ScheduledRetirement, SpotInterruption};
    for (told, expected) in [
        ([notice(RebalanceRecommendation, 60), notice(SpotInterruption, 30)], notice(SpotInterruption, 30)),
        ([notice(SpotInterruption, 60), notice(SpotInterruption, 30)], notice(SpotInterruption, 60)),
        ([notice(ScheduledRetirement, 60), notice(RetirementClosed, 30)], notice(RetirementClosed, 30)),
        ([notice(RetirementClosed, 60), notice(ScheduledRetirement, 30)], notice(ScheduledRetirement, 30)),
        ([notice(RetirementClosed, 60), notice(RetirementClosed, 30)], notice(RetirementClosed, 30)),
        ([notice(RetirementClosed, 30), notice(SpotInterruption, 60)], notice(SpotInterruption, 60)),
    ] {
        let [first, second] = told;
        assert_eq!(kept(&[first, second]), Some(expected), "{told:?}");
        assert_eq!(kept(&[second, first]), Some(expected), "{told:?} the other way round");
        assert_eq!(kept(&[first, second, first, second]), Some(expected), "{told:?} twice");
    }
}

// Pains: W18
#[test]
fn nobody_says_anything_tomorrow() {
    let told = kept(&[notice(NoticeKind::SpotInterruption, -3600)]).unwrap();
    assert_eq!(told.at, now());
}

// Pains: W18, P17
#[test]
fn a_flood_about_strangers_never_keeps_a_warning_of_ours_out() {
    let mut notices = Notices::default();
    let is_ours = |id: &str| id.starts_with("i-ours");
    let warning = notice(NoticeKind::SpotInterruption, 0);
    let mut taken = 0;
    while notices.add(&format!("i-{taken}"), warning, now(), is_ours) {
        taken += 1;
        assert!(taken <= 10_000, "there is a limit");
    }
    for number in 0..200 {
        assert!(notices.add(&format!("i-ours-{number}"), warning, now(), is_ours));
    }
    assert_eq!(notices.instances().count(), taken, "strangers made room");
    assert_eq!(notices.instances().filter(|id| is_ours(id)).count(), 200);
}
