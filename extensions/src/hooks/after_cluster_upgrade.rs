//! `AfterClusterUpgrade`: verifies all nodes; a block delays the next upgrade only.

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{Hook, RetryResponse, UpgradeSteps, UpgradedRequest},
};

pub(super) struct AfterClusterUpgrade;

#[async_trait]
impl Handler for AfterClusterUpgrade {
    const HOOK: Hook = Hook::AfterClusterUpgrade;
    type Request = UpgradedRequest;
    type Response = RetryResponse;

    async fn handle(&self, request: UpgradedRequest, call: &Call) -> RetryResponse {
        call.consult(&request.cluster, &request.kubernetes_version, UpgradeSteps::default()).await
    }
}
