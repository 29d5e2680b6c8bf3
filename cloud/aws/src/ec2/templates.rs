//! Launch templates and their versions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use aws_sdk_ec2::{
    Client,
    operation::RequestId as _,
    types::{
        self, DeleteLaunchTemplateVersionsResponseErrorItem, LaunchTemplateErrorCode, ResourceType,
        TagSpecification, ValidationWarning,
    },
};
use capasg_cloud::{
    CloudError, ErrorClass, LaunchTemplate, LaunchTemplateData, LaunchTemplateVersion, Page, Result,
    UserData, WriteReply, Written,
};

use super::{
    filters::{filter, tag_map},
    template_data::{content, encoded, request, tags},
};
use crate::{
    call::{call, done, made, unreadable},
    message,
    time::instant,
};

/// The most launch templates in one response.
const MAX_TEMPLATES: i32 = 200;
/// The most versions in one response.
const MAX_VERSIONS: i32 = 200;
/// The version of a launch template with the highest number.
const LATEST: &str = "$Latest";

/// Replaces user data that AWS repeats in a message.
const USER_DATA: &str = "[user data]";

/// What a new version holds, the template's own tags apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewVersion<'a> {
    /// The version's content.
    pub(crate) data: &'a LaunchTemplateData,
    /// `VersionDescription`.
    pub(crate) description: &'a str,
    /// `ClientToken`.
    pub(crate) client_token: &'a str,
}

/// `CreateLaunchTemplate` with version 1.
pub(crate) async fn create(
    client: &Client,
    api: &'static str,
    name: &str,
    version: NewVersion<'_>,
    template_tags: &BTreeMap<String, String>,
) -> Result<WriteReply> {
    let tag_specification = tags(template_tags).map(|tags| {
        let resource_type = ResourceType::LaunchTemplate;
        TagSpecification::builder().resource_type(resource_type).set_tags(Some(tags)).build()
    });
    let call_request = client
        .create_launch_template()
        .launch_template_name(name)
        .launch_template_data(request(version.data))
        .version_description(version.description)
        .set_tag_specifications(tag_specification.map(|specification| vec![specification]))
        .client_token(version.client_token);
    let user_data = &version.data.user_data;
    let reply = call(api, Box::pin(call_request.send()))
        .await
        .map_err(|error| without_user_data(error, user_data))?;
    warn(api, reply.warning(), user_data);
    let template = reply.launch_template().ok_or_else(|| unreadable(api, "LaunchTemplate"))?;
    let id = template.launch_template_id().ok_or_else(|| unreadable(api, "LaunchTemplateId"))?;
    let created_at = instant(template.create_time()).unwrap_or_default();
    // A repeated call finds the template with later versions; this call created the first.
    Ok(made(Written::Version { id: id.to_owned(), number: 1, created_at }, &reply))
}

/// `CreateLaunchTemplateVersion` with full data: no source version.
pub(crate) async fn create_version(
    client: &Client,
    api: &'static str,
    id: &str,
    version: NewVersion<'_>,
) -> Result<WriteReply> {
    let call_request = client
        .create_launch_template_version()
        .launch_template_id(id)
        .launch_template_data(request(version.data))
        .version_description(version.description)
        .client_token(version.client_token);
    let user_data = &version.data.user_data;
    let reply = call(api, Box::pin(call_request.send()))
        .await
        .map_err(|error| without_user_data(error, user_data))?;
    warn(api, reply.warning(), user_data);
    let created = reply.launch_template_version();
    let number = created.and_then(aws_sdk_ec2::types::LaunchTemplateVersion::version_number);
    let number = number.ok_or_else(|| unreadable(api, "VersionNumber"))?;
    let created_at = created.and_then(|version| instant(version.create_time())).unwrap_or_default();
    Ok(made(Written::Version { id: id.to_owned(), number, created_at }, &reply))
}

/// `DeleteLaunchTemplateVersions`.
///
/// # Errors
/// Also if AWS answers with success but lists versions that it kept; versions that were deleted before do not count.
pub(crate) async fn delete_versions(
    client: &Client,
    api: &'static str,
    id: &str,
    versions: &BTreeSet<i64>,
) -> Result<WriteReply> {
    let versions = versions.iter().map(ToString::to_string).collect();
    let request =
        client.delete_launch_template_versions().launch_template_id(id).set_versions(Some(versions));
    let reply = call(api, request.send()).await?;
    match kept(api, reply.unsuccessfully_deleted_launch_template_versions()) {
        Some(error) => Err(CloudError { request_id: reply.request_id().map(str::to_owned), ..error }),
        None => Ok(made(Written::Done, &reply)),
    }
}

/// `DeleteLaunchTemplate` with all versions.
pub(crate) async fn delete(client: &Client, api: &'static str, id: &str) -> Result<WriteReply> {
    done(api, client.delete_launch_template().launch_template_id(id).send()).await
}

/// `DescribeLaunchTemplates` by name.
pub(crate) async fn describe(client: &Client, name: &str) -> Result<Option<LaunchTemplate>> {
    let api = "DescribeLaunchTemplates";
    let reply = match call(api, client.describe_launch_templates().launch_template_names(name).send()).await {
        // InvalidLaunchTemplateName.NotFoundException
        Err(error) if error.class == ErrorClass::NotFound => return Ok(None),
        reply => reply?,
    };
    reply.launch_templates().first().map(|template| described(api, name, template)).transpose()
}

