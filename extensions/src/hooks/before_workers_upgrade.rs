//! `BeforeWorkersUpgrade`: waits for ready and settled pools, a maintenance window and a window of a pool.

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{Hook, RetryResponse, UpgradeRequest},
};

pub(super) struct BeforeWorkersUpgrade;

#[async_trait]
impl Handler for BeforeWorkersUpgrade {
    const HOOK: Hook = Hook::BeforeWorkersUpgrade;
    type Request = UpgradeRequest;
    type Response = RetryResponse;

    async fn handle(&self, request: UpgradeRequest, call: &Call) -> RetryResponse {
        call.consult(&request.cluster, &request.to_kubernetes_version, request.steps()).await
    }
}
