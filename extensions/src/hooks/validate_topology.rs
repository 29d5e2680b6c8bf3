//! `ValidateTopology`: whether the patched templates of pools are valid. Pure (R6).

use async_trait::async_trait;

use crate::{
    call::Call,
    handler::Handler,
    protocol::{CommonResponse, Hook, Response as _, ValidateTopologyRequest},
    topology::{self, Holders, Variables, is_pool_template},
};

/// The most problems in a message.
const MOST: usize = 10;

pub(super) struct ValidateTopology;

#[async_trait]
impl Handler for ValidateTopology {
    const HOOK: Hook = Hook::ValidateTopology;
    type Request = ValidateTopologyRequest;
    type Response = CommonResponse;

    async fn handle(&self, request: ValidateTopologyRequest, _: &Call) -> CommonResponse {
        let mut problems = Vec::new();
        let holders = Holders::of(request.items.iter().map(|item| (&item.holder_reference, &item.object)));
        for item in request.items.iter().filter(|item| is_pool_template(&item.object)) {
            let variables = Variables::of(&request.variables, &item.variables);
            let pool = topology::pool_name(&variables, &item.holder_reference);
            let bootstrap = holders.bootstrap_of(&item.holder_reference);
            let found = topology::problems(&item.object, bootstrap, &variables);
            problems.extend(found.into_iter().map(|problem| format!("machine pool {pool}: {problem}")));
        }
        if problems.is_empty() {
            return CommonResponse::success();
        }
        let more = problems.len().saturating_sub(MOST);
        problems.truncate(MOST);
        let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
        CommonResponse::failure(problems.join("; ") + &rest)
    }
}
