//! `GenerateUpgradePlan`: the versions of an upgrade from those that the settings offer, the newest with images where AWS is
//! asked (R6, R13).

use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::{
    call::{Call, shortened},
    gates::{identity_of, missing_images},
    handler::Handler,
    protocol::{GenerateUpgradePlanRequest, GenerateUpgradePlanResponse, Hook, Response as _, UpgradeStep},
    upgrade_plan::{plan, with_images},
    version::Version,
};

pub(super) struct GenerateUpgradePlan;

#[async_trait]
impl Handler for GenerateUpgradePlan {
    const HOOK: Hook = Hook::GenerateUpgradePlan;
    type Request = GenerateUpgradePlanRequest;
    type Response = GenerateUpgradePlanResponse;

    async fn handle(&self, request: GenerateUpgradePlanRequest, call: &Call) -> GenerateUpgradePlanResponse {
        let Some(missing) = missing(&request, call).await else {
            let message = "the images of the ASGMachinePools are being read from AWS";
            return GenerateUpgradePlanResponse::failure(message.to_owned());
        };
        match answer(&request, &call.settings.kubernetes_versions, &missing) {
            Ok(response) => response,
            Err(message) => GenerateUpgradePlanResponse::failure(shortened(message)),
        }
    }
}

/// The offered versions of the upgrade for which a pool has no image; `None` while images are being read, since core keeps a
/// plan for 10 minutes, and repeats a call that failed. Pools that cannot be read have all images here: before
/// the upgrade begins, the hooks that wait for images read them again.
async fn missing(request: &GenerateUpgradePlanRequest, call: &Call) -> Option<BTreeSet<Version>> {
    let (Some(lookups), Some(cluster)) = (&call.services.lookups, request.cluster.key()) else {
        return Some(BTreeSet::new());
    };
    let version = |text: &str| text.parse::<Version>().ok();
    let from = version(&request.from_control_plane_kubernetes_version);
    let (Some(from), Some(to)) = (from, version(&request.to_kubernetes_version)) else {
        return Some(BTreeSet::new());
    };
    let between = |offered: &&Version| from < **offered && **offered < to;
    let versions: Vec<Version> = call.settings.kubernetes_versions.iter().filter(between).cloned().collect();
    match call.services.kubernetes.pools(&cluster).await {
        Ok(list) if !versions.is_empty() => {
            let identity = identity_of(&request.cluster, call.is_confirmed);
            missing_images(lookups, &list.pools, &identity, &versions).await
        }
        _ => Some(BTreeSet::new()),
    }
}

fn answer(
    request: &GenerateUpgradePlanRequest,
    offered: &[Version],
    missing: &BTreeSet<Version>,
) -> Result<GenerateUpgradePlanResponse, String> {
    let version =
        |field: &str, text: &str| text.parse::<Version>().map_err(|error| format!("{field}: {error}"));
    let control_plane =
        version("fromControlPlaneKubernetesVersion", &request.from_control_plane_kubernetes_version)?;
    let to = version("toKubernetesVersion", &request.to_kubernetes_version)?;
    let workers = match request.from_workers_kubernetes_version.as_str() {
        "" => None,
        text => Some(version("fromWorkersKubernetesVersion", text)?),
    };
    let offered = with_images(offered, missing);
    let plan = plan(&offered, &control_plane, workers.as_ref(), &to).map_err(|error| error.to_string())?;
    if let Some(step) = plan.workers.iter().find(|step| missing.contains(step)) {
        let (major, minor) = (step.major(), step.minor());
        return Err(format!(
            "the workers have to be upgraded to a {major}.{minor} version, but the setting kubernetesVersions contains none for which all images of the ASGMachinePools exist"
        ));
    }
    let steps = |versions: Vec<Version>| {
        versions.into_iter().map(|version| UpgradeStep { version: version.to_string() }).collect()
    };
    Ok(GenerateUpgradePlanResponse {
        control_plane_upgrades: steps(plan.control_plane),
        workers_upgrades: steps(plan.workers),
        ..GenerateUpgradePlanResponse::default()
    })
}
