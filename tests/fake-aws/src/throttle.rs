//! Request limits: one bucket for all of Auto Scaling, one for each operation of EC2.

use crate::{ApiError, Operation, Service, region::Region};

const TOKEN: i64 = 1000;

/// Takes a token for a call, or says in the service's own way that there is none.
pub(crate) fn refusal(region: &mut Region, operation: &Operation) -> Option<ApiError> {
    let (throttle, bucket) = match operation.service {
        Service::AutoScaling => (region.settings.autoscaling_throttle?, "autoscaling"),
        Service::Ec2 => (region.settings.ec2_throttle?, operation.action),
        Service::ServiceQuotas | Service::Ssm | Service::Sqs | Service::Sts => return None,
    };
    let now = region.now;
    let full = i64::from(throttle.burst) * TOKEN;
    let (tokens, counted) = region.buckets.entry(bucket).or_insert((full, now));
    // Per second tokens are per millisecond thousandths of a token.
    let back = (now - *counted).num_milliseconds().saturating_mul(i64::from(throttle.per_second));
    *tokens = tokens.saturating_add(back).min(full);
    *counted = now;
    if *tokens >= TOKEN {
        *tokens -= TOKEN;
        return None;
    }
    Some(if operation.service == Service::Ec2 {
        ApiError::new(503, "RequestLimitExceeded", "Request limit exceeded.")
    } else {
        ApiError::refused("Throttling", "Rate exceeded")
    })
}
