//! What a call asks of the policies of its caller: actions, resources and condition keys, after the Service Authorization
//! Reference.

mod asked;
mod autoscaling;
mod ec2;
mod launch;
mod others;

pub(super) use asked::{Asked, Via};

use super::Iam;
use crate::{Call, Service, region::Region};

/// Everything that a call asks.
pub(super) fn of(region: &Region, iam: &Iam, call: &Call) -> Vec<Asked> {
    let mut asked = match call.service {
        Service::AutoScaling => autoscaling::of(region, iam, call),
        Service::Ec2 => ec2::of(region, call),
        Service::Sqs | Service::Ssm | Service::Sts | Service::ServiceQuotas => others::of(call),
    };
    for one in &mut asked {
        let is_of_ec2 = one.request.action.starts_with("ec2:");
        let mut request = std::mem::take(&mut one.request).with("aws:RequestedRegion", &call.scope.region);
        if is_of_ec2 {
            request = request.with("ec2:Region", &call.scope.region);
        }
        one.request = request;
    }
    asked
}
