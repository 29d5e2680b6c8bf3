//! What is believed of the AWS events about single instances.

use capasg_cloud::{InstanceFacts, NoticeKind, PurchaseOption};

use crate::machine_pool::model::Ec2Answer;

/// What of the AWS events about an instance is believed, and whether more may be once EC2 has described the instance.
///
/// Whoever may write to the queue can say anything. So what concerns Spot instances alone is believed of instances that
/// EC2 itself describes as such. Nothing is taken back once it is `reported`, but a retirement that AWS closes.
#[must_use]
pub fn believed(
    received: Option<NoticeKind>,
    reported: Option<NoticeKind>,
    machine: Option<&Ec2Answer>,
) -> (Option<NoticeKind>, bool) {
    match received {
        None => (reported, false),
        Some(NoticeKind::RetirementClosed) => {
            (reported.filter(|kind| *kind != NoticeKind::ScheduledRetirement), false)
        }
        Some(NoticeKind::ScheduledRetirement) => (received.max(reported), false),
        Some(NoticeKind::RebalanceRecommendation | NoticeKind::SpotInterruption) => {
            let is_spot = |facts: &InstanceFacts| facts.purchase == PurchaseOption::Spot;
            match machine {
                _ if reported >= received => (reported, false),
                None => (reported, true),
                Some(known) if known.facts.as_ref().is_some_and(is_spot) => (received, false),
                Some(_) => (reported, false),
            }
        }
    }
}
