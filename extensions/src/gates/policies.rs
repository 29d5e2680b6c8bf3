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
/// deletion protection applies, which a user sets on the Cluster itself. An annotation with a typing mistake blocks until it
/// is corrected: it may protect.
#[must_use]
pub fn policies(step: &Step<'_>, settings: &Settings, concerned: bool) -> Vec<Blocker> {
    match step.hook {
        Hook::BeforeClusterDelete => protection(step).into_iter().collect(),
        Hook::BeforeClusterUpgrade | Hook::BeforeControlPlaneUpgrade if concerned => {
            approval(step, settings).into_iter().chain(window(step, settings)).collect()
        }
        Hook::BeforeWorkersUpgrade if concerned => window(step, settings).into_iter().collect(),
        _ => Vec::new(),
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

fn window(step: &Step<'_>, settings: &Settings) -> Option<Blocker> {
    let key = annotations::MAINTENANCE_WINDOWS;
    let own = match step.cluster.annotation(key).map(settings::windows).transpose() {
        Ok(own) => own,
        Err(error) => return Some(invalid(key, &error.to_string())),
    };
    let windows = own.as_deref().unwrap_or(&settings.maintenance_windows);
    let is_open = windows.is_empty() || windows.iter().any(|window| window.is_open(step.now));
    let message = || "no maintenance window is open".to_owned();
    (!is_open).then(|| Blocker { cause: Cause::WindowClosed, message: message() })
}

fn protection(step: &Step<'_>) -> Option<Blocker> {
    let key = annotations::DELETION_PROTECTION;
    let value = step.cluster.annotation(key);
    match value.map(str::trim) {
        _ if !protects(value) => None,
        Some("true") => Some(Blocker {
            cause: Cause::DeletionProtected,
            message: format!(
                "the Cluster is protected from deletion; to delete it, remove its annotation {key}"
            ),
        }),
        _ => Some(invalid(key, "must be true or false")),
    }
}

fn invalid(key: &str, why: &str) -> Blocker {
    Blocker { cause: Cause::AnnotationInvalid, message: format!("annotation {key}: {why}") }
}
