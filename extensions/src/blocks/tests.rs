//! Blocks begin, are repeated and end; their number is bounded.

use super::*;

fn block(cluster: &str, cause: Cause) -> Block {
    let cluster = ClusterKey { namespace: "teams".into(), name: cluster.into(), uid: "1".into() };
    Block { cluster, hook: Hook::BeforeClusterUpgrade, version: "v1.36.3".into(), cause }
}

fn at(minute: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
}

#[test]
fn a_block_keeps_its_beginning_until_it_ends_or_is_not_repeated() {
    let blocks = Blocks::default();
    let one = block("a", Cause::PoolNotReady);
    assert_eq!(blocks.repeated(&one, at(0)), None);
    blocks.began(one.clone(), at(0), at(0));
    assert_eq!(blocks.repeated(&one, at(20)), Some(at(0)));
    assert_eq!(blocks.repeated(&one, at(40)), Some(at(0)));
    assert_eq!(blocks.repeated(&one, at(80)), None, "not repeated for 40 minutes");
    blocks.began(one.clone(), at(80), at(80));
    assert!(!blocks.ended(&one.cluster, Hook::BeforeClusterDelete, &[]));
    assert!(!blocks.ended(&one.cluster, one.hook, &[Cause::PoolNotReady]));
    assert!(blocks.ended(&one.cluster, one.hook, &[]));
    assert_eq!(blocks.repeated(&one, at(81)), None);
}

#[test]
fn the_summary_counts_clusters_and_not_causes() {
    let blocks = Blocks::default();
    blocks.began(block("a", Cause::PoolNotReady), at(5), at(5));
    blocks.began(block("a", Cause::NotApproved), at(3), at(5));
    blocks.began(block("b", Cause::NotApproved), at(4), at(5));
    assert_eq!(blocks.summary(at(6)), BTreeMap::from([(Hook::BeforeClusterUpgrade, (2, at(3)))]));
    assert!(blocks.summary(at(60)).is_empty());
}

#[test]
fn the_number_of_blocks_is_bounded() {
    let blocks = Blocks::default();
    for number in 0..=MOST {
        blocks.began(
            block(&number.to_string(), Cause::NotApproved),
            at(0),
            DateTime::UNIX_EPOCH + TimeDelta::milliseconds(i64::try_from(number).unwrap()),
        );
    }
    assert_eq!(blocks.summary(at(1))[&Hook::BeforeClusterUpgrade].0, MOST);
    assert_eq!(blocks.repeated(&block("0", Cause::NotApproved), at(1)), None, "the oldest is forgotten");
}

#[test]
fn names_of_events_differ_and_are_valid() {
    let (a, b) = (block("a", Cause::NotApproved), block("a", Cause::WindowClosed));
    assert_ne!(a.event_name(), b.event_name());
    assert_eq!(a.event_name(), a.clone().event_name());
    assert!(block(&"x".repeat(253), Cause::NotApproved).event_name().len() <= 253);
}
