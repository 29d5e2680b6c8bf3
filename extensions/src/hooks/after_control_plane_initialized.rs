//! `AfterControlPlaneInitialized`: records it in an event; core may call it more than once (R10).

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    names::events,
    protocol::{ClusterRequest, CommonResponse, Hook, Response as _},
};

pub(super) struct AfterControlPlaneInitialized;

#[async_trait]
impl Handler for AfterControlPlaneInitialized {
    const HOOK: Hook = Hook::AfterControlPlaneInitialized;
    type Request = ClusterRequest;
    type Response = CommonResponse;

    async fn handle(&self, request: ClusterRequest, call: &Call) -> CommonResponse {
        let Some(key) = request.cluster.key() else {
            return CommonResponse::failure(
                "the request has no cluster with a name and a namespace".to_owned(),
            );
        };
        let message = "the control plane accepts requests".to_owned();
        call.publish(call.notice(&key, events::CONTROL_PLANE_INITIALIZED, message));
        CommonResponse::success()
    }
}
