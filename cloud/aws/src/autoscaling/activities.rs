//! Scaling activities: why launches fail and instances terminate.

use std::cmp::Reverse;

use aws_sdk_autoscaling::{
    Client,
    types::{Activity, ScalingActivityStatusCode},
};
use capasg_cloud::{ActivityStatus, Result, ScalingActivity, zone_and_subnet};

use crate::{call::call, message, time::instant};

/// The newest page is enough to see what fails now.
const MAX_ACTIVITIES: i32 = 50;

/// `DescribeScalingActivities`, newest first (AWS lists running ones before).
pub(crate) async fn describe(client: &Client, group: &str) -> Result<Vec<ScalingActivity>> {
    let api = "DescribeScalingActivities";
    let request =
        client.describe_scaling_activities().auto_scaling_group_name(group).max_records(MAX_ACTIVITIES);
    let reply = call(api, request.send()).await?;
    let mut denied =
        reply.activities().iter().filter_map(Activity::status_message).filter_map(message::encoded_details);
    if let Some(encoded_message) = denied.next() {
        tracing::info!(
            group,
            encoded_message,
            "AWS denied a launch: aws sts decode-authorization-message shows the policy that denies it"
        );
    }
    let mut activities: Vec<ScalingActivity> = reply.activities().iter().filter_map(activity).collect();
    activities.sort_by_key(|activity| Reverse(activity.started_at));
    Ok(activities)
}

/// An activity; `None` without an id or a start, since it could not be identified or ordered.
fn activity(listed: &Activity) -> Option<ScalingActivity> {
    let (zone, subnet) = listed.details().map(zone_and_subnet).unwrap_or_default();
    Some(ScalingActivity {
        id: listed.activity_id()?.to_owned(),
        status: ActivityStatus::parse(
            listed.status_code().map(ScalingActivityStatusCode::as_str).unwrap_or_default(),
        ),
        status_message: listed.status_message().map(message::stable),
        description: listed.description().map(str::to_owned),
        cause: listed.cause().unwrap_or_default().to_owned(),
        zone,
        subnet,
        started_at: instant(listed.start_time())?,
    })
}
