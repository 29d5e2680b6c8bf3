//! Names and tags that the controllers derive from those of the api.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::names::tags;
use capasg_cloud::GroupTag;

/// Value of `cluster.x-k8s.io/delete-machine` where this controller chose the victim: only such an annotation is
/// removed again.
pub const SCALE_IN_VALUE: &str = "capasg-scale-in";
/// Value of `clusterctl.cluster.x-k8s.io/block-move` where this controller blocks a move: only such an annotation is
/// removed again.
pub const BLOCK_MOVE_VALUE: &str = "capasg-end-in-flight";
/// Tag of the group that lists the keys of the user's tags, so that a tag which is removed from the spec is removed
/// from the group.
pub const TAG_KEYS: &str = "asg.infrastructure.cluster.x-k8s.io/tag-keys";
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
    let mut keys = String::new();
    for key in user.keys().filter(|key| !key.contains(' ')) {
        if keys.len() + key.len() < MAX_TAG_VALUE {
            keys.push_str(if keys.is_empty() { "" } else { " " });
            keys.push_str(key);
        }
    }
    if !keys.is_empty() {
        all.insert(TAG_KEYS.to_owned(), GroupTag { value: keys, propagate: false });
    }
    all
}

/// The keys of user tags that the group's own record names, with the record itself.
#[must_use]
pub fn recorded_keys(tags: &BTreeMap<String, GroupTag>) -> BTreeSet<String> {
    let Some(record) = tags.get(TAG_KEYS) else { return BTreeSet::new() };
    record.value.split(' ').chain([TAG_KEYS]).map(str::to_owned).collect()
}

/// The tags of the launch template itself: those of the group without its record.
#[must_use]
pub fn template_tags(group: &BTreeMap<String, GroupTag>) -> BTreeMap<String, String> {
    group
        .iter()
        .filter(|(key, _)| *key != TAG_KEYS)
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
    use super::*;

    #[test]
    fn a_tag_that_leaves_the_spec_is_known_from_the_record() {
        let user = |keys: &[&str]| keys.iter().map(|k| ((*k).to_owned(), "v".to_owned())).collect();
        let before = group_tags(&user(&["team", "env"]), "o", "ns", "c", "p");
        let after = group_tags(&user(&["env"]), "o", "ns", "c", "p");
        let stale: Vec<_> = recorded_keys(&before).into_iter().filter(|k| !after.contains_key(k)).collect();
        assert_eq!(stale, ["team"]);
        assert!(!template_tags(&before).contains_key(TAG_KEYS));
    }
}
