//! Desired capacity, terminations and scale-in protection.

use std::collections::BTreeSet;

use aws_sdk_autoscaling::Client;
use capasg_cloud::{Result, WriteReply};

use crate::call::done;

/// `SetDesiredCapacity`, whatever the cooldown.
pub(crate) async fn set_desired(
    client: &Client,
    api: &'static str,
    group: &str,
    desired: i32,
) -> Result<WriteReply> {
    let request = client
        .set_desired_capacity()
        .auto_scaling_group_name(group)
        .desired_capacity(desired)
        .honor_cooldown(false);
    done(api, request.send()).await
}

/// `TerminateInstanceInAutoScalingGroup` with `InstanceIds`, for one instance as for many.
pub(crate) async fn terminate(
    client: &Client,
    api: &'static str,
    group: &str,
    instances: &BTreeSet<String>,
    decrement: bool,
) -> Result<WriteReply> {
    let request = client
        .terminate_instance_in_auto_scaling_group()
        .auto_scaling_group_name(group)
        .set_instance_ids(Some(instances.iter().cloned().collect()))
        .should_decrement_desired_capacity(decrement);
    done(api, request.send()).await
}

/// `SetInstanceProtection`.
pub(crate) async fn protect(
    client: &Client,
    api: &'static str,
    group: &str,
    instances: &BTreeSet<String>,
    protected: bool,
) -> Result<WriteReply> {
    let request = client
        .set_instance_protection()
        .auto_scaling_group_name(group)
        .set_instance_ids(Some(instances.iter().cloned().collect()))
        .protected_from_scale_in(protected);
    done(api, request.send()).await
}
