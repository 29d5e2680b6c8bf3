//! The background reads: the rounds over groups and the facts of EC2 instances, in batches.

use std::{future::Future, pin::pin};

use chrono::{DateTime, Utc};
use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    CloudError, Priority,
    gateway::{DESCRIBE_GROUPS, DESCRIBE_INSTANCES, Permit},
    inventory::{
        Inventory, State,
        cadence::GROUPS_PER_CALL,
        fence::Start,
        groups::{Applied, Content},
    },
};

/// A filter of `DescribeInstances` takes this many values.
const IDS_PER_CALL: usize = 200;

/// Groups that one call reads, chosen when the rate limit admits it: requests until then share the call.
struct GroupsCall {
    permit: Permit,
    names: Vec<String>,
    start: Start,
}

/// EC2 instances that one call reads.
struct FactsCall {
    permit: Permit,
    ids: Vec<String>,
    as_of: DateTime<Utc>,
}

/// Makes one call after the other as they fall due. A slow one does not hold up those that follow.
async fn keep_calling<C, N: Future<Output = C>, R: Future<Output = ()>>(
    next_call: impl Fn() -> N,
    read: impl Fn(C) -> R,
) {
    let mut under_way = FuturesUnordered::new();
    // Kept over the iterations: it may have a place in the queue of the rate limit.
    let mut next = pin!(next_call());
    loop {
        tokio::select! {
            call = &mut next => {
                under_way.push(read(call));
                next.set(next_call());
            }
            Some(()) = under_way.next() => {}
        }
    }
}

/// Waits until `due`, or until something else may be due: the caller checks again.
async fn pause_until(due: Option<Instant>, wanted: &Notify) {
    let Some(due) = due else { return wanted.notified().await };
    tokio::select! {
        () = tokio::time::sleep_until(due) => {}
        () = wanted.notified() => {}
    }
}

fn is_due(due: Option<Instant>) -> bool {
    due.is_some_and(|due| due <= Instant::now())
}

