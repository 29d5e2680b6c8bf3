//! Names and tags that the controllers derive from those of the api.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use capasg_api::names::tags;
use capasg_cloud::GroupTag;
use sha2::{Digest, Sha256};

/// Value of `cluster.x-k8s.io/delete-machine` where this controller chose the victim: only such an annotation is
/// removed again.
pub const SCALE_IN_VALUE: &str = "capasg-scale-in";
/// Value of `clusterctl.cluster.x-k8s.io/block-move` where this controller blocks a move: only such an annotation is
/// removed again.
pub const BLOCK_MOVE_VALUE: &str = "capasg-end-in-flight";
/// Tag of the group that lists the keys of the user's tags, so that a tag which is removed from the spec is removed
/// from the group. A list that this format cannot hold is in [`TAG_KEY_HASHES`] instead.
pub const TAG_KEYS: &str = "asg.infrastructure.cluster.x-k8s.io/tag-keys";
/// Tag of the group that lists hashes of the keys of the user's tags: of keys that contain spaces, and of more keys than
/// [`TAG_KEYS`] can hold.
pub const TAG_KEY_HASHES: &str = "asg.infrastructure.cluster.x-k8s.io/tag-key-hashes";
/// How the keys of the controller's own tags begin. `spec.tags` cannot contain one.
const OWN_PREFIX: &str = "asg.infrastructure.cluster.x-k8s.io/";
/// The length of one hash. The hashes of 40 keys, which is the limit of `spec.tags`, fit into one tag value.
const HASH_LENGTH: usize = 6;
/// Longest tag value that AWS accepts.
const MAX_TAG_VALUE: usize = 256;

/// The tags of a group: the pool's own and the user's, propagated to instances, and the list of the user's keys.
#[must_use]
pub fn group_tags(
    user: &BTreeMap<String, String>,
    owner_id: &str,
    namespace: &str,
    cluster: &str,
    pool: &str,
) -> BTreeMap<String, GroupTag> {
    let mut all: BTreeMap<String, GroupTag> = tags::of_pool(user, owner_id, namespace, cluster, pool)
        .into_iter()
        .map(|(key, value)| (key, GroupTag { value, propagate: true }))
        .collect();
    all.extend(record(&user.keys().map(String::as_str).collect()));
    all
}

/// The desired tags while tags that are no longer desired are still on the group: the record names their keys until they are
/// removed, so that a removal that fails is repeated.
#[must_use]
pub fn tags_until_removed(
    desired: &BTreeMap<String, GroupTag>,
    group: &BTreeMap<String, GroupTag>,
    stale: &BTreeSet<String>,
) -> BTreeMap<String, GroupTag> {
    let mut all = desired.clone();
    all.retain(|key, _| !is_record(key));
    let users = recorded_keys(desired);
    let users = users.iter().filter(|key| !is_record(key)).chain(stale).map(String::as_str);
    // If not all keys fit, the record of the group stays until tags are removed.
    let whole = record(&users.collect()).filter(|(_, tag)| tag.value.len() <= MAX_TAG_VALUE);
    all.extend(whole);
    for (key, tag) in group.iter().filter(|(key, _)| is_record(key)) {
        all.entry(key.clone()).or_insert_with(|| tag.clone());
    }
    all
}

/// The keys of the user's desired tags that no record among `tags` names.
#[must_use]
pub fn unrecorded_keys(
    desired: &BTreeMap<String, GroupTag>,
    tags: &BTreeMap<String, GroupTag>,
) -> BTreeSet<String> {
    let recorded = recorded_keys(tags);
    let mut users = recorded_keys(desired);
    users.retain(|key| !is_record(key) && !recorded.contains(key));
    users
}

/// The tag that records the keys of the user's tags.
fn record(keys: &BTreeSet<&str>) -> Option<(String, GroupTag)> {
    if keys.is_empty() {
        return None;
    }
    let keys: Vec<&str> = keys.iter().copied().collect();
    let listed = keys.join(" ");
    let is_list = listed.len() <= MAX_TAG_VALUE && keys.iter().all(|key| !key.contains(' '));
    let (name, value) = if is_list {
        (TAG_KEYS, listed)
    } else {
        (TAG_KEY_HASHES, keys.iter().map(|key| key_hash(key)).collect())
    };
    Some((name.to_owned(), GroupTag { value, propagate: false }))
}

/// A hash of a tag key, of characters that AWS accepts in a tag value.
fn key_hash(key: &str) -> String {
    let mut hash = URL_SAFE_NO_PAD.encode(Sha256::digest(key.as_bytes()));
    hash.truncate(HASH_LENGTH);
    hash
}

/// Whether this is the key of a tag that records the keys of the user's tags.
#[must_use]
pub fn is_record(key: &str) -> bool {
    key == TAG_KEYS || key == TAG_KEY_HASHES
}

/// The keys of the group's tags that its own records name, with the records.
#[must_use]
pub fn recorded_keys(tags: &BTreeMap<String, GroupTag>) -> BTreeSet<String> {
    let value = |name: &str| tags.get(name).map(|record| record.value.as_str()).unwrap_or_default();
    let listed: BTreeSet<&str> = value(TAG_KEYS).split(' ').collect();
    let characters: Vec<char> = value(TAG_KEY_HASHES).chars().collect();
    let hashes: BTreeSet<String> = characters.chunks(HASH_LENGTH).map(|hash| hash.iter().collect()).collect();
    let is_users =
        |key: &str| !key.starts_with(OWN_PREFIX) && (listed.contains(key) || hashes.contains(&key_hash(key)));
    tags.keys().filter(|key| is_record(key) || is_users(key)).cloned().collect()
}

