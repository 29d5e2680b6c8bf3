//! Quotas, as Service Quotas tells them.

use aws_sdk_servicequotas::{Client, types::ServiceQuota};
use capasg_cloud::Result;

use crate::call::{call, unreadable};

/// `GetServiceQuota` of a quota of EC2: the value that applies to the account, rounded down.
pub(crate) async fn of_ec2(client: &Client, code: &str) -> Result<i64> {
    let api = "GetServiceQuota";
    let reply = call(api, client.get_service_quota().service_code("ec2").quota_code(code).send()).await?;
    let value = reply.quota().and_then(ServiceQuota::value).ok_or_else(|| unreadable(api, "Quota.Value"))?;
    #[expect(clippy::cast_possible_truncation, reason = "a quota is at most 10^10")]
    let whole = value.floor() as i64;
    Ok(whole)
}
