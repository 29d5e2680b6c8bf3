//! Notices that AWS gives for single instances, for example that it interrupts a Spot instance.

use chrono::{DateTime, Utc};

/// A notice for an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// What AWS will do.
    pub kind: NoticeKind,
    /// When AWS first said so.
    pub at: DateTime<Utc>,
}

/// What AWS will do with an instance. Of two, the greater counts; of a retirement and its cancellation, the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// AWS no longer retires the instance.
    RetirementClosed,
    /// EC2 recommends to replace the Spot instance: it is at an elevated risk of interruption.
    RebalanceRecommendation,
    /// AWS will stop or retire the instance, usually within days.
    ScheduledRetirement,
    /// EC2 interrupts the Spot instance, two minutes after the notice.
    SpotInterruption,
}

impl Notice {
    /// What two notices for one instance amount to, in whichever order they arrived.
    #[must_use]
    pub(crate) fn merge(self, other: Self) -> Self {
        use NoticeKind::{RetirementClosed, ScheduledRetirement};
        if self.kind == other.kind {
            // The first one counts: a duplicate event must not make the notice look newer.
            let at =
                if self.kind == RetirementClosed { self.at.max(other.at) } else { self.at.min(other.at) };
            return Self { at, ..self };
        }
        let other_counts = match (self.kind, other.kind) {
            (RetirementClosed, ScheduledRetirement) | (ScheduledRetirement, RetirementClosed) => {
                other.at > self.at
            }
            _ => other.kind > self.kind,
        };
        if other_counts { other } else { self }
    }
}
