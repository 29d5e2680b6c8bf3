//! When activities are read, and what they report.

use super::*;

const CAPACITY: &str = "We currently do not have sufficient m7i.large capacity in the Availability Zone you \
                        requested (eu-west-1a).";

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn seen(in_service: i32) -> CapacityView {
    let inputs = LaunchInputs { launch: "a".to_owned(), retry: None };
    CapacityView { desired: 4, live: in_service, in_service, is_trying: true, refresh: None, inputs }
}

fn activity(id: &str, status: &str, message: &str, seconds: i64) -> ScalingActivity {
    ScalingActivity {
        id: id.to_owned(),
        status: capasg_cloud::ActivityStatus::parse(status),
        status_message: Some(message.to_owned()),
        description: Some("Launching a new EC2 instance".to_owned()),
        cause: String::new(),
        zone: None,
        subnet: None,
        started_at: at(seconds),
        ended_at: None,
    }
}

fn record_read(watch: &mut LaunchWatch, activities: Vec<ScalingActivity>, seconds: i64) -> LaunchUpdate {
    let types = ["m7i.large".to_owned()];
    let zones = BTreeMap::from([("subnet-1".to_owned(), "eu-west-1b".to_owned())]);
    watch.record_read(Ok(activities), PlaceNames { types: &types, zones: &zones }, at(seconds));
    watch.last_update().clone()
}

/// One failure was read, 10 s after two instances were missing.
fn failing() -> LaunchWatch {
    let mut watch = LaunchWatch::default();
    watch.observe(&seen(2), None, at(0));
    assert!(!watch.is_due(at(9)) && watch.is_due(at(10)));
    let last_update = record_read(&mut watch, vec![activity("1", "Failed", CAPACITY, 3)], 10);
    assert_eq!(last_update, LaunchUpdate { new_failures: vec![LaunchBlocker::Capacity], event_due: true });
    watch
}

#[test]
fn p46_nothing_is_read_while_nothing_is_missing_or_launches_proceed() {
    let mut watch = LaunchWatch::default();
    watch.observe(&seen(4), None, at(0));
    assert_eq!(watch.wait(at(0)), None);
    // One after the other is replaced: what is missing comes within seconds.
    for round in 0..50 {
        let start = round * 60;
        watch.observe(&seen(3), None, at(start));
        assert!(!watch.is_due(at(start + 5)));
        let coming = CapacityView { live: 4, ..seen(3) };
        watch.observe(&coming, None, at(start + 5));
        assert!(!watch.is_due(at(start + 55)), "round {round}");
        watch.observe(&CapacityView { live: 5, desired: 5, ..seen(4) }, None, at(start + 58));
    }
}

#[test]
fn p46_activities_are_read_if_an_instance_does_not_enter_service() {
    let mut watch = LaunchWatch::default();
    let starting = CapacityView { live: 4, ..seen(2) };
    watch.observe(&starting, None, at(0));
    assert_eq!(watch.wait(at(0)), Some(STUCK_FOR));
    watch.observe(&CapacityView { in_service: 3, ..starting.clone() }, None, at(100));
    assert_eq!(watch.wait(at(100)), Some(STUCK_FOR), "progress");
}

#[test]
fn p46_reads_become_rare_and_stop_when_aws_does_not_try() {
    let mut watch = failing();
    let mut now = 10;
    let mut waits = Vec::new();
    for _ in 0..7 {
        let wait = watch.wait(at(now)).unwrap().num_seconds();
        waits.push(wait);
        now += wait;
        watch.observe(&seen(2), None, at(now));
        let last_update = record_read(&mut watch, vec![activity("1", "Failed", CAPACITY, 3)], now);
        assert_eq!(last_update, LaunchUpdate::default(), "new_failures and published already");
    }
    assert_eq!(waits, [15, 30, 60, 120, 240, 300, 300]);
    watch.observe(&CapacityView { is_trying: false, ..seen(2) }, None, at(now));
    assert_eq!(watch.wait(at(now)), None);
    assert!(watch.blocked().is_some(), "what failed is still reported");
}