/// `DescribeLaunchTemplates` of all that have a tag with this key.
pub(crate) async fn list(
    client: &Client,
    tag_key: &str,
    token: Option<String>,
) -> Result<Page<LaunchTemplate>> {
    let api = "DescribeLaunchTemplates";
    let request = client
        .describe_launch_templates()
        .filters(filter("tag-key", [&tag_key.to_owned()]))
        .max_results(MAX_TEMPLATES)
        .set_next_token(token);
    let reply = call(api, request.send()).await?;
    let templates = reply.launch_templates().iter().map(|template| described(api, "", template));
    Ok(Page { items: templates.collect::<Result<_>>()?, next_token: reply.next_token.clone() })
}

fn described(api: &'static str, name: &str, template: &types::LaunchTemplate) -> Result<LaunchTemplate> {
    let missing = |member| unreadable(api, member);
    Ok(LaunchTemplate {
        id: template.launch_template_id().ok_or_else(|| missing("LaunchTemplateId"))?.to_owned(),
        name: template.launch_template_name().unwrap_or(name).to_owned(),
        latest_version: template.latest_version_number().ok_or_else(|| missing("LatestVersionNumber"))?,
        default_version: template.default_version_number().ok_or_else(|| missing("DefaultVersionNumber"))?,
        tags: tag_map(template.tags()),
    })
}

/// `DescribeLaunchTemplateVersions` of all versions.
pub(crate) async fn describe_versions(
    client: &Client,
    id: &str,
    token: Option<String>,
) -> Result<Page<LaunchTemplateVersion>> {
    let api = "DescribeLaunchTemplateVersions";
    let request = client
        .describe_launch_template_versions()
        .launch_template_id(id)
        .max_results(MAX_VERSIONS)
        .set_next_token(token);
    let reply = call(api, request.send()).await?;
    let versions = reply.launch_template_versions().iter().filter_map(described_version);
    Ok(Page { items: versions.collect(), next_token: reply.next_token.clone() })
}

/// `DescribeLaunchTemplateVersions` of the latest version of each launch template, by the ID of its template.
pub(crate) async fn latest_versions(
    client: &Client,
    token: Option<String>,
) -> Result<Page<(String, LaunchTemplateVersion)>> {
    let api = "DescribeLaunchTemplateVersions";
    let request = client
        .describe_launch_template_versions()
        .versions(LATEST)
        .max_results(MAX_VERSIONS)
        .set_next_token(token);
    let reply = call(api, request.send()).await?;
    let versions = reply.launch_template_versions().iter();
    let by_template =
        versions.filter_map(|one| Some((one.launch_template_id()?.to_owned(), described_version(one)?)));
    Ok(Page { items: by_template.collect(), next_token: reply.next_token.clone() })
}

/// The user data of the response is dropped here.
fn described_version(version: &types::LaunchTemplateVersion) -> Option<LaunchTemplateVersion> {
    Some(LaunchTemplateVersion {
        number: version.version_number()?,
        description: version.version_description().map(str::to_owned),
        image_id: version.launch_template_data().and_then(|data| data.image_id()).map(str::to_owned),
        content: version.launch_template_data().map(|data| Arc::new(content(data))),
        created_at: instant(version.create_time()).unwrap_or_default(),
    })
}

/// The error that names the versions which AWS kept; `None` if all are deleted.
fn kept(api: &'static str, items: &[DeleteLaunchTemplateVersionsResponseErrorItem]) -> Option<CloudError> {
    let rejections: Vec<(i64, &str, &str)> =
        items.iter().filter(|item| !is_deleted(item)).map(rejection).collect();
    let (_, first_code, _) = *rejections.first()?;
    let described: Vec<String> =
        rejections.iter().map(|(version, code, message)| format!("{version} ({code}: {message})")).collect();
    // The only code that is not about the request itself is transient.
    let passing =
        rejections.iter().all(|(_, code, _)| *code == LaunchTemplateErrorCode::UnexpectedError.as_str());
    Some(CloudError {
        api,
        class: if passing { ErrorClass::Transient } else { ErrorClass::Invalid },
        code: first_code.to_owned(),
        message: message::stable(&format!("versions were not deleted: {}", described.join("; "))),
        outcome_unknown: false,
        request_id: None,
    })
}

fn is_deleted(item: &DeleteLaunchTemplateVersionsResponseErrorItem) -> bool {
    let code = item.response_error().and_then(|error| error.code());
    matches!(
        code,
        Some(
            LaunchTemplateErrorCode::LaunchTemplateVersionDoesNotExist
                | LaunchTemplateErrorCode::LaunchTemplateIdDoesNotExist
        )
    )
}

fn rejection(item: &DeleteLaunchTemplateVersionsResponseErrorItem) -> (i64, &str, &str) {
    let error = item.response_error();
    (
        item.version_number().unwrap_or_default(),
        error.and_then(|error| error.code()).map_or("unexpectedError", |code| code.as_str()),
        error.and_then(|error| error.message()).unwrap_or_default(),
    )
}

/// EC2 accepts a version whose content is invalid and reports it only here.
fn warn(api: &'static str, warning: Option<&ValidationWarning>, user_data: &UserData) {
    for error in warning.map(ValidationWarning::errors).unwrap_or_default() {
        let message = without_secrets(error.message().unwrap_or_default(), user_data);
        tracing::warn!(
            api,
            code = error.code(),
            error_message = message,
            "AWS accepted a launch template that it considers invalid"
        );
    }
}

fn without_user_data(mut error: CloudError, user_data: &UserData) -> CloudError {
    error.message = without_secrets(&error.message, user_data);
    error
}

/// The message without the user data, should AWS repeat it, encoded or plain.
fn without_secrets(message: &str, user_data: &UserData) -> String {
    let message = message::without_secret(message, &encoded(user_data).unwrap_or_default(), USER_DATA);
    let plain = std::str::from_utf8(user_data.expose()).unwrap_or_default();
    message::without_secret(&message, plain, USER_DATA)
}
