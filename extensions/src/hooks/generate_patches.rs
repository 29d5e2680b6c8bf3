//! `GeneratePatches`: patches of `ASGMachinePoolTemplate`s from variables and settings. Pure (R6, R9).

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{
        GeneratePatchesRequest, GeneratePatchesResponse, GeneratePatchesResponseItem, Hook, Response as _,
    },
    topology::{self, Variables, is_pool_template, variables::PoolVariables},
};

pub(super) struct GeneratePatches;

#[async_trait]
impl Handler for GeneratePatches {
    const HOOK: Hook = Hook::GeneratePatches;
    type Request = GeneratePatchesRequest;
    type Response = GeneratePatchesResponse;

    async fn handle(&self, request: GeneratePatchesRequest, call: &Call) -> GeneratePatchesResponse {
        let mut items = Vec::new();
        for item in request.items.iter().filter(|item| is_pool_template(&item.object)) {
            let variables = Variables::of(&request.variables, &item.variables);
            let patch = PoolVariables::read(&variables)
                .and_then(|variables| topology::patch(&item.object, &variables, &call.settings));
            match patch {
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
