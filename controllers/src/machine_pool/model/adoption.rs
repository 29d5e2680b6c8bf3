//! The record of an adoption: the launch templates that instances of the group were launched from before.

use std::collections::BTreeSet;

use capasg_api::names::tags::ADOPTED_FROM;
use capasg_cloud::{Group, Instance};

/// The record of an instance that names no launch template.
const NO_TEMPLATE: &str = "no-template";

/// The launch templates that instances of an adopted group were launched from before the adoption.
#[must_use]
pub fn adopted_from(group: Option<&Group>) -> BTreeSet<String> {
    let record = group.and_then(|group| group.tags.get(ADOPTED_FROM));
    record.map(|tag| tag.value.split(' ').map(str::to_owned).collect()).unwrap_or_default()
}

/// The launch template of an instance, as the record of an adoption names it.
#[must_use]
pub fn origin(instance: &Instance) -> &str {
    instance.template.as_ref().map_or(NO_TEMPLATE, |(id, _)| id.as_str())
}
