//! `AfterWorkersUpgrade`: verifies the version of the nodes of our pools.

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{Hook, RetryResponse, UpgradeSteps, UpgradedRequest},
};

pub(super) struct AfterWorkersUpgrade;

#[async_trait]
impl Handler for AfterWorkersUpgrade {
    const HOOK: Hook = Hook::AfterWorkersUpgrade;
    type Request = UpgradedRequest;
    type Response = RetryResponse;

    async fn handle(&self, request: UpgradedRequest, call: &Call) -> RetryResponse {
        call.consult(&request.cluster, &request.kubernetes_version, UpgradeSteps::default()).await
    }
}
