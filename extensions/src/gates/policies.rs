//! What users decided: maintenance windows, approval of upgrades, deletion protection. None of these ends by a deadline.

use capasg_api::names::annotations::protects;

use super::{Blocker, Step};
use crate::{
    blocks::Cause,
    names::annotations,
    protocol::Hook,
    settings::{self, Settings},
};

/// What users decided against the step. `concerned` says whether the Cluster has objects of a gate: without any, only the
/// deletion protection applies, which a user sets on the Cluster itself.
///
/// # Errors
/// If an annotation of the Cluster is invalid: the text says which, and why.
pub fn policies(step: &Step<'_>, settings: &Settings, concerned: bool) -> Result<Vec<Blocker>, String> {
    match step.hook {
        Hook::BeforeClusterDelete => Ok(protection(step)?.into_iter().collect()),
        Hook::BeforeClusterUpgrade | Hook::BeforeControlPlaneUpgrade if concerned => {
            Ok(approval(step, settings).into_iter().chain(window(step, settings)?).collect())
        }
        Hook::BeforeWorkersUpgrade if concerned => Ok(window(step, settings)?.into_iter().collect()),
        _ => Ok(Vec::new()),
    }
}

/// The approval is for the version that the Cluster requests, so that an upgrade over several versions needs one.
fn approval(step: &Step<'_>, settings: &Settings) -> Option<Blocker> {
    let version = step.cluster.version().unwrap_or(step.version);
    let approved = step.cluster.annotation(annotations::UPGRADE_APPROVED).map(str::trim);
    (settings.require_approval && approved != Some(version)).then(|| Blocker {
        cause: Cause::NotApproved,
        message: format!(
            "the upgrade to {version} is not approved; to approve it, set the annotation {} of the Cluster to {version}",
            annotations::UPGRADE_APPROVED
        ),
    })
}

fn window(step: &Step<'_>, settings: &Settings) -> Result<Option<Blocker>, String> {
    let own = step.cluster.annotation(annotations::MAINTENANCE_WINDOWS);
    let own = own.map(settings::windows).transpose();
    let own = own.map_err(|error| format!("annotation {}: {error}", annotations::MAINTENANCE_WINDOWS))?;
    let windows = own.as_deref().unwrap_or(&settings.maintenance_windows);
    if windows.is_empty() || windows.iter().any(|window| window.is_open(step.now)) {
        return Ok(None);
    }
    Ok(Some(Blocker { cause: Cause::WindowClosed, message: "no maintenance window is open".to_owned() }))
}

fn protection(step: &Step<'_>) -> Result<Option<Blocker>, String> {
    let key = annotations::DELETION_PROTECTION;
    let value = step.cluster.annotation(key);
    match value.map(str::trim) {
        _ if !protects(value) => Ok(None),
        Some("true") => Ok(Some(Blocker {
            cause: Cause::DeletionProtected,
            message: format!(
                "the Cluster is protected from deletion; to delete it, remove its annotation {key}"
            ),
        })),
        _ => Err(format!("annotation {key}: must be true or false")),
    }
}
