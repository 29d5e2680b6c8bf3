//! How values are formatted for users.

use std::collections::BTreeSet;

use capasg_api::names::{PREFIX, tags};

/// Path of the template version that the group launches.
pub const LAUNCH_TEMPLATE: &str = "launch template";
/// Path of the group's lower bound.
pub const MIN_SIZE: &str = "MinSize of the Auto Scaling group";
/// Path of the group's upper bound.
pub const MAX_SIZE: &str = "MaxSize of the Auto Scaling group";
/// The text for a missing value.
pub const NOTHING: &str = "none";

/// A set of names.
pub(super) fn joined(items: &BTreeSet<String>) -> String {
    if items.is_empty() {
        return NOTHING.to_owned();
    }
    items.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// A value that may be missing.
pub(super) fn maybe<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), ToString::to_string)
}

/// The path of a tag: in the spec, unless the controller adds it.
#[must_use]
pub fn tag_path(key: &str) -> String {
    let own = key.starts_with(PREFIX) || key.starts_with(&tags::cloud_provider(""));
    if own { format!("tag {key}") } else { format!("spec.tags[{key}]") }
}
