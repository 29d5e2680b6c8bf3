//! The reads that nobody waits for: the rounds over groups and the facts of machines, batched.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::{
    CloudError, Priority,
    gateway::{DESCRIBE_GROUPS, DESCRIBE_INSTANCES},
    inventory::{
        Inventory,
        groups::{Applied, Content},
    },
};

/// `DescribeAutoScalingGroups` takes this many names with `MaxRecords` 100.
const NAMES_PER_CALL: usize = 100;
/// A filter of `DescribeInstances` takes this many values.
const IDS_PER_CALL: usize = 200;

impl Inventory {
    /// Keeps the views fresh until `shutdown`: the loop of a running manager.
    pub async fn run(&self, shutdown: CancellationToken) {
        let loops = async {
            tokio::join!(
                async {
                    loop {
                        self.pause_until(self.groups_due(), &self.groups_wanted).await;
                        self.poll_groups().await;
                    }
                },
                async {
                    loop {
                        self.pause_until(self.facts_due(), &self.facts_wanted).await;
                        self.poll_facts().await;
                    }
                }
            )
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            _ = loops => {}
        }
    }

    async fn pause_until(&self, due: Option<DateTime<Utc>>, wanted: &tokio::sync::Notify) {
        let Some(due) = due else { return wanted.notified().await };
        if let Ok(wait) = (due - self.clock.now()).to_std() {
            // A wish may have come meanwhile: the caller looks again at what is due.
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = wanted.notified() => {}
            }
        }
    }

    /// When the next read is due; `None` while there is nothing to look at.
    #[must_use]
    pub fn next_due(&self) -> Option<DateTime<Utc>> {
        [self.groups_due(), self.facts_due()].into_iter().flatten().min()
    }

    /// Does the reads that are due now, once: a single step for those who drive time themselves.
    pub async fn poll_due(&self) {
        tokio::join!(self.poll_groups(), self.poll_facts());
    }

    fn groups_due(&self) -> Option<DateTime<Utc>> {
        let state = self.state();
        let due = state.groups.next_due()?;
        Some(state.reach.not_before(DESCRIBE_GROUPS).map_or(due, |earliest| due.max(earliest)))
    }

    fn facts_due(&self) -> Option<DateTime<Utc>> {
        let state = self.state();
        let due = state.facts.next_due()?;
        Some(state.reach.not_before(DESCRIBE_INSTANCES).map_or(due, |earliest| due.max(earliest)))
    }

    async fn poll_groups(&self) {
        let now = self.clock.now();
        if self.groups_due().is_none_or(|due| now < due) {
            return;
        }
        let names = self.state().groups.begin_rounds(now, &self.cadence);
        if names == 0 {
            return;
        }
        let calls = (0..names.div_ceil(NAMES_PER_CALL)).map(|_| self.read_due_groups());
        let failed = join_all(calls).await.into_iter().flatten().next_back();
        self.tell_reach(DESCRIBE_GROUPS, failed);
        self.prune();
    }

    /// One call. Its names are chosen when the rate limit lets it go, so that wishes share it meanwhile.
    async fn read_due_groups(&self) -> Option<CloudError> {
        let permit = self.gateway.permit(DESCRIBE_GROUPS, Priority::Read).await;
        let (names, start) = self.state().groups.take_due(self.clock.now(), NAMES_PER_CALL);
        if names.is_empty() {
            return None;
        }
        let listing = self.gateway.list_groups(permit, &names).await;
        let now = self.clock.now();
        let mut state = self.state();
        let whole = listing.failed.is_none();
        let applied = state.groups.apply(&names, start, listing.items, whole, now, &self.cadence);
        if !whole {
            for name in names {
                state.groups.ask(&name, now);
            }
        }
        drop(state);
        self.take_effect(&applied);
        listing.failed
    }

    async fn poll_facts(&self) {
        let now = self.clock.now();
        if self.facts_due().is_none_or(|due| now < due) {
            return;
        }
        let ids = self.state().facts.count_due(now);
        let calls = (0..ids.div_ceil(IDS_PER_CALL)).map(|_| self.read_due_facts());
        let failed = join_all(calls).await.into_iter().flatten().next_back();
        self.tell_reach(DESCRIBE_INSTANCES, failed);
    }

    async fn read_due_facts(&self) -> Option<CloudError> {
        let permit = self.gateway.permit(DESCRIBE_INSTANCES, Priority::Read).await;
        let as_of = self.clock.now();
        let ids = self.state().facts.take_due(as_of, IDS_PER_CALL);
        if ids.is_empty() {
            return None;
        }
        let listing = self.gateway.list_instances(permit, &ids).await;
        let now = self.clock.now();
        if listing.failed.is_some() {
            self.state().facts.put_back(&ids, now);
            return listing.failed;
        }
        let changed = self.state().facts.apply(&ids, as_of, listing.items, now);
        for group in &changed {
            self.changed(group);
        }
        None
    }

    /// Passes on what a reply about groups changed.
    pub(super) fn take_effect(&self, applied: &Applied) {
        if applied.doubted {
            self.gateway.observer().doubted();
        }
        if !applied.contents.is_empty() {
            let mut state = self.state();
            let now = self.clock.now();
            for Content { name, before, after } in &applied.contents {
                state.facts.members(name, before.as_deref(), after.as_deref(), now, &self.cadence);
            }
            drop(state);
            self.facts_wanted.notify_one();
        }
        for group in &applied.changed {
            self.changed(group);
        }
    }

    /// A round ended: when the cloud comes out of reach or back, every pool has something to report.
    pub(super) fn tell_reach(&self, api: &'static str, failed: Option<CloudError>) {
        let now = self.clock.now();
        let mut state = self.state();
        let turned = match failed {
            Some(error) => {
                tracing::warn!(api, %error, "a background read failed; the views stay as they were");
                state.reach.failed(api, error, now, self.cadence.longest_backoff)
            }
            None => state.reach.succeeded(api, now),
        };
        let names: Vec<String> = if turned { state.groups.names().cloned().collect() } else { Vec::new() };
        drop(state);
        for group in names {
            self.changed(&group);
        }
    }

    fn prune(&self) {
        let now = self.clock.now();
        {
            let mut state = self.state();
            state.groups.prune(now);
            state.facts.prune(now);
        }
        self.lookups.prune(&*self.clock);
    }
}
