//! `BeforeClusterUpgrade`: waits for ready and settled pools, an approval and a maintenance window.

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{Hook, RetryResponse, UpgradeRequest},
};

pub(super) struct BeforeClusterUpgrade;

#[async_trait]
impl Handler for BeforeClusterUpgrade {
    const HOOK: Hook = Hook::BeforeClusterUpgrade;
    type Request = UpgradeRequest;
    type Response = RetryResponse;

    async fn handle(&self, request: UpgradeRequest, call: &Call) -> RetryResponse {
        call.consult(&request.cluster, &request.to_kubernetes_version, request.steps()).await
    }
}
