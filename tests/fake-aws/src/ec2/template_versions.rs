//! Versions of launch templates: created, described, deleted one by one in a batch.

use std::sync::Arc;

use super::{
    dry_run,
    template::{Template, Version},
    template_data,
    templates::{self, caller, find, missing_version, once},
};
use crate::{
    ApiError, Scope, Tree,
    pages::Page,
    region::{Region, State, View},
    time::timestamp,
};

/// Versions of one template.
const VERSION_LIMIT: usize = 10_000;

pub(crate) fn create_version(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    once(region, "CreateLaunchTemplateVersion", params, |region| {
        let template = find(&region.state, params)?;
        let id = template.id.clone();
        if template.versions.len() >= VERSION_LIMIT {
            return Err(ApiError::refused(
                "VersionLimitExceeded",
                "The maximum number of launch template versions has been reached.",
            ));
        }
        let mut data = match params.text_of("SourceVersion") {
            None => Tree::new(),
            Some(text) => match template.version(text) {
                Some((_, version)) => version.data.clone(),
                None => return Err(missing_version(template, text)),
            },
        };
        if let Some(given) = params.get("LaunchTemplateData") {
            for (name, value) in given.members() {
                data.set(name, value.clone());
            }
        }
        template_data::check(&data)?;
        let version =
            Arc::new(Version { created: region.now, description: templates::description(params)?, data });
        let scope = region.scope.clone();
        let Some(template) = region.state.templates.get_mut(&id) else { return Ok(Tree::new()) };
        template.last_number += 1;
        let number = template.last_number;
        template.versions.insert(number, Arc::clone(&version));
        Ok(Tree::new().with("LaunchTemplateVersion", render(&scope, template, number, &version, None)))
    })
}

pub(crate) fn describe_versions(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("Versions");
    let page = Page::results(params, 1, 200)?;
    let named = params.get("LaunchTemplateId").is_some() || params.get("LaunchTemplateName").is_some();
    let resolved = (params.flag_of("ResolveAlias") == Some(true)).then_some(view.state);
    if !named {
        return across_templates(view, &wanted, &page, resolved);
    }
    let template = find(view.state, params)?;
    let mut numbers = Vec::new();
    for text in &wanted {
        match template.version(text) {
            Some((number, _)) => numbers.push(number),
            None => return Err(missing_version(template, text)),
        }
    }
    let bound = |name: &str| params.text_of(name).and_then(|text| text.parse::<u64>().ok());
    let (low, high) = (bound("MinVersion").unwrap_or(0), bound("MaxVersion").unwrap_or(u64::MAX));
    // The newest version comes first.
    let entries = template.versions.iter().rev().filter(|(number, _)| {
        (wanted.is_empty() || numbers.contains(number)) && (low..=high).contains(*number)
    });
    let entries = entries.map(|(number, version)| {
        (format!("{:020}", u64::MAX - number), render(view.scope, template, *number, version, resolved))
    });
    Ok(page.reply(view.settings, "LaunchTemplateVersions", entries.collect()))
}

/// Without a template, only `$Latest` and `$Default` of all templates can be asked for.
fn across_templates(
    view: &View<'_>,
    wanted: &[String],
    page: &Page,
    resolved: Option<&State>,
) -> Result<Tree, ApiError> {
    if wanted.is_empty() || wanted.iter().any(|text| text != "$Latest" && text != "$Default") {
        return Err(ApiError::refused(
            "MissingParameter",
            "Either the launchTemplateId or the launchTemplateName must be specified.",
        ));
    }
    let mut entries = Vec::new();
    for template in view.state.templates.values() {
        for (number, version) in &template.versions {
            if wanted.iter().any(|text| template.version(text).is_some_and(|(named, _)| named == *number)) {
                let key = format!("{}/{number:020}", template.id);
                entries.push((key, render(view.scope, template, *number, version, resolved)));
            }
        }
    }
    Ok(page.reply(view.settings, "LaunchTemplateVersions", entries))
}

pub(crate) fn delete_versions(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("Versions");
    if wanted.len() > 200 {
        return Err(ApiError::refused(
            "InvalidParameterValue",
            "At most 200 versions can be deleted in a request.",
        ));
    }
    let id = find(&region.state, params)?.id.clone();
    let Some(template) = region.state.templates.get_mut(&id) else { return Ok(Tree::new()) };
    let (mut deleted, mut refused) = (Vec::new(), Vec::new());
    for text in wanted {
        let number: u64 = text.parse().map_err(|_| {
            ApiError::refused("InvalidParameterValue", format!("Invalid launch template version: {text}"))
        })?;
        let item = Tree::new()
            .with("LaunchTemplateId", &template.id)
            .with("LaunchTemplateName", &template.name)
            .with("VersionNumber", number);
        if number == template.default_version {
            // The code of this refusal is not documented; "unexpectedError" is the only one that can fit.
            let words = "Cannot delete the default version of a launch template.";
            refused.push(item.with("ResponseError", error("unexpectedError", words)));
        } else if template.versions.remove(&number).is_some() {
            deleted.push(item);
        } else {
            let words = format!("The version {number} of launch template {} does not exist.", template.id);
            refused.push(item.with("ResponseError", error("launchTemplateVersionDoesNotExist", &words)));
        }
    }
    Ok(Tree::new()
        .with("SuccessfullyDeletedLaunchTemplateVersions", deleted)
        .with("UnsuccessfullyDeletedLaunchTemplateVersions", refused))
}

fn error(code: &str, message: &str) -> Tree {
    Tree::new().with("Code", code).with("Message", message)
}

fn render(
    scope: &Scope,
    template: &Template,
    number: u64,
    version: &Version,
    resolved: Option<&State>,
) -> Tree {
    let mut data = version.data.clone();
    if let Some(image) = resolved.and_then(|state| template_data::image(state, &data)) {
        data.set("ImageId", image);
    }
    // EC2 keeps tag specifications and lists under the same names in requests and replies, so data is echoed.
    Tree::new()
        .with("LaunchTemplateId", &template.id)
        .with("LaunchTemplateName", &template.name)
        .with("VersionNumber", number)
        .with_opt("VersionDescription", version.description.as_deref())
        .with("CreateTime", timestamp(version.created))
        .with("CreatedBy", caller(scope))
        .with("DefaultVersion", number == template.default_version)
        .with("LaunchTemplateData", data)
}
