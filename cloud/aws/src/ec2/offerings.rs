//! Which zones offer instance types.

use aws_sdk_ec2::{Client, types::LocationType};
use capasg_cloud::{Page, Result, TypeOffering};

use super::{filters::filter, network::MAX_RESULTS};
use crate::call::call;

/// `DescribeInstanceTypeOfferings` by filter and zone: a type that no zone offers is absent.
pub(crate) async fn types(
    client: &Client,
    names: &[String],
    token: Option<String>,
) -> Result<Page<TypeOffering>> {
    if names.is_empty() {
        return Ok(Page::last(Vec::new()));
    }
    let request = client
        .describe_instance_type_offerings()
        .location_type(LocationType::AvailabilityZone)
        .filters(filter("instance-type", names))
        .max_results(MAX_RESULTS)
        .set_next_token(token);
    let reply = call("DescribeInstanceTypeOfferings", request.send()).await?;
    let offerings = reply.instance_type_offerings().iter().filter_map(|offering| {
        Some(TypeOffering {
            instance_type: offering.instance_type()?.as_str().to_owned(),
            zone: offering.location()?.to_owned(),
        })
    });
    Ok(Page { items: offerings.collect(), next_token: reply.next_token })
}