#[test]
fn p46_zones_that_fail_in_turn_do_not_change_the_report() {
    let mut watch = failing();
    let other = CAPACITY.replace("1a", "1c");
    let both = vec![activity("2", "Failed", &other, 20), activity("1", "Failed", CAPACITY, 3)];
    assert!(!record_read(&mut watch, both, 25).event_due);
    let blocked = watch.blocked().unwrap();
    assert_eq!(blocked.message, CAPACITY);
    let zones: Vec<_> = blocked.places.iter().filter_map(|place| place.zone.as_deref()).collect();
    assert_eq!(zones, ["eu-west-1a", "eu-west-1c"]);
    assert_eq!(blocked.first.zone.as_deref(), Some("eu-west-1a"));
}

#[test]
fn p46_another_reason_takes_over_once_the_first_does_not_recur() {
    let mut watch = failing();
    let full = "There are not enough free addresses in subnet 'subnet-1'.";
    let mut listed: Vec<_> = (0..6).map(|n| activity(&format!("n{n}"), "Failed", full, 100 - n)).collect();
    listed.push(activity("1", "Failed", CAPACITY, 3));
    assert!(record_read(&mut watch, listed, 110).event_due);
    let blocked = watch.blocked().unwrap();
    assert_eq!(blocked.blocker, LaunchBlocker::Addresses);
    assert_eq!(blocked.first.zone.as_deref(), Some("eu-west-1b"), "the zone of the subnet");
    assert_eq!(blocked.first.instance_type.as_deref(), Some("m7i.large"), "the only type");
}

#[test]
fn p46_after_a_change_only_what_was_tried_since_counts() {
    let mut watch = failing();
    let changed = CapacityView { inputs: LaunchInputs { launch: "b".to_owned(), retry: None }, ..seen(2) };
    watch.observe(&changed, None, at(100));
    assert!(watch.is_due(at(100)), "a user waits for the result");
    let old = activity("1", "Failed", CAPACITY, 3);
    record_read(&mut watch, vec![activity("2", "InProgress", "", 101), old.clone()], 102);
    assert!(watch.blocked().is_some(), "nothing else is known yet");
    record_read(&mut watch, vec![activity("2", "Successful", "", 101), old], 120);
    assert_eq!(watch.blocked(), None);
}

/// A lifecycle hook of another actor ends a launch an hour after its start, which is the default of AWS.
#[test]
fn p46_a_launch_that_ends_after_an_hour_counts_by_its_end() {
    let abandoned = "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token t was \
                     abandoned: Heartbeat Timeout";
    let ended = ScalingActivity { ended_at: Some(at(3_605)), ..activity("1", "Cancelled", abandoned, 5) };
    let later = activity("2", "Failed", CAPACITY, 3_000);
    let blocker = |watch: &LaunchWatch| watch.blocked().map(|blocked| blocked.blocker);
    let mut watch = LaunchWatch::default();
    watch.observe(&seen(2), None, at(0));
    let update = record_read(&mut watch, vec![later.clone(), ended.clone()], 3_700);
    assert_eq!(update.new_failures, [LaunchBlocker::Hook, LaunchBlocker::Capacity]);
    assert_eq!(blocker(&watch), Some(LaunchBlocker::Hook), "it failed last");
    let mut next_leader = LaunchWatch::default();
    next_leader.observe(&seen(2), None, at(1_800));
    let update = record_read(&mut next_leader, vec![ended.clone()], 3_700);
    assert_eq!(update, LaunchUpdate { new_failures: vec![LaunchBlocker::Hook], event_due: true });
    let mut edited = LaunchWatch::default();
    edited.observe(&seen(2), None, at(0));
    let changed = CapacityView { inputs: LaunchInputs { launch: "b".to_owned(), retry: None }, ..seen(2) };
    edited.observe(&changed, None, at(2_900));
    record_read(&mut edited, vec![later, ended], 3_700);
    assert_eq!(blocker(&edited), Some(LaunchBlocker::Capacity), "the other began before the change");
}

/// AWS lists activities in progress first: drains may fill the pages that are read.
#[test]
fn p46_activities_in_progress_alone_do_not_end_a_report() {
    let mut watch = failing();
    let in_progress =
        vec![activity("2", "InProgress", "", 300), activity("3", "WaitingForSpotInstanceId", "", 299)];
    assert!(!show_launches(&in_progress));
    record_read(&mut watch, in_progress, 301);
    assert_eq!(watch.blocked().unwrap().message, CAPACITY);
    record_read(&mut watch, vec![activity("4", "Successful", "", 310)], 320);
    assert!(watch.blocked().is_none());
}

