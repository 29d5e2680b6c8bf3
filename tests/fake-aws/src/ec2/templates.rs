//! Launch templates: created, described, modified and deleted.

use std::{collections::BTreeMap, sync::Arc};

use super::{Filters, Template, Version, dry_run, tags, template_data};
use crate::{
    ApiError, Tree,
    pages::Page,
    region::{Region, State, View},
    time::timestamp,
};

impl Template {
    /// The version that text names: a number, `$Latest` or `$Default`.
    pub(crate) fn version(&self, text: &str) -> Option<(u64, &Arc<Version>)> {
        let number = match text {
            "$Latest" => *self.versions.last_key_value()?.0,
            "" | "$Default" => self.default_version,
            number => number.parse().ok()?,
        };
        self.versions.get(&number).map(|version| (number, version))
    }
}

impl State {
    /// A template by id or name; the other of the two is ignored.
    pub(crate) fn template(&self, id: Option<&str>, name: Option<&str>) -> Option<&Template> {
        match (id, name) {
            (Some(id), _) => self.templates.get(id),
            (None, Some(name)) => self.templates.values().find(|template| template.name == name),
            (None, None) => None,
        }
    }
}

/// Finds the template that a request names by id xor name.
pub(crate) fn find<'a>(state: &'a State, params: &Tree) -> Result<&'a Template, ApiError> {
    let (id, name) = (params.text_of("LaunchTemplateId"), params.text_of("LaunchTemplateName"));
    match (id, name) {
        (Some(_), Some(_)) => Err(ApiError::refused(
            "InvalidParameterCombination",
            "Only one of the parameters launchTemplateId and launchTemplateName may be specified.",
        )),
        (None, None) => Err(ApiError::refused(
            "MissingParameter",
            "Either the launchTemplateId or the launchTemplateName must be specified.",
        )),
        (Some(id), None) => {
            if !template_data::plausible(id, "lt-") {
                return Err(ApiError::refused(
                    "InvalidLaunchTemplateId.Malformed",
                    format!("Invalid launch template id: \"{id}\""),
                ));
            }
            state.template(Some(id), None).ok_or_else(|| missing_id(id))
        }
        (None, Some(name)) => state.template(None, Some(name)).ok_or_else(|| missing_name(name)),
    }
}

fn missing_id(id: &str) -> ApiError {
    ApiError::refused(
        "InvalidLaunchTemplateId.NotFound",
        format!("The specified launch template, with template ID {id}, does not exist."),
    )
}

fn missing_name(name: &str) -> ApiError {
    ApiError::refused(
        "InvalidLaunchTemplateName.NotFoundException",
        format!("The specified launch template, with template name {name}, does not exist."),
    )
}

/// Answers a repeated client token with the first reply, or runs `make` and remembers what it answered.
pub(crate) fn once(
    region: &mut Region,
    operation: &'static str,
    params: &Tree,
    make: impl FnOnce(&mut Region) -> Result<Tree, ApiError>,
) -> Result<Tree, ApiError> {
    let Some(token) = params.text_of("ClientToken").map(str::to_owned) else {
        return make(region);
    };
    if token.len() > 128 || !token.is_ascii() {
        return Err(ApiError::refused(
            "InvalidParameterValue",
            "ClientToken must be at most 128 ASCII characters.",
        ));
    }
    let key = (operation, token);
    match region.state.tokens.get(&key) {
        Some((earlier, reply)) if earlier == params => Ok(reply.clone()),
        Some(_) => Err(ApiError::refused(
            "IdempotentParameterMismatch",
            "The client token was used before with other parameters.",
        )),
        None => {
            let reply = make(region)?;
            region.state.tokens.insert(key, (params.clone(), reply.clone()));
            Ok(reply)
        }
    }
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"().-/_".contains(&byte);
    if (3..=128).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(ApiError::refused(
        "InvalidLaunchTemplateName.MalformedException",
        "The launch template name must be between 3 and 128 characters of a-z, A-Z, 0-9, and ().-/_",
    ))
}

pub(crate) fn description(params: &Tree) -> Result<Option<String>, ApiError> {
    let description = params.text_of("VersionDescription");
    if description.is_some_and(|text| text.chars().count() > 255) {
        return Err(ApiError::refused(
            "InvalidParameterValue",
            "The version description must be at most 255 characters.",
        ));
    }
    Ok(description.map(str::to_owned))
}

