//! Selectors as filters of EC2's describe calls.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{Filter, Tag};
use capasg_cloud::{CloudError, Result, Selector};

/// The names of the filters that a resource kind has alongside tags.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterNames {
    /// Filters by id.
    pub(crate) id: &'static str,
    /// Filters by name, where the resource has one.
    pub(crate) name: Option<&'static str>,
}

/// A filter that any of the values matches.
pub(crate) fn filter<'a>(name: &str, values: impl IntoIterator<Item = &'a String>) -> Filter {
    let values = values.into_iter().map(|value| literal(value)).collect();
    Filter::builder().name(name).set_values(Some(values)).build()
}

/// The filters for a selector; all of them must match.
///
/// # Errors
/// Invalid if the selector names nothing, which EC2 would read as everything, or if the resource has no name.
pub(crate) fn filters(api: &'static str, selector: &Selector, names: FilterNames) -> Result<Vec<Filter>> {
    let filters = match selector {
        Selector::Ids(ids) if !ids.is_empty() => vec![filter(names.id, ids)],
        Selector::Tags(tags) => tags.iter().map(|(key, value)| tag_filter(key, value)).collect(),
        Selector::Name(name) => match names.name {
            Some(filter_name) => vec![filter(filter_name, [name])],
            None => return Err(CloudError::unsendable(api, "these resources are not selected by name")),
        },
        Selector::Ids(_) => Vec::new(),
    };
    if filters.is_empty() {
        return Err(CloudError::unsendable(
            api,
            "the selector has neither an ID nor a tag, which EC2 treats as all resources",
        ));
    }
    Ok(filters)
}

fn tag_filter(key: &String, value: &String) -> Filter {
    if matches!(value.as_str(), "" | "*") {
        filter("tag-key", [key])
    } else {
        filter(&format!("tag:{key}"), [value])
    }
}

/// The value with EC2's wildcards `*` and `?` taken literally.
fn literal(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '*' | '?' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Tags by key.
pub(crate) fn tag_map(tags: &[Tag]) -> BTreeMap<String, String> {
    tags.iter()
        .filter_map(|tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned())))
        .collect()
}
