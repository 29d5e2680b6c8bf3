//! Scaling activities: why nothing launches.

use std::cmp::Reverse;

use aws_sdk_autoscaling::{
    Client,
    types::{Activity, ScalingActivityStatusCode},
};
use capasg_cloud::{Result, ScalingActivity, place_in};

use crate::{call::call, time::instant, words};

/// The newest page says enough about what goes wrong now.
const MAX_ACTIVITIES: i32 = 50;

/// `DescribeScalingActivities`, newest first (AWS lists running ones before).
pub(crate) async fn describe(client: &Client, group: &str) -> Result<Vec<ScalingActivity>> {
    let api = "DescribeScalingActivities";
    let request =
        client.describe_scaling_activities().auto_scaling_group_name(group).max_records(MAX_ACTIVITIES);
    let reply = call(api, request.send()).await?;
    let mut activities: Vec<ScalingActivity> = reply.activities().iter().filter_map(activity).collect();
    activities.sort_by_key(|activity| Reverse(activity.started_at));
    Ok(activities)
}

/// An activity; one without id or start has nothing to be told apart or ordered by.
fn activity(listed: &Activity) -> Option<ScalingActivity> {
    let (zone, subnet) = listed.details().map(place_in).unwrap_or_default();
    Some(ScalingActivity {
        id: listed.activity_id()?.to_owned(),
        status_code: listed
            .status_code()
            .map(ScalingActivityStatusCode::as_str)
            .unwrap_or_default()
            .to_owned(),
        status_message: listed.status_message().map(words::stable),
        description: listed.description().map(str::to_owned),
        cause: listed.cause().unwrap_or_default().to_owned(),
        zone,
        subnet,
        started_at: instant(listed.start_time())?,
    })
}
