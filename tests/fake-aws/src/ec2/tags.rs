//! EC2 tags: on launch templates, instances and what the network has.

use std::{collections::BTreeMap, sync::Arc};

use super::dry_run;
use crate::{
    ApiError, Tree,
    region::{Region, State},
};

/// Tags on one resource.
const LIMIT: usize = 50;

/// Tags as a list of `Key` and `Value`.
pub(crate) fn render(tags: &BTreeMap<String, String>) -> Tree {
    Tree::list(tags.iter().map(|(key, value)| Tree::new().with("Key", key).with("Value", value)))
}

fn read(items: &[Tree]) -> Result<BTreeMap<String, String>, ApiError> {
    let mut tags = BTreeMap::new();
    for item in items {
        let key = item.text_of("Key").unwrap_or_default();
        let value = item.text_of("Value").unwrap_or_default();
        if key.starts_with("aws:") {
            return Err(ApiError::refused(
                "InvalidParameterValue",
                "Tag keys starting with 'aws:' are reserved for internal use",
            ));
        }
        if key.is_empty() || key.chars().count() > 128 || value.chars().count() > 256 {
            return Err(ApiError::refused(
                "InvalidParameterValue",
                "Tag keys have 1 to 128 characters, values up to 256",
            ));
        }
        tags.insert(key.to_owned(), value.to_owned());
    }
    if tags.len() > LIMIT {
        return Err(ApiError::refused("TagLimitExceeded", "You have reached the maximum number of tags"));
    }
    Ok(tags)
}

/// The tags for a kind of resource in `TagSpecifications`.
pub(crate) fn specified(params: &Tree, kind: &str) -> Result<BTreeMap<String, String>, ApiError> {
    let mut tags = BTreeMap::new();
    for specification in params.items_of("TagSpecifications") {
        let given = specification.text_of("ResourceType").unwrap_or_default();
        if given == kind {
            tags.extend(read(specification.items_of("Tags"))?);
        } else if kind == "launch-template" {
            return Err(ApiError::refused(
                "InvalidParameterValue",
                format!("'{given}' is not a valid taggable resource type for this operation."),
            ));
        }
    }
    Ok(tags)
}

/// The tags of any resource that has some.
fn of<'a>(state: &'a mut State, id: &str) -> Option<&'a mut BTreeMap<String, String>> {
    if let Some(template) = state.templates.get_mut(id) {
        return Some(&mut template.tags);
    }
    if let Some(instance) = state.instances.get_mut(id) {
        return Some(&mut instance.tags);
    }
    let network = Arc::make_mut(&mut state.network);
    let subnet = network.subnets.get_mut(id).map(|subnet| &mut subnet.tags);
    subnet
        .or_else(|| network.security_groups.get_mut(id).map(|group| &mut group.tags))
        .or_else(|| network.images.get_mut(id).map(|image| &mut image.tags))
}

fn missing(id: &str) -> ApiError {
    let code = match id.split('-').next().unwrap_or_default() {
        "lt" => "InvalidLaunchTemplateId.NotFound",
        "i" => "InvalidInstanceID.NotFound",
        "subnet" => "InvalidSubnetID.NotFound",
        "sg" => "InvalidGroup.NotFound",
        "ami" => "InvalidAMIID.NotFound",
        _ => "InvalidID",
    };
    ApiError::refused(code, format!("The ID '{id}' is not valid"))
}

pub(crate) fn create(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let tags = read(params.items_of("Tags"))?;
    for id in params.texts_of("Resources") {
        let present = of(&mut region.state, &id).ok_or_else(|| missing(&id))?;
        let fresh = tags.keys().filter(|key| !present.contains_key(*key)).count();
        if present.keys().filter(|key| !key.starts_with("aws:")).count() + fresh > LIMIT {
            return Err(ApiError::refused("TagLimitExceeded", "You have reached the maximum number of tags"));
        }
    }
    for id in params.texts_of("Resources") {
        if let Some(present) = of(&mut region.state, &id) {
            present.extend(tags.clone());
        }
    }
    Ok(Tree::new())
}

pub(crate) fn delete(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let named = params.items_of("Tags");
    for id in params.texts_of("Resources") {
        let present = of(&mut region.state, &id).ok_or_else(|| missing(&id))?;
        // Without tags all but AWS's own go; a value, if given, must match.
        present.retain(|key, value| {
            let hit = named.is_empty()
                || named.iter().any(|tag| {
                    tag.text_of("Key") == Some(key)
                        && tag.text_of("Value").is_none_or(|wanted| wanted == value)
                });
            key.starts_with("aws:") || !hit
        });
    }
    Ok(Tree::new())
}
