//! Blocks begin, continue, time out and end; what is remembered is bounded.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::{memory::MOST, *};
use crate::protocol::ClusterKey;

const DELETE: Hook = Hook::BeforeClusterDelete;
const CLUSTER: Hook = Hook::BeforeClusterUpgrade;
const CONTROL_PLANE: Hook = Hook::BeforeControlPlaneUpgrade;
const UPGRADED: Hook = Hook::AfterControlPlaneUpgrade;
const WORKERS: Hook = Hook::BeforeWorkersUpgrade;

fn cluster(name: &str) -> ClusterKey {
    ClusterKey { namespace: "teams".into(), name: name.into(), uid: "1".into() }
}

fn at(minute: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
}

/// The record after a call in a certain minute. Technical causes block for 10 minutes.
fn after(previous: Option<&Record>, hook: Hook, minute: i64, found: &[Cause]) -> Record {
    let found = found.iter().map(|cause| (*cause, "a".to_owned())).collect();
    let blocks = |cause: Cause, waited| cause.is_of_user() || waited < TimeDelta::minutes(10);
    Record::after(previous, hook, "v1.36.3", at(minute), found, blocks)
}

/// Since which minute the record has a cause, and whether it blocks.
fn state(record: &Record, cause: Cause) -> Option<(i64, bool)> {
    let block = record.causes.get(&cause)?;
    Some(((block.since - at(0)).num_minutes(), block.blocks))
}

// Rules: R17
#[test]
fn a_cause_that_was_seen_to_end_begins_again() {
    let both = after(None, CLUSTER, 0, &[Cause::NotApproved, Cause::PoolNotReady]);
    let ended = after(Some(&both), CLUSTER, 1, &[Cause::NotApproved]);
    assert_eq!(state(&ended, Cause::PoolNotReady), None);
    let again = after(Some(&ended), CLUSTER, 29, &[Cause::NotApproved, Cause::PoolNotReady]);
    assert_eq!(state(&again, Cause::PoolNotReady), Some((29, true)));
    assert_eq!(state(&again, Cause::NotApproved), Some((0, true)));
}

// Rules: R17
#[test]
fn a_cause_that_timed_out_stays_so_at_later_hooks_of_the_upgrade_until_it_ends() {
    let (ready, long) = (Cause::PoolNotReady, 45);
    let began = after(None, CLUSTER, 0, &[ready]);
    let timed_out = after(Some(&began), CLUSTER, 10, &[ready]);
    assert_eq!(state(&timed_out, ready), Some((0, false)));
    let next = after(Some(&timed_out), CONTROL_PLANE, 11, &[ready]);
    assert_eq!(state(&next, ready), Some((0, false)));
    // This hook does not check it, and what cannot be read is not seen to end.
    let other = after(Some(&next), UPGRADED, 11 + long, &[]);
    let unread = after(Some(&other), WORKERS, 12 + long, &[Cause::NotReadable]);
    assert_eq!(state(&unread, ready), Some((0, false)));
    let workers = after(Some(&unread), WORKERS, 13 + long, &[ready]);
    assert_eq!(state(&workers, ready), Some((0, false)));
    let ended = after(Some(&workers), WORKERS, 14 + long, &[]);
    assert_eq!(state(&after(Some(&ended), WORKERS, 15 + long, &[ready]), ready), Some((15 + long, true)));
    // Another upgrade has its own deadlines.
    let other = Record { version: "v1.35.9".into(), ..workers.clone() };
    assert_eq!(state(&after(Some(&other), CLUSTER, 14 + long, &[ready]), ready), Some((14 + long, true)));
    assert_eq!(state(&after(Some(&workers), WORKERS, 73 + long, &[ready]), ready), Some((73 + long, true)));
}

#[test]
fn a_block_that_is_not_repeated_has_ended() {
    let began = after(None, CLUSTER, 0, &[Cause::NotApproved]);
    let repeated = after(Some(&began), CLUSTER, 29, &[Cause::NotApproved]);
    assert_eq!(state(&repeated, Cause::NotApproved), Some((0, true)));
    let late = after(Some(&repeated), CLUSTER, 59, &[Cause::NotApproved]);
    assert_eq!(state(&late, Cause::NotApproved), Some((59, true)));
    // Clocks of replicas differ a little.
    let early = after(Some(&late), CLUSTER, 58, &[Cause::NotApproved]);
    assert_eq!(state(&early, Cause::NotApproved), Some((58, true)));
}

