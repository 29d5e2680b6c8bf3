//! `GeneratePatches`: patches of the templates of pools from variables and settings. Pure (R6, R9).

use async_trait::async_trait;
use tokio::task::yield_now;

use crate::{
    call::{Call, shortened},
    handler::Handler,
    protocol::{
        GeneratePatchesRequest, GeneratePatchesResponse, GeneratePatchesResponseItem, Hook, Response as _,
    },
    topology::{self, Holders, Variables},
};

/// The most that all patches of an answer may have, in bytes. A variable of all templates is in each patch, so that an answer
/// can be much larger than its request.
const LARGEST: usize = 4 * 1024 * 1024;

pub(super) struct GeneratePatches;

#[async_trait]
impl Handler for GeneratePatches {
    const HOOK: Hook = Hook::GeneratePatches;
    type Request = GeneratePatchesRequest;
    type Response = GeneratePatchesResponse;

    async fn handle(&self, request: GeneratePatchesRequest, call: &Call) -> GeneratePatchesResponse {
        let (mut items, mut size) = (Vec::new(), 0);
        let templates = request.items.iter().filter_map(|item| Some((item, topology::read(&item.object)?)));
        let templates: Vec<_> = templates.collect();
        let holders =
            Holders::of(templates.iter().map(|(item, template)| (&item.holder_reference, template)));
        for (item, template) in templates.iter().filter(|(item, _)| holders.has_pool(&item.holder_reference))
        {
            // A call that is too late ends here.
            yield_now().await;
            let variables = Variables::of(&request.variables, &item.variables);
            match topology::patch(template, &variables, &call.settings) {
                Ok(Some(patch)) => {
                    let patch = GeneratePatchesResponseItem::merge(&item.uid, &patch);
                    size += patch.uid.len() + patch.patch.len();
                    items.push(patch);
                }
                Ok(None) => {}
                Err(error) => {
                    let pool = topology::pool_name(&variables, &item.holder_reference);
                    return GeneratePatchesResponse::failure(shortened(format!(
                        "machine pool {pool}: {error}"
                    )));
                }
            }
            if size > LARGEST {
                let message = format!("the patches have more than {LARGEST} bytes");
                return GeneratePatchesResponse::failure(message);
            }
        }
        GeneratePatchesResponse { items, ..GeneratePatchesResponse::default() }
    }
}
