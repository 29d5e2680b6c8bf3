//! Lifecycle hooks and lifecycle actions.

use aws_sdk_autoscaling::{Client, types::LifecycleHookSpecification};
use capasg_cloud::{LifecycleHook, Result, WriteReply};

use crate::call::{call, done};

/// The hook as part of `CreateAutoScalingGroup`.
pub(crate) fn specification(hook: &LifecycleHook) -> LifecycleHookSpecification {
    LifecycleHookSpecification::builder()
        .lifecycle_hook_name(&hook.name)
        .lifecycle_transition(&hook.transition)
        .heartbeat_timeout(hook.heartbeat_timeout)
        .default_result(&hook.default_result)
        .build()
}

/// `PutLifecycleHook`.
pub(crate) async fn put(
    client: &Client,
    api: &'static str,
    group: &str,
    hook: &LifecycleHook,
) -> Result<WriteReply> {
    let request = client
        .put_lifecycle_hook()
        .auto_scaling_group_name(group)
        .lifecycle_hook_name(&hook.name)
        .lifecycle_transition(&hook.transition)
        .heartbeat_timeout(hook.heartbeat_timeout)
        .default_result(&hook.default_result);
    done(api, request.send()).await
}

/// `DeleteLifecycleHook`.
pub(crate) async fn delete(
    client: &Client,
    api: &'static str,
    group: &str,
    hook: &str,
) -> Result<WriteReply> {
    let request = client.delete_lifecycle_hook().auto_scaling_group_name(group).lifecycle_hook_name(hook);
    done(api, request.send()).await
}

/// `CompleteLifecycleAction`, always CONTINUE: with ABANDON a retention policy keeps the instance and its
/// cost (Amazon EC2 Auto Scaling User Guide, "instance lifecycle policies").
pub(crate) async fn complete(
    client: &Client,
    api: &'static str,
    group: &str,
    hook: &str,
    instance: &str,
) -> Result<WriteReply> {
    let request = client
        .complete_lifecycle_action()
        .auto_scaling_group_name(group)
        .lifecycle_hook_name(hook)
        .instance_id(instance)
        .lifecycle_action_result("CONTINUE");
    done(api, request.send()).await
}

/// `RecordLifecycleActionHeartbeat`.
pub(crate) async fn heartbeat(
    client: &Client,
    api: &'static str,
    group: &str,
    hook: &str,
    instance: &str,
) -> Result<WriteReply> {
    let request = client
        .record_lifecycle_action_heartbeat()
        .auto_scaling_group_name(group)
        .lifecycle_hook_name(hook)
        .instance_id(instance);
    done(api, request.send()).await
}

/// `DescribeLifecycleHooks`: a group has at most 50, in one response.
pub(crate) async fn describe(client: &Client, group: &str) -> Result<Vec<LifecycleHook>> {
    let api = "DescribeLifecycleHooks";
    let reply = call(api, client.describe_lifecycle_hooks().auto_scaling_group_name(group).send()).await?;
    let hooks = reply.lifecycle_hooks().iter().filter_map(|hook| {
        Some(LifecycleHook {
            name: hook.lifecycle_hook_name()?.to_owned(),
            transition: hook.lifecycle_transition().unwrap_or_default().to_owned(),
            heartbeat_timeout: hook.heartbeat_timeout().unwrap_or(3600),
            default_result: hook.default_result().unwrap_or("ABANDON").to_owned(),
        })
    });
    Ok(hooks.collect())
}