impl Inventory {
    /// Keeps the views fresh until `shutdown`: the loop of a running manager.
    pub async fn run(&self, shutdown: CancellationToken) {
        let groups = keep_calling(|| self.next_groups_call(), |call| self.read_groups(call));
        let facts = keep_calling(|| self.next_facts_call(), |call| self.read_facts(call));
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = groups => {}
            () = facts => {}
        }
    }

    /// When the next read is due; `None` while there is nothing to read.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        [self.groups_due(), self.facts_due()].into_iter().flatten().min()
    }

    /// Does the reads that are due now, once: a single step for callers that drive time themselves.
    pub async fn poll_due(&self) {
        tokio::join!(self.poll_groups(), self.poll_facts());
    }

    fn groups_due(&self) -> Option<Instant> {
        let state = self.state();
        let due = state.groups.next_due()?;
        Some(state.reach.not_before(DESCRIBE_GROUPS).map_or(due, |earliest| due.max(earliest)))
    }

    async fn next_groups_call(&self) -> GroupsCall {
        loop {
            while !is_due(self.groups_due()) {
                pause_until(self.groups_due(), &self.groups_wanted).await;
            }
            self.state().groups.begin_rounds(Instant::now(), &self.cadence);
            let call = self.permitted_groups().await;
            if !call.names.is_empty() {
                return call;
            }
        }
    }

    async fn poll_groups(&self) {
        if !is_due(self.groups_due()) {
            return;
        }
        let names = self.state().groups.begin_rounds(Instant::now(), &self.cadence);
        let calls = (0..names.div_ceil(GROUPS_PER_CALL)).map(|_| async {
            let call = self.permitted_groups().await;
            if !call.names.is_empty() {
                self.read_groups(call).await;
            }
        });
        join_all(calls).await;
    }

    async fn permitted_groups(&self) -> GroupsCall {
        let permit = self.gateway.permit(DESCRIBE_GROUPS, Priority::Read).await;
        let as_of = self.clock.now();
        let (names, start) = self.state().groups.take_due(Instant::now(), as_of, GROUPS_PER_CALL);
        GroupsCall { permit, names, start }
    }

    async fn read_groups(&self, GroupsCall { permit, names, start }: GroupsCall) {
        let listing = self.gateway.list_groups(permit, &names).await;
        let now = Instant::now();
        let mut state = self.state();
        let complete = listing.failed.is_none();
        let applied = state.groups.apply(&names, start, listing.items, complete, now, &self.cadence);
        if !complete {
            for name in names {
                state.groups.request_read(&name, now);
            }
        }
        drop(state);
        self.take_effect(&applied);
        self.record_reachability(DESCRIBE_GROUPS, listing.failed);
        self.prune();
        // What is due next may be sooner than when the loop began to pause.
        self.groups_wanted.notify_one();
    }

    fn facts_due(&self) -> Option<Instant> {
        let state = self.state();
        let due = state.facts.next_due()?;
        Some(state.reach.not_before(DESCRIBE_INSTANCES).map_or(due, |earliest| due.max(earliest)))
    }

    async fn next_facts_call(&self) -> FactsCall {
        loop {
            while !is_due(self.facts_due()) {
                pause_until(self.facts_due(), &self.facts_wanted).await;
            }
            let call = self.permitted_facts().await;
            if !call.ids.is_empty() {
                return call;
            }
        }
    }

    async fn poll_facts(&self) {
        if !is_due(self.facts_due()) {
            return;
        }
        let ids = self.state().facts.count_due(Instant::now());
        let calls = (0..ids.div_ceil(IDS_PER_CALL)).map(|_| async {
            let call = self.permitted_facts().await;
            if !call.ids.is_empty() {
                self.read_facts(call).await;
            }
        });
        join_all(calls).await;
    }

    async fn permitted_facts(&self) -> FactsCall {
        let permit = self.gateway.permit(DESCRIBE_INSTANCES, Priority::Read).await;
        let as_of = self.clock.now();
        let ids = self.state().facts.take_due(Instant::now(), IDS_PER_CALL);
        FactsCall { permit, ids, as_of }
    }

    async fn read_facts(&self, FactsCall { permit, ids, as_of }: FactsCall) {
        let listing = self.gateway.list_instances(permit, &ids).await;
        let now = Instant::now();
        let is_wanted = if listing.failed.is_none() {
            let changed = self.state().facts.apply(&ids, as_of, listing.items, now);
            for group in &changed {
                self.changed(group);
            }
            true
        } else {
            self.state().facts.put_back(&ids, now)
        };
        // No later read would end a failure that concerns only instances that are gone.
        if is_wanted {
            self.record_reachability(DESCRIBE_INSTANCES, listing.failed);
        }
        self.facts_wanted.notify_one();
    }

    /// Passes on what an answer about groups changed.
    pub(super) fn take_effect(&self, applied: &Applied) {
        if applied.absence_unconfirmed {
            self.gateway.observer().listing_rechecked();
        }
        if !applied.contents.is_empty() {
            let mut state = self.state();
            let now = Instant::now();
            for Content { name, before, after } in &applied.contents {
                state.facts.set_instances(name, before.as_deref(), after.as_deref(), now, &self.cadence);
            }
            drop(state);
            self.facts_wanted.notify_one();
        }
        if let Some(group) = &applied.event_missing {
            self.events_are_missing(group);
        }
        self.notify_feed();
        for group in &applied.changed {
            self.changed(group);
        }
    }

    /// A background read finished: when AWS becomes unreachable or reachable again, every pool has something to report.
    pub(super) fn record_reachability(&self, api: &'static str, failed: Option<CloudError>) {
        let mut state = self.state();
        let changed = match failed {
            Some(error) => {
                tracing::warn!(api, %error, "a background read of AWS failed; the last observed state is kept");
                state.reach.failed(api, error, Instant::now(), self.cadence.longest_backoff)
            }
            None => state.reach.succeeded(api),
        };
        let names: Vec<String> = if changed { state.groups.names().cloned().collect() } else { Vec::new() };
        let is_back = changed && state.reach.state().is_ok();
        drop(state);
        if is_back {
            self.instance_types.retry();
            self.refreshes.retry();
        }
        for group in names {
            self.changed(&group);
        }
    }

    fn prune(&self) {
        let now = Instant::now();
        let awaits_facts = {
            let mut state = self.state();
            state.groups.prune(now);
            state.facts.prune(now);
            let State { facts, notices, .. } = &mut *state;
            notices.prune(self.clock.now(), |id| facts.group_of(id).is_some());
            facts.awaits_reads()
        };
        // The instances whose read failed are gone: no later read would end the failure.
        if !awaits_facts {
            self.record_reachability(DESCRIBE_INSTANCES, None);
        }
        self.lookups.prune(now);
    }
}
