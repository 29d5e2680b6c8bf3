//! Tags of groups.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_autoscaling::{Client, types::Tag};
use capasg_cloud::{GroupTag, Result, WriteReply};

use crate::call::done;

/// The only resource type that Auto Scaling tags.
const RESOURCE_TYPE: &str = "auto-scaling-group";

/// A tag of the group `group`.
pub(crate) fn tag(group: &str, key: &str, tag: &GroupTag) -> Tag {
    Tag::builder()
        .resource_id(group)
        .resource_type(RESOURCE_TYPE)
        .key(key)
        .value(&tag.value)
        .propagate_at_launch(tag.propagate)
        .build()
}

/// `CreateOrUpdateTags`.
pub(crate) async fn create_or_update(
    client: &Client,
    api: &'static str,
    group: &str,
    tags: &BTreeMap<String, GroupTag>,
) -> Result<WriteReply> {
    let tags = tags.iter().map(|(key, value)| tag(group, key, value)).collect();
    done(api, client.create_or_update_tags().set_tags(Some(tags)).send()).await
}

/// `DeleteTags`, whatever their values.
pub(crate) async fn delete(
    client: &Client,
    api: &'static str,
    group: &str,
    keys: &BTreeSet<String>,
) -> Result<WriteReply> {
    let tags = keys
        .iter()
        .map(|key| Tag::builder().resource_id(group).resource_type(RESOURCE_TYPE).key(key).build())
        .collect();
    done(api, client.delete_tags().set_tags(Some(tags)).send()).await
}
