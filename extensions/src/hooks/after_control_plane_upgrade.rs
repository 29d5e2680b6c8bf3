//! `AfterControlPlaneUpgrade`: verifies the version of the nodes of the control plane.

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{Hook, RetryResponse, UpgradeSteps, UpgradedRequest},
};

pub(super) struct AfterControlPlaneUpgrade;

#[async_trait]
impl Handler for AfterControlPlaneUpgrade {
    const HOOK: Hook = Hook::AfterControlPlaneUpgrade;
    type Request = UpgradedRequest;
    type Response = RetryResponse;

    async fn handle(&self, request: UpgradedRequest, call: &Call) -> RetryResponse {
        call.consult(&request.cluster, &request.kubernetes_version, UpgradeSteps::default()).await
    }
}
