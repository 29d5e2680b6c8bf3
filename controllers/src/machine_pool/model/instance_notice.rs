//! Which AWS event about an instance counts.

use capasg_cloud::{InstanceFacts, NoticeKind, PurchaseOption};

use crate::machine_pool::model::Ec2Answer;

/// The AWS event about an instance that the controller acts on, and whether an event about a Spot instance must first
/// be verified with EC2.
///
/// Every actor with access to the queue can send any event. So an event about Spot instances counts only for an
/// instance that EC2 describes as a Spot instance. An event that the status reports (`reported`) stays, except a
/// retirement that AWS closes.
#[must_use]
pub fn accepted(
    received: Option<NoticeKind>,
    reported: Option<NoticeKind>,
    ec2: Option<&Ec2Answer>,
) -> (Option<NoticeKind>, bool) {
    match received {
        None => (reported, false),
        Some(NoticeKind::RetirementClosed) => {
            (reported.filter(|kind| *kind != NoticeKind::ScheduledRetirement), false)
        }
        Some(NoticeKind::ScheduledRetirement) => (received.max(reported), false),
        Some(NoticeKind::RebalanceRecommendation | NoticeKind::SpotInterruption) => {
            let is_spot = |facts: &InstanceFacts| facts.purchase == PurchaseOption::Spot;
            match ec2 {
                _ if reported >= received => (reported, false),
                None => (reported, true),
                Some(known) if known.facts.as_ref().is_some_and(is_spot) => (received, false),
                Some(_) => (reported, false),
            }
        }
    }
}
