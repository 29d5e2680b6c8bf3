//! `GenerateUpgradePlan`: the versions of an upgrade from those that the settings offer. Pure (R6, R13).

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{GenerateUpgradePlanRequest, GenerateUpgradePlanResponse, Hook, Response as _, UpgradeStep},
    upgrade_plan::plan,
    version::Version,
};

pub(super) struct GenerateUpgradePlan;

#[async_trait]
impl Handler for GenerateUpgradePlan {
    const HOOK: Hook = Hook::GenerateUpgradePlan;
    type Request = GenerateUpgradePlanRequest;
    type Response = GenerateUpgradePlanResponse;

    async fn handle(&self, request: GenerateUpgradePlanRequest, call: &Call) -> GenerateUpgradePlanResponse {
        match answer(&request, &call.settings.kubernetes_versions) {
            Ok(response) => response,
            Err(message) => GenerateUpgradePlanResponse::failure(message),
        }
    }
}

fn answer(
    request: &GenerateUpgradePlanRequest,
    offered: &[Version],
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
    let plan = plan(offered, &control_plane, workers.as_ref(), &to).map_err(|error| error.to_string())?;
    let steps = |versions: Vec<Version>| {
        versions.into_iter().map(|version| UpgradeStep { version: version.to_string() }).collect()
    };
    Ok(GenerateUpgradePlanResponse {
        control_plane_upgrades: steps(plan.control_plane),
        workers_upgrades: steps(plan.workers),
        ..GenerateUpgradePlanResponse::default()
    })
}
