//! Who the credentials belong to.

use aws_sdk_sts::Client;
use capasg_cloud::Result;

use crate::call::{call, unreadable};

/// STS `GetCallerIdentity`: the account, 12 digits. Needs no permission.
pub(crate) async fn account(client: &Client) -> Result<String> {
    let api = "GetCallerIdentity";
    let reply = call(api, client.get_caller_identity().send()).await?;
    reply.account.ok_or_else(|| unreadable(api, "Account"))
}