// Rules: R18
#[test]
fn a_hook_that_is_skipped_blocks_no_longer() {
    let record = after(None, CLUSTER, 0, &[Cause::NotApproved]);
    assert!(record.is_blocking(CLUSTER) && !record.is_blocking(CONTROL_PLANE));
    let skipped = record.skipped(CLUSTER, at(1));
    assert!(!skipped.is_blocking(CLUSTER));
    let next = after(Some(&skipped), CONTROL_PLANE, 1, &[Cause::NotApproved]);
    assert!(next.is_blocking(CONTROL_PLANE));
}

#[test]
fn a_record_is_written_if_it_changed_or_is_old() {
    let record = |minute, found: &[Cause]| after(None, CLUSTER, minute, found);
    let first = record(0, &[Cause::NotApproved]);
    assert!(first.is_due(None));
    let again = |minute| after(Some(&first), CLUSTER, minute, &[Cause::NotApproved]);
    assert!(!again(9).is_due(Some(&first)) && again(10).is_due(Some(&first)));
    assert!(record(1, &[]).is_due(Some(&first)));
}

#[test]
fn records_are_read_as_they_were_written_and_others_leniently() {
    let record = after(None, CLUSTER, 0, &[Cause::NotApproved, Cause::PoolNotReady]);
    assert_eq!(Record::from_json(&record.to_json()), Some(record.clone()));
    let newer = record.to_json().replace("PoolNotReady", "OfAnotherVersion");
    assert_eq!(Record::from_json(&newer).unwrap().causes.len(), 1);
    for text in ["", "{}", "[]"] {
        assert_eq!(Record::from_json(text), None);
    }
}

#[test]
fn the_newer_record_counts() {
    let blocks = Blocks::default();
    let (old, new) = (after(None, CLUSTER, 0, &[Cause::NotApproved]), after(None, CLUSTER, 1, &[]));
    assert_eq!(blocks.latest(&cluster("a"), Some(old.clone())), Some(old.clone()));
    blocks.remember(cluster("a"), new.clone());
    assert_eq!(blocks.latest(&cluster("a"), Some(old)), Some(new.clone()));
    assert_eq!(blocks.latest(&cluster("a"), None), Some(new));
    assert!(blocks.is_known(&cluster("a")) && !blocks.is_known(&cluster("b")));
}

#[test]
fn the_summary_counts_clusters_that_this_replica_blocks_now() {
    let blocks = Blocks::default();
    let first = after(None, CLUSTER, 3, &[Cause::NotApproved]);
    blocks
        .remember(cluster("a"), after(Some(&first), CLUSTER, 5, &[Cause::NotApproved, Cause::PoolNotReady]));
    blocks.remember(cluster("b"), after(None, CLUSTER, 4, &[Cause::NotApproved]));
    blocks.remember(cluster("c"), after(None, DELETE, 4, &[]));
    assert_eq!(blocks.summary(at(5)), BTreeMap::from([(CLUSTER, (2, at(3)))]));
    assert_eq!(blocks.summary(at(6))[&CLUSTER].0, 1, "another replica may have answered since");
    // A deadline has passed.
    let timed_out =
        after(Some(&after(None, CLUSTER, 0, &[Cause::PoolNotReady])), CLUSTER, 10, &[Cause::PoolNotReady]);
    blocks.remember(cluster("d"), timed_out);
    assert!(blocks.summary(at(10)).is_empty());
}

#[test]
fn the_number_of_records_is_bounded() {
    let blocks = Blocks::default();
    for number in 0..=MOST {
        let mut record = after(None, CLUSTER, 0, &[Cause::NotApproved]);
        record.last += TimeDelta::milliseconds(i64::try_from(number).unwrap());
        blocks.remember(cluster(&number.to_string()), record);
    }
    assert_eq!(blocks.remembered(), MOST);
    assert!(!blocks.is_known(&cluster("0")), "the oldest is forgotten");
    blocks.remember(cluster("late"), after(None, CLUSTER, 31, &[]));
    assert_eq!(blocks.remembered(), 1);
}

#[test]
fn names_of_events_differ_and_are_valid() {
    assert_ne!(Record::event_name(&cluster("a")), Record::event_name(&cluster("b")));
    assert_eq!(Record::event_name(&cluster("a")), Record::event_name(&cluster("a")));
    assert!(Record::event_name(&cluster(&"x".repeat(253))).len() <= 253);
}