#[test]
fn p46_failures_before_a_recovery_are_not_reported_again() {
    let mut watch = failing();
    watch.observe(&seen(4), None, at(50));
    assert_eq!(watch.blocked(), None);
    watch.observe(&seen(3), None, at(60));
    let last_update = record_read(&mut watch, vec![activity("1", "Failed", CAPACITY, 3)], 70);
    assert_eq!(last_update, LaunchUpdate::default());
    assert_eq!(watch.blocked(), None);
    assert!(record_read(&mut watch, vec![activity("9", "Failed", CAPACITY, 80)], 90).event_due, "a new time");
}

#[test]
fn p46_a_changing_price_is_reported_at_most_once_an_hour() {
    let price =
        |cents: i64| format!("Your Spot request price of 0.0300 is lower than the minimum 0.0{cents}.");
    let mut watch = LaunchWatch::default();
    watch.observe(&seen(2), None, at(0));
    let mut events = Vec::new();
    let mut message = BTreeSet::new();
    for minute in 0..=61 {
        let start = minute * 60;
        let listed = vec![activity(&minute.to_string(), "Failed", &price(400 + minute), start)];
        if record_read(&mut watch, listed, start + 10).event_due {
            events.push(minute);
        }
        message.insert(watch.blocked().unwrap().message.clone());
    }
    assert_eq!(events, [0, 60], "events");
    assert_eq!(message.len(), 2, "and what the status says: {message:?}");
    assert_eq!(watch.blocked().unwrap().since, at(0));
}

#[test]
fn p46_a_change_that_fails_the_same_way_is_reported_again() {
    let image = |id: &str| format!("The image id '[{id}]' does not exist");
    let mut watch = LaunchWatch::default();
    watch.observe(&seen(2), None, at(0));
    assert!(record_read(&mut watch, vec![activity("1", "Failed", &image("ami-1"), 3)], 10).event_due);
    watch.observe(
        &CapacityView { inputs: LaunchInputs { launch: "b".to_owned(), retry: None }, ..seen(2) },
        None,
        at(100),
    );
    let both =
        vec![activity("2", "Failed", &image("ami-2"), 105), activity("1", "Failed", &image("ami-1"), 3)];
    assert!(record_read(&mut watch, both.clone(), 110).event_due);
    assert_eq!(watch.blocked().unwrap().message, image("ami-2"));
    assert!(!record_read(&mut watch, both, 130).event_due);
}

/// A refresh that launches before it terminates: no instance is missing, although its launches fail.
#[test]
fn a_refresh_without_progress_is_looked_into_although_nothing_is_missing() {
    let refreshing = |percentage| CapacityView {
        refresh: Some(RefreshProgress {
            id: "r".to_owned(),
            is_rollback: false,
            percentage: Some(percentage),
        }),
        ..seen(4)
    };
    let mut watch = LaunchWatch::default();
    watch.observe(&seen(4), None, at(0));
    assert_eq!(watch.wait(at(0)), None, "nothing goes on");
    watch.observe(&refreshing(0), None, at(10));
    watch.observe(&refreshing(25), None, at(100));
    assert_eq!(watch.wait(at(100)), Some(STUCK_FOR), "it goes on");
    // Each instance that is launched terminates.
    for seconds in [130, 160, 190, 220, 250] {
        watch.observe(&refreshing(0), None, at(seconds));
        watch.observe(&refreshing(25), None, at(seconds + 10));
    }
    watch.observe(&refreshing(25), None, at(280));
    assert!(watch.is_due(at(280)));
    record_read(&mut watch, vec![activity("1", "Failed", CAPACITY, 200)], 280);
    assert_eq!(watch.blocked().map(|blocked| blocked.blocker), Some(LaunchBlocker::Capacity));
    watch.observe(&refreshing(25), None, at(300));
    assert!(watch.are_failing());
    watch.observe(&refreshing(50), None, at(400));
    assert!(watch.is_due(at(400)), "a launch may have succeeded");
    let both = vec![activity("2", "Successful", "", 390), activity("1", "Failed", CAPACITY, 200)];
    record_read(&mut watch, both, 400);
    assert!(!watch.are_failing());
    watch.observe(&seen(4), None, at(500));
    assert_eq!(watch.wait(at(500)), None);
}
