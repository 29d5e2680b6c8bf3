//! Whether the background reads reach AWS, and how long to back off while they do not.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use crate::{CloudError, Result};

const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// Up to this many transient failures in a row are not reported.
const TOLERATED: u32 = 2;

/// The state of the background reads, per operation.
#[derive(Debug, Default)]
pub(super) struct Reach {
    failing: BTreeMap<&'static str, Failing>,
}

#[derive(Debug)]
struct Failing {
    error: CloudError,
    in_a_row: u32,
    not_before: Instant,
}

impl Reach {
    /// Returns whether [`Self::state`] changed.
    pub(super) fn succeeded(&mut self, api: &'static str) -> bool {
        self.failing.remove(api).is_some_and(|failing| failing.counts())
    }

    /// Returns whether [`Self::state`] changed.
    pub(super) fn failed(
        &mut self,
        api: &'static str,
        error: CloudError,
        now: Instant,
        longest: Duration,
    ) -> bool {
        let before = self.failing.remove(api);
        let reported = before.as_ref().is_some_and(Failing::counts);
        let in_a_row = match before {
            // It started before the backoff began: calls that fail together count once.
            Some(failing) if now < failing.not_before => failing.in_a_row,
            Some(failing) => failing.in_a_row.saturating_add(1),
            None => 1,
        };
        let backoff = FIRST_BACKOFF.saturating_mul(1 << (in_a_row - 1).min(16)).min(longest);
        let failing = Failing { error, in_a_row, not_before: now + backoff };
        let changed = failing.counts() != reported;
        self.failing.insert(api, failing);
        changed
    }

    /// Before this, the operation is not tried again.
    pub(super) fn not_before(&self, api: &'static str) -> Option<Instant> {
        self.failing.get(api).map(|failing| failing.not_before)
    }

    pub(super) fn state(&self) -> Result<()> {
        self.failing
            .values()
            .find(|failing| failing.counts())
            .map_or(Ok(()), |failing| Err(failing.error.clone()))
    }
}

impl Failing {
    fn counts(&self) -> bool {
        self.error.class.is_permanent() || self.in_a_row > TOLERATED
    }
}
