//! `GeneratePatches`: patches of the templates of pools from variables and settings. Pure (R6, R9).

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{
        GeneratePatchesRequest, GeneratePatchesResponse, GeneratePatchesResponseItem, Hook, Response as _,
    },
    topology::{self, Holders, Variables},
};

pub(super) struct GeneratePatches;

#[async_trait]
impl Handler for GeneratePatches {
    const HOOK: Hook = Hook::GeneratePatches;
    type Request = GeneratePatchesRequest;
    type Response = GeneratePatchesResponse;

    async fn handle(&self, request: GeneratePatchesRequest, call: &Call) -> GeneratePatchesResponse {
        let mut items = Vec::new();
        let holders = Holders::of(request.items.iter().map(|item| (&item.holder_reference, &item.object)));
        for item in request.items.iter().filter(|item| holders.has_pool(&item.holder_reference)) {
            let variables = Variables::of(&request.variables, &item.variables);
            match topology::patch(&item.object, &variables, &call.settings) {
                Ok(Some(patch)) => items.push(GeneratePatchesResponseItem::merge(&item.uid, &patch)),
                Ok(None) => {}
                Err(error) => {
                    let pool = topology::pool_name(&variables, &item.holder_reference);
                    return GeneratePatchesResponse::failure(format!("machine pool {pool}: {error}"));
                }
            }
        }
        GeneratePatchesResponse { items, ..GeneratePatchesResponse::default() }
    }
}
