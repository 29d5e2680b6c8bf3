//! Subnets and security groups.

use aws_sdk_ec2::{Client, operation::describe_subnets::DescribeSubnetsOutput};
use capasg_cloud::{Page, Result, SecurityGroup, Selector, Subnet, SubnetAddresses};

use super::filters::{FilterNames, filter, filters};
use crate::call::call;

/// The most that these calls return at once; unpaged describes draw on a smaller bucket ("Request
/// throttling for the Amazon EC2 API").
pub(super) const MAX_RESULTS: i32 = 1000;

/// `DescribeSubnets`.
pub(crate) async fn subnets(
    client: &Client,
    selector: &Selector,
    token: Option<String>,
) -> Result<Page<Subnet>> {
    let reply = describe_subnets(client, selector, token).await?;
    let subnets = reply.subnets().iter().filter_map(|subnet| {
        Some(Subnet {
            id: subnet.subnet_id()?.to_owned(),
            zone: subnet.availability_zone().unwrap_or_default().to_owned(),
            vpc: subnet.vpc_id().unwrap_or_default().to_owned(),
        })
    });
    Ok(Page { items: subnets.collect(), next_token: reply.next_token })
}

/// `DescribeSubnets`, for the number of addresses alone.
pub(crate) async fn addresses(
    client: &Client,
    selector: &Selector,
    token: Option<String>,
) -> Result<Page<SubnetAddresses>> {
    let reply = describe_subnets(client, selector, token).await?;
    let subnets = reply.subnets().iter().filter_map(|subnet| {
        Some(SubnetAddresses {
            subnet: subnet.subnet_id()?.to_owned(),
            free: subnet.available_ip_address_count()?,
        })
    });
    Ok(Page { items: subnets.collect(), next_token: reply.next_token })
}

async fn describe_subnets(
    client: &Client,
    selector: &Selector,
    token: Option<String>,
) -> Result<DescribeSubnetsOutput> {
    let api = "DescribeSubnets";
    let filters = filters(api, selector, FilterNames { id: "subnet-id", name: None })?;
    let request =
        client.describe_subnets().set_filters(Some(filters)).max_results(MAX_RESULTS).set_next_token(token);
    call(api, request.send()).await
}

/// `DescribeSecurityGroups`.
pub(crate) async fn security_groups(
    client: &Client,
    selector: &Selector,
    token: Option<String>,
) -> Result<Page<SecurityGroup>> {
    let api = "DescribeSecurityGroups";
    let filters = filters(api, selector, FilterNames { id: "group-id", name: Some("group-name") })?;
    let request = client
        .describe_security_groups()
        .set_filters(Some(filters))
        .max_results(MAX_RESULTS)
        .set_next_token(token);
    let reply = call(api, request.send()).await?;
    let groups = reply.security_groups().iter().filter_map(|group| {
        Some(SecurityGroup {
            id: group.group_id()?.to_owned(),
            name: group.group_name().unwrap_or_default().to_owned(),
            vpc: group.vpc_id().unwrap_or_default().to_owned(),
        })
    });
    Ok(Page { items: groups.collect(), next_token: reply.next_token })
}

/// `DescribeSecurityGroupVpcAssociations` of one security group and one VPC. An association that is being made or that
/// failed does not count.
pub(crate) async fn is_associated(client: &Client, security_group: &str, vpc: &str) -> Result<bool> {
    let of = |name: &str, value: &str| filter(name, [&value.to_owned()]);
    let request = client
        .describe_security_group_vpc_associations()
        .filters(of("group-id", security_group))
        .filters(of("vpc-id", vpc))
        .filters(of("state", "associated"));
    let reply = call("DescribeSecurityGroupVpcAssociations", request.send()).await?;
    Ok(!reply.security_group_vpc_associations().is_empty())
}
