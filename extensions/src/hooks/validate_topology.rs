//! `ValidateTopology`: whether the patched templates of pools are valid. Pure (R6).

use async_trait::async_trait;
use tokio::task::yield_now;

use crate::{
    call::{Call, shortened},
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
        let (mut problems, mut more) = (Vec::new(), 0);
        let templates = request.items.iter().filter_map(|item| Some((item, topology::read(&item.object)?)));
        let templates: Vec<_> = templates.collect();
        let holders =
            Holders::of(templates.iter().map(|(item, template)| (&item.holder_reference, template)));
        for (item, template) in templates.iter().filter(|(_, template)| is_pool_template(template)) {
            // A call that is too late ends here.
            yield_now().await;
            let variables = Variables::of(&request.variables, &item.variables);
            let pool = topology::pool_name(&variables, &item.holder_reference);
            let bootstrap = holders.bootstrap_of(&item.holder_reference);
            for problem in topology::problems(template, bootstrap, &variables) {
                if problems.len() < MOST {
                    problems.push(shortened(format!("machine pool {pool}: {problem}")));
                } else {
                    more += 1;
                }
            }
        }
        if problems.is_empty() {
            return CommonResponse::success();
        }
        let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
        CommonResponse::failure(problems.join("; ") + &rest)
    }
}
