//! Messages that were received and may not be deleted yet.

use std::collections::BTreeSet;

use tokio::time::Instant;

use crate::{EventKind, EventOutcome, Inventory};

/// A message that is deleted once it has been processed.
#[derive(Debug)]
pub(super) struct Undeleted {
    pub(super) receipt: String,
    pub(super) delete_after: DeleteAfter,
    /// When SQS delivers it again.
    pub(super) visible_at: Instant,
    /// Set if it is deleted without any effect.
    pub(super) discarded: Option<Discarded>,
}

/// A message that is deleted although it has no effect, for logs and metrics.
#[derive(Debug)]
pub(super) struct Discarded {
    pub(super) message: String,
    pub(super) kind: EventKind,
    pub(super) outcome: EventOutcome,
    pub(super) reason: &'static str,
}

/// What has to happen before a message is deleted.
#[derive(Debug)]
pub(super) enum DeleteAfter {
    /// Nothing.
    Now,
    /// A read of each group that began after this time.
    Read(BTreeSet<String>, Instant),
    /// A reconcile of each group's pool that began when this revision of the notices was known.
    Acknowledged(BTreeSet<String>, u64),
}

impl Undeleted {
    /// Whether it may be deleted.
    pub(super) fn is_processed(&self, inventory: &Inventory) -> bool {
        match &self.delete_after {
            DeleteAfter::Now => true,
            DeleteAfter::Read(groups, since) => {
                groups.iter().all(|group| inventory.is_read_since(group, *since))
            }
            DeleteAfter::Acknowledged(groups, revision) => {
                groups.iter().all(|group| inventory.has_acknowledged(group, *revision))
            }
        }
    }
}
