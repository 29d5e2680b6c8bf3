//! `DiscoverVariables`: the variables that the patches read. Pure.

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{DiscoverVariablesRequest, DiscoverVariablesResponse, Hook},
    topology::variables,
};

pub(super) struct DiscoverVariables;

#[async_trait]
impl Handler for DiscoverVariables {
    const HOOK: Hook = Hook::DiscoverVariables;
    type Request = DiscoverVariablesRequest;
    type Response = DiscoverVariablesResponse;

    async fn handle(&self, _: DiscoverVariablesRequest, _: &Call) -> DiscoverVariablesResponse {
        DiscoverVariablesResponse { variables: variables::all(), ..DiscoverVariablesResponse::default() }
    }
}
