//! Scaling activities: why launches fail and instances terminate.

use std::cmp::Reverse;

use aws_sdk_autoscaling::{
    Client,
    types::{Activity, ScalingActivityStatusCode},
};
use capasg_cloud::{ActivityStatus, Result, ScalingActivity, zone_and_subnet};

use crate::{call::call, message, time::instant};

/// A page with finished activities is enough to see what fails now.
const MAX_ACTIVITIES: i32 = 50;
/// At most this many pages of activities in progress are skipped.
const MAX_PAGES: usize = 4;

/// `DescribeScalingActivities`, newest first. AWS lists those in progress before, which may fill pages: a large instance
/// refresh terminates many instances at the same time.
pub(crate) async fn describe(client: &Client, group: &str) -> Result<Vec<ScalingActivity>> {
    let api = "DescribeScalingActivities";
    let (mut listed, mut token): (Vec<Activity>, Option<String>) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let request = client
            .describe_scaling_activities()
            .auto_scaling_group_name(group)
            .max_records(MAX_ACTIVITIES)
            .set_next_token(token);
        let reply = call(api, request.send()).await?;
        token = reply.next_token().map(str::to_owned);
        listed.extend(reply.activities.unwrap_or_default());
        let is_finished = |activity: &Activity| activity.end_time().is_some();
        if token.is_none() || listed.iter().any(is_finished) {
            break;
        }
    }
    let mut denied = listed.iter().filter_map(Activity::status_message).filter_map(message::encoded_details);
    if let Some(encoded_message) = denied.next() {
        tracing::info!(
            group,
            encoded_message,
            "AWS denied a launch: aws sts decode-authorization-message shows the policy that denies it"
        );
    }
    let mut activities: Vec<ScalingActivity> = listed.iter().filter_map(activity).collect();
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
