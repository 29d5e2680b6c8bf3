//! `BeforeClusterCreate`: checks in AWS what the pools of the topology require, as far as it is known before anything exists.

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{ClusterRequest, Hook, RetryResponse, UpgradeSteps},
};

pub(super) struct BeforeClusterCreate;

#[async_trait]
impl Handler for BeforeClusterCreate {
    const HOOK: Hook = Hook::BeforeClusterCreate;
    type Request = ClusterRequest;
    type Response = RetryResponse;

    async fn handle(&self, request: ClusterRequest, call: &Call) -> RetryResponse {
        call.consult(&request.cluster, "", UpgradeSteps::default()).await
    }
}
