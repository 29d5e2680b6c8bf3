//! Scaling activities: why launches fail and instances terminate.

use aws_sdk_autoscaling::{
    Client,
    types::{Activity, ScalingActivityStatusCode},
};
use capasg_cloud::{ActivityStatus, Page, Result, ScalingActivity, zone_and_subnet};

use crate::{call::call, message, time::instant};

/// The size of a page: half of what AWS allows, since most groups have few activities in progress, and the newest ones tell what
/// fails now.
const MAX_ACTIVITIES: i32 = 50;

/// `DescribeScalingActivities`: those in progress, then the others, newest first.
pub(crate) async fn describe(
    client: &Client,
    group: &str,
    token: Option<String>,
) -> Result<Page<ScalingActivity>> {
    // The newest denial is enough, once a read.
    let is_first = token.is_none();
    let request = client
        .describe_scaling_activities()
        .auto_scaling_group_name(group)
        .max_records(MAX_ACTIVITIES)
        .set_next_token(token);
    let reply = call("DescribeScalingActivities", request.send()).await?;
    let next_token = reply.next_token().map(str::to_owned);
    let listed = reply.activities.unwrap_or_default();
    let mut denied = listed.iter().filter_map(Activity::status_message).filter_map(message::encoded_details);
    if let Some(encoded_message) = denied.next().filter(|_| is_first) {
        tracing::info!(
            group,
            encoded_message,
            "AWS denied a launch: aws sts decode-authorization-message shows the policy that denies it"
        );
    }
    Ok(Page { items: listed.iter().filter_map(activity).collect(), next_token })
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
        ended_at: instant(listed.end_time()),
    })
}
