//! Tags of groups, and whether instances launched later get them.

use std::collections::BTreeMap;

use super::{Group, GroupTag, group_not_found, modifiable};
use crate::{
    ApiError, Tree,
    pages::Page,
    region::{Region, View},
};

/// Tags on one group.
const LIMIT: usize = 50;

/// The tags of a group as its describe shows them.
pub(crate) fn render(group: &Group) -> Tree {
    Tree::list(group.tags.iter().map(|(key, tag)| one(&group.name, key, tag)))
}

fn one(group: &str, key: &str, tag: &GroupTag) -> Tree {
    Tree::new()
        .with("ResourceId", group)
        .with("ResourceType", "auto-scaling-group")
        .with("Key", key)
        .with("Value", &tag.value)
        .with("PropagateAtLaunch", tag.propagate)
}

fn read(tree: &Tree) -> Result<(String, GroupTag), ApiError> {
    let key = tree.text_of("Key").unwrap_or_default();
    if key.starts_with("aws:") {
        return Err(ApiError::validation(format!("Tag keys starting with 'aws:' are reserved: {key}")));
    }
    let tag = GroupTag {
        value: tree.text_of("Value").unwrap_or_default().to_owned(),
        propagate: tree.flag_of("PropagateAtLaunch") == Some(true),
    };
    Ok((key.to_owned(), tag))
}

fn too_many() -> ApiError {
    ApiError::refused("LimitExceeded", "You have reached the maximum number of tags for this resource")
}

/// The tags that come with a group's creation.
pub(crate) fn specified(items: &[Tree]) -> Result<BTreeMap<String, GroupTag>, ApiError> {
    let tags = items.iter().map(read).collect::<Result<BTreeMap<_, _>, _>>()?;
    if tags.len() > LIMIT { Err(too_many()) } else { Ok(tags) }
}

/// The group that a tag of `CreateOrUpdateTags` or `DeleteTags` is about.
fn resource(tree: &Tree) -> Result<String, ApiError> {
    if tree.text_of("ResourceType") != Some("auto-scaling-group") {
        return Err(ApiError::validation("The only supported ResourceType is auto-scaling-group"));
    }
    let id = tree.text_of("ResourceId");
    id.map(str::to_owned).ok_or_else(|| ApiError::validation("ResourceId is required"))
}

pub(crate) fn put(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let mut changed: BTreeMap<String, BTreeMap<String, GroupTag>> = BTreeMap::new();
    for item in params.items_of("Tags") {
        let name = resource(item)?;
        let (key, tag) = read(item)?;
        let group = modifiable(region, &name)?;
        changed.entry(name).or_insert_with(|| group.tags.clone()).insert(key, tag);
    }
    if changed.values().any(|tags| tags.len() > LIMIT) {
        return Err(too_many());
    }
    for (name, tags) in changed {
        modifiable(region, &name)?.tags = tags;
    }
    Ok(Tree::new())
}

pub(crate) fn delete(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    for item in params.items_of("Tags") {
        let name = resource(item)?;
        if !region.state.groups.contains_key(&name) {
            return Err(group_not_found(&name));
        }
    }
    for item in params.items_of("Tags") {
        let (name, key) = (resource(item)?, item.text_of("Key").unwrap_or_default());
        if let Some(group) = region.state.groups.get_mut(&name) {
            group.tags.remove(key);
        }
    }
    Ok(Tree::new())
}

pub(crate) fn describe(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let page = Page::records(params, 50, 100)?;
    let filters = params.items_of("Filters");
    let mut entries = Vec::new();
    for group in view.state.groups.values() {
        for (key, tag) in &group.tags {
            let mut hit = true;
            for filter in filters {
                let propagate = tag.propagate.to_string();
                let actual = match filter.text_of("Name").unwrap_or_default() {
                    "auto-scaling-group" => &group.name,
                    "key" => key,
                    "value" => &tag.value,
                    "propagate-at-launch" => &propagate,
                    name => return Err(ApiError::validation(format!("Filter type {name} is not correct"))),
                };
                hit = hit && filter.texts_of("Values").contains(actual);
            }
            if hit {
                entries.push((format!("{}/{key}", group.name), one(&group.name, key, tag)));
            }
        }
    }
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(page.reply(view.settings, "Tags", entries))
}