/// The tags of the launch template itself: those of the group without its records.
#[must_use]
pub fn template_tags(group: &BTreeMap<String, GroupTag>) -> BTreeMap<String, String> {
    group
        .iter()
        .filter(|(key, _)| !is_record(key))
        .map(|(key, tag)| (key.clone(), tag.value.clone()))
        .collect()
}

/// The account in an Auto Scaling group's ARN (`arn:aws:autoscaling:<region>:<account>:...`).
#[must_use]
pub fn account_of(arn: &str) -> Option<&str> {
    arn.split(':').nth(4).filter(|account| !account.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    fn tags_of(keys: &BTreeSet<String>) -> BTreeMap<String, GroupTag> {
        let user = keys.iter().map(|key| (key.clone(), "v".to_owned())).collect();
        group_tags(&user, "o", "ns", "c", "p")
    }

    fn set(keys: &[&str]) -> BTreeSet<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    /// The keys that a change of `spec.tags` removes from a group that has tags of other actors as well.
    fn removed(
        mut group: BTreeMap<String, GroupTag>,
        after: &BTreeSet<String>,
        foreign: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        for key in foreign {
            let tag = GroupTag { value: "foreign".to_owned(), propagate: true };
            group.entry(key.clone()).or_insert(tag);
        }
        let after = tags_of(after);
        recorded_keys(&group).into_iter().filter(|key| !after.contains_key(key) && !is_record(key)).collect()
    }

    #[test]
    fn a_tag_that_leaves_the_spec_is_known_from_the_record() {
        let before = tags_of(&set(&["team", "env"]));
        assert_eq!(before[TAG_KEYS].value, "env team");
        assert_eq!(removed(before.clone(), &set(&["env"]), &set(&[])), set(&["team"]));
        assert!(!template_tags(&before).contains_key(TAG_KEYS));
    }

    #[test]
    fn keys_with_spaces_long_keys_and_many_keys_are_recorded() {
        let long: BTreeSet<String> = (0..3).map(|n| format!("{n}{}", "k".repeat(127))).collect();
        let many: BTreeSet<String> = (0..40).map(|n| format!("{n} {}", "\u{e9}".repeat(120))).collect();
        for keys in [set(&["Cost Center", "team"]), long, many] {
            let before = tags_of(&keys);
            assert!(before[TAG_KEY_HASHES].value.len() <= MAX_TAG_VALUE && before.len() <= 48);
            assert!(!before.contains_key(TAG_KEYS) && !template_tags(&before).contains_key(TAG_KEY_HASHES));
            assert_eq!(removed(before, &set(&[]), &set(&["Cost", "Center", "k"])), keys);
        }
    }

    #[test]
    fn the_record_names_a_key_until_its_tag_is_removed() {
        let before = tags_of(&set(&["env", "team"]));
        for (after, recorded) in [(set(&["env", "zone"]), "env team zone"), (set(&[]), "team")] {
            let tags = tags_until_removed(&tags_of(&after), &before, &set(&["team"]));
            assert_eq!(tags[TAG_KEYS].value, recorded);
            assert!(!tags.contains_key("team"));
        }
        let crowded: BTreeSet<String> = (0..40).map(|n| format!("key {n}")).collect();
        let stale: BTreeSet<String> = (0..5).map(|n| format!("old {n}")).collect();
        let group = tags_of(&stale);
        let tags = tags_until_removed(&tags_of(&crowded), &group, &stale);
        assert_eq!(tags[TAG_KEY_HASHES], group[TAG_KEY_HASHES], "it does not hold 45");
    }

    #[test]
    fn a_record_of_an_earlier_version_is_read_and_replaced_only_if_it_is_incomplete() {
        let earlier = |keys: &[&str], listed: &str| {
            let mut tags = tags_of(&set(keys));
            tags.remove(TAG_KEY_HASHES);
            tags.insert(TAG_KEYS.to_owned(), GroupTag { value: listed.to_owned(), propagate: false });
            tags
        };
        assert_eq!(earlier(&["env", "team"], "env team"), tags_of(&set(&["env", "team"])));
        let incomplete = earlier(&["Cost Center", "team"], "team");
        assert_eq!(removed(incomplete.clone(), &set(&["Cost Center"]), &set(&[])), set(&["team"]));
        assert!(recorded_keys(&incomplete).contains(TAG_KEYS));
    }

    fn key() -> impl Strategy<Value = String> {
        let key = prop_oneof!["[a-c ]{1,3}", "[a-zA-Z0-9 _.:/=+@\u{e9}\u{6f22}-]{1,128}"];
        key.prop_filter("reserved", |key| !key.to_ascii_lowercase().starts_with("aws:"))
    }

    proptest! {
        #[test]
        fn exactly_the_users_keys_that_leave_the_spec_are_removed(
            keys in btree_set(key(), 0..=40),
            stays in vec(any::<bool>(), 40),
            foreign in btree_set(key(), 0..5),
        ) {
            let foreign: BTreeSet<String> = foreign.difference(&keys).cloned().collect();
            let after: BTreeSet<String> =
                keys.iter().zip(stays).filter(|(_, stays)| *stays).map(|(key, _)| key.clone()).collect();
            let before = tags_of(&keys);
            prop_assert!(before.values().all(|tag| tag.value.len() <= MAX_TAG_VALUE));
            let leaves: BTreeSet<String> = keys.difference(&after).cloned().collect();
            prop_assert_eq!(removed(before, &after, &foreign), leaves);
        }
    }
}
