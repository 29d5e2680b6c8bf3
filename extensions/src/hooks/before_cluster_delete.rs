//! `BeforeClusterDelete`: blocks while the Cluster is protected, and reports what is kept in AWS (R11).

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{ClusterRequest, Hook, RetryResponse, UpgradeSteps},
};

pub(super) struct BeforeClusterDelete;

#[async_trait]
impl Handler for BeforeClusterDelete {
    const HOOK: Hook = Hook::BeforeClusterDelete;
    type Request = ClusterRequest;
    type Response = RetryResponse;

    async fn handle(&self, request: ClusterRequest, call: &Call) -> RetryResponse {
        call.consult(&request.cluster, "", UpgradeSteps::default()).await
    }
}