pub(crate) fn create(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    once(region, "CreateLaunchTemplate", params, |region| {
        let name = params.text_of("LaunchTemplateName").unwrap_or_default();
        check_name(name)?;
        let description = description(params)?;
        let data = params.get("LaunchTemplateData").cloned().unwrap_or_default();
        template_data::check(&data)?;
        let tags = tags::specified(params, "launch-template")?;
        if region.state.template(None, Some(name)).is_some() {
            return Err(ApiError::refused(
                "InvalidLaunchTemplateName.AlreadyExistsException",
                "Launch template name already in use.",
            ));
        }
        let version = Arc::new(Version { created: region.now, description, data });
        let template = Template {
            id: region.ids.resource("lt"),
            name: name.to_owned(),
            created: region.now,
            default_version: 1,
            last_number: 1,
            versions: BTreeMap::from([(1, version)]),
            tags,
        };
        let reply = Tree::new().with("LaunchTemplate", render(region, &template));
        region.state.templates.insert(template.id.clone(), template);
        Ok(reply)
    })
}

pub(crate) fn modify(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    once(region, "ModifyLaunchTemplate", params, |region| {
        let template = find(&region.state, params)?;
        let id = template.id.clone();
        let wanted = params.text_of("DefaultVersion");
        let number = match wanted {
            None => template.default_version,
            Some(text) => match template.version(text) {
                Some((number, _)) => number,
                None => return Err(missing_version(template, text)),
            },
        };
        if let Some(template) = region.state.templates.get_mut(&id) {
            template.default_version = number;
        }
        let tree = region.state.templates.get(&id).map(|template| render(region, template));
        Ok(Tree::new().with_opt("LaunchTemplate", tree))
    })
}

pub(crate) fn missing_version(template: &Template, text: &str) -> ApiError {
    ApiError::refused(
        "InvalidLaunchTemplateId.VersionNotFound",
        format!(
            "Could not find the specified version {text} for the launch template with ID {}.",
            template.id
        ),
    )
}

pub(crate) fn delete(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let id = find(&region.state, params)?.id.clone();
    let removed = region.state.templates.remove(&id);
    Ok(Tree::new().with_opt("LaunchTemplate", removed.map(|template| render(region, &template))))
}

pub(crate) fn describe(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let (ids, names) = (params.texts_of("LaunchTemplateIds"), params.texts_of("LaunchTemplateNames"));
    if !ids.is_empty() && !names.is_empty() {
        return Err(ApiError::refused(
            "InvalidParameterCombination",
            "Only one of the parameters launchTemplateIds and launchTemplateNames may be specified.",
        ));
    }
    if let Some(id) = ids.iter().find(|id| !view.state.templates.contains_key(*id)) {
        return Err(missing_id(id));
    }
    if let Some(name) = names.iter().find(|name| view.state.template(None, Some(name)).is_none()) {
        return Err(missing_name(name));
    }
    let filters = Filters::read(params, &["launch-template-name", "create-time"])?;
    let page = Page::results(params, 1, 200)?;
    let entries = view.state.templates.values().filter(|template| {
        (ids.is_empty() || ids.contains(&template.id))
            && (names.is_empty() || names.contains(&template.name))
            && filters.match_all(&template.tags, |name| {
                vec![if name == "create-time" { timestamp(template.created) } else { template.name.clone() }]
            })
    });
    let entries = entries.map(|template| (template.id.clone(), render_in(view.scope, template)));
    Ok(page.reply(view.settings, "LaunchTemplates", entries.collect()))
}

fn render(region: &Region, template: &Template) -> Tree {
    render_in(&region.scope, template)
}

fn render_in(scope: &crate::Scope, template: &Template) -> Tree {
    Tree::new()
        .with("LaunchTemplateId", &template.id)
        .with("LaunchTemplateName", &template.name)
        .with("CreateTime", timestamp(template.created))
        .with("CreatedBy", caller(scope))
        .with("DefaultVersionNumber", template.default_version)
        .with("LatestVersionNumber", template.versions.last_key_value().map_or(1, |(number, _)| *number))
        .with("Tags", tags::render(&template.tags))
}

/// The principal of every call in a scope.
pub(crate) fn caller(scope: &crate::Scope) -> String {
    format!("arn:{}:iam::{}:user/simulated", scope.partition(), scope.account)
}
