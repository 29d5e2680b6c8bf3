//! Replies to writes as the port's types.

use capasg_cloud::{CloudError, ErrorClass, Result, Write, Written};
use capasg_fake_aws::Tree;

use super::replies::{member, number, text, time};

/// The codes of versions that do not exist any more.
const DELETED: [&str; 2] = ["launchTemplateVersionDoesNotExist", "launchTemplateIdDoesNotExist"];

/// The only code that is not about the request itself; also that of a version which AWS kept without a code.
const UNEXPECTED: &str = "unexpectedError";

/// The reply to a write.
///
/// # Errors
/// If it has no member that AWS promises, or names versions that AWS did not delete.
pub(super) fn written(write: &Write, reply: &Tree) -> Result<Written> {
    let api = write.api();
    match write {
        Write::CreateLaunchTemplate { .. } => {
            let template = member(api, reply, "LaunchTemplate")?;
            let created_at = time(template, "CreateTime").unwrap_or_default();
            // A repeated call finds the template with later versions; this call created the first.
            Ok(Written::Version { id: text(api, template, "LaunchTemplateId")?, number: 1, created_at })
        }
        Write::CreateLaunchTemplateVersion { id, .. } => {
            let nothing = Tree::new();
            let version = reply.get("LaunchTemplateVersion").unwrap_or(&nothing);
            let created_at = time(version, "CreateTime").unwrap_or_default();
            Ok(Written::Version {
                id: id.clone(),
                number: number(api, version, "VersionNumber")?,
                created_at,
            })
        }
        Write::DeleteLaunchTemplateVersions { .. } => {
            kept(api, reply.items_of("UnsuccessfullyDeletedLaunchTemplateVersions"))
                .map_or(Ok(Written::Done), Err)
        }
        _ => Ok(Written::Done),
    }
}

/// The error that names the versions which AWS kept; `None` if all are deleted.
fn kept(api: &'static str, items: &[Tree]) -> Option<CloudError> {
    let rejections: Vec<(i64, &str, &str)> =
        items.iter().map(rejection).filter(|(_, code, _)| !DELETED.contains(code)).collect();
    let (_, first_code, _) = *rejections.first()?;
    let described: Vec<String> =
        rejections.iter().map(|(version, code, message)| format!("{version} ({code}: {message})")).collect();
    let passing = rejections.iter().all(|(_, code, _)| *code == UNEXPECTED);
    Some(CloudError {
        api,
        class: if passing { ErrorClass::Transient } else { ErrorClass::Invalid },
        code: first_code.to_owned(),
        message: format!("versions were not deleted: {}", described.join("; ")),
        outcome_unknown: false,
        request_id: None,
    })
}

fn rejection(item: &Tree) -> (i64, &str, &str) {
    let error = |name: &str| item.get("ResponseError").and_then(|error| error.text_of(name));
    (
        item.number_of("VersionNumber").unwrap_or_default(),
        error("Code").unwrap_or(UNEXPECTED),
        error("Message").unwrap_or_default(),
    )
}
