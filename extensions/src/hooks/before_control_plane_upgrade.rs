//! `BeforeControlPlaneUpgrade`: the same before each step of the control plane.

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{Hook, RetryResponse, UpgradeRequest},
};

pub(super) struct BeforeControlPlaneUpgrade;

#[async_trait]
impl Handler for BeforeControlPlaneUpgrade {
    const HOOK: Hook = Hook::BeforeControlPlaneUpgrade;
    type Request = UpgradeRequest;
    type Response = RetryResponse;

    async fn handle(&self, request: UpgradeRequest, call: &Call) -> RetryResponse {
        call.consult(&request.cluster, &request.to_kubernetes_version, request.steps()).await
    }
}
