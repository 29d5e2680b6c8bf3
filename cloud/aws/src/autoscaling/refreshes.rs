//! Instance refreshes: start, cancel, roll back and describe.

use aws_sdk_autoscaling::{
    Client,
    types::{
        AlarmSpecification, DesiredConfiguration, InstanceRefresh as AwsRefresh, InstanceRefreshStatus,
        RefreshPreferences as AwsPreferences, RefreshStrategy, ScaleInProtectedInstances, StandbyInstances,
    },
};
use capasg_cloud::{
    InstanceRefresh, Launch, Page, RefreshPreferences, RefreshStatus, Result, StartRefresh, WriteReply,
};

use super::launch::{self, Before, LaunchMembers};
use crate::{
    call::{call, done, unreadable},
    message,
    time::instant,
};

/// The most refreshes on one page.
const MAX_REFRESHES: i32 = 100;

/// `StartInstanceRefresh`.
pub(crate) async fn start(client: &Client, api: &'static str, start: &StartRefresh) -> Result<WriteReply> {
    let desired = start.desired.as_ref().map(|wanted| {
        // What the configuration leaves out has AWS's defaults, whatever the group has.
        let LaunchMembers { template, mixed } = launch::members(wanted, Before::Nothing);
        DesiredConfiguration::builder()
            .set_launch_template(template)
            .set_mixed_instances_policy(mixed)
            .build()
    });
    let request = client
        .start_instance_refresh()
        .auto_scaling_group_name(&start.group)
        .strategy(RefreshStrategy::Rolling)
        .set_desired_configuration(desired)
        .preferences(preferences(&start.preferences));
    done(api, request.send()).await
}

fn preferences(wanted: &RefreshPreferences) -> AwsPreferences {
    let alarms = (!wanted.alarms.is_empty())
        .then(|| AlarmSpecification::builder().set_alarms(Some(wanted.alarms.clone())).build());
    let checkpoints =
        (!wanted.checkpoint_percentages.is_empty()).then(|| wanted.checkpoint_percentages.clone());
    AwsPreferences::builder()
        .min_healthy_percentage(wanted.min_healthy_percentage)
        .set_max_healthy_percentage(wanted.max_healthy_percentage)
        .set_instance_warmup(wanted.instance_warmup)
        .set_checkpoint_percentages(checkpoints)
        .set_checkpoint_delay(wanted.checkpoint_delay)
        .set_bake_time(wanted.bake_time)
        .set_alarm_specification(alarms)
        .skip_matching(wanted.skip_matching)
        .auto_rollback(wanted.auto_rollback)
        .scale_in_protected_instances(ScaleInProtectedInstances::from(wanted.protected_instances.as_str()))
        .standby_instances(StandbyInstances::from(wanted.standby_instances.as_str()))
        .build()
}

/// `CancelInstanceRefresh`; AWS waits for instances in transition.
pub(crate) async fn cancel(client: &Client, api: &'static str, group: &str) -> Result<WriteReply> {
    let request = client
        .cancel_instance_refresh()
        .auto_scaling_group_name(group)
        .wait_for_transitioning_instances(true);
    done(api, request.send()).await
}

/// `RollbackInstanceRefresh`.
pub(crate) async fn roll_back(client: &Client, api: &'static str, group: &str) -> Result<WriteReply> {
    done(api, client.rollback_instance_refresh().auto_scaling_group_name(group).send()).await
}

/// `DescribeInstanceRefreshes`, newest first.
pub(crate) async fn describe(
    client: &Client,
    group: &str,
    token: Option<String>,
) -> Result<Page<InstanceRefresh>> {
    let api = "DescribeInstanceRefreshes";
    let request = client
        .describe_instance_refreshes()
        .auto_scaling_group_name(group)
        .max_records(MAX_REFRESHES)
        .set_next_token(token);
    let reply = call(api, request.send()).await?;
    let items = reply.instance_refreshes().iter().map(|listed| refresh(api, listed));
    Ok(Page { items: items.collect::<Result<_>>()?, next_token: reply.next_token })
}

/// A refresh. One without a status counts as unfinished, like one with an unknown status.
fn refresh(api: &'static str, listed: &AwsRefresh) -> Result<InstanceRefresh> {
    let id = listed.instance_refresh_id().ok_or_else(|| unreadable(api, "InstanceRefreshId"))?;
    Ok(InstanceRefresh {
        id: id.to_owned(),
        status: RefreshStatus::parse(listed.status().map_or("", InstanceRefreshStatus::as_str)),
        reason: listed.status_reason().map(message::stable),
        started_at: instant(listed.start_time()),
        ended_at: instant(listed.end_time()),
        percentage: listed.percentage_complete(),
        to_update: listed.instances_to_update(),
        min_healthy_percentage: listed.preferences().and_then(AwsPreferences::min_healthy_percentage),
        desired: listed.desired_configuration().map(desired),
        rollback_reason: listed
            .rollback_details()
            .and_then(|details| details.rollback_reason())
            .map(message::stable),
    })
}

fn desired(desired: &DesiredConfiguration) -> Launch {
    launch::read(desired.mixed_instances_policy(), desired.launch_template())
}
