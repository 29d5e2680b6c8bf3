//! What an event makes the inventory do: read groups soon, keep notices for instances, and rely on events, or not, to show
//! what changes.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::{Inventory, QueueState, State};
use crate::{CloudEvent, EventKind, FactsView, Gateway, Notice};

/// Notices for instances that no registered group lists are kept for this many instances of an event.
const MAX_UNLISTED_PER_EVENT: usize = 100;

/// What the inventory did with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Intake {
    /// Nothing: it comes from another account than the registered groups.
    OtherAccount,
    /// Nothing: it names nothing that a pool has.
    NotOurs,
    /// It kept a notice for an instance that no registered group lists, or not yet.
    UnlistedInstance,
    /// It reads these groups soon.
    ReadRequested(BTreeSet<String>),
    /// It woke the pools of these groups to observe the notices, which have this revision.
    PoolsWoken(BTreeSet<String>, u64),
}

impl Inventory {
    /// Takes in an event: its groups are read soon, by one call with all others that are due then.
    pub(crate) fn take_event(&self, event: &CloudEvent) -> Intake {
        let (now, time_of_day) = (Instant::now(), self.clock.now());
        let mut state = self.state();
        // All groups of a region belong to the account of the credentials.
        let account = state
            .groups
            .names()
            .find_map(|name| Some(state.groups.view(name).group()?.account()?.to_owned()));
        if account.is_some_and(|account| account != event.account) {
            return Intake::OtherAccount;
        }
        let State { facts, notices, groups, .. } = &mut *state;
        // An event of AWS Health may name instances of several groups.
        let mut listed: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut unlisted = Vec::new();
        for id in &event.instances {
            match facts.group_of(id) {
                Some(group) => listed.entry(group.to_string()).or_default().push(id.clone()),
                None => unlisted.push(id),
            }
        }
        let notice = event.kind.notice_kind().map(|kind| Notice { kind, at: event.at });
        if let Some(notice) = notice {
            let known = listed.values().flatten();
            for id in known.chain(unlisted.into_iter().take(MAX_UNLISTED_PER_EVENT)) {
                notices.add(id, notice, time_of_day, |id| facts.group_of(id).is_some());
            }
        }
        let named: BTreeSet<String> = listed.keys().chain(&event.group).cloned().collect();
        let registered: BTreeSet<String> =
            named.into_iter().filter(|group| groups.event_received(group, now, &self.cadence)).collect();
        if registered.is_empty() {
            let is_unlisted = notice.is_some() && listed.is_empty();
            return if is_unlisted { Intake::UnlistedInstance } else { Intake::NotOurs };
        }
        // EC2 knows before the group whether an instance still runs, and alone how it is paid for.
        if notice.is_some() || event.kind == EventKind::StateChange {
            for (group, ids) in listed {
                facts.request(&group, ids, true, now, &self.cadence);
            }
        }
        let revision = notice.map(|_| notices.next_revision());
        state.events_flow = true;
        drop(state);
        self.update_trust();
        self.groups_wanted.notify_one();
        self.facts_wanted.notify_one();
        match revision {
            Some(revision) => {
                for group in &registered {
                    self.changed(group);
                }
                Intake::PoolsWoken(registered, revision)
            }
            None => Intake::ReadRequested(registered),
        }
    }

    /// The notice that AWS gave for an instance. Costs no call.
    #[must_use]
    pub fn instance_notice(&self, instance: &str) -> Option<Notice> {
        self.state().notices.of(instance)
    }

    /// The revision of the notices, for [`Self::acknowledge_notices`]: taken when a reconcile of the group's pool begins.
    /// 0 as long as the EC2 instance of one of the group's notices is not known: the reconcile cannot judge that notice, so
    /// it acknowledges none.
    #[must_use]
    pub fn notice_revision(&self, group: &str) -> u64 {
        let state = self.state();
        let is_unknown = |id: &str| {
            state.facts.group_of(id).is_some_and(|of| *of == *group)
                && matches!(state.facts.view(id), FactsView::Unknown)
        };
        if state.notices.instances().any(is_unknown) { 0 } else { state.notices.revision() }
    }

    /// A reconcile of the group's pool succeeded that began at this [revision](Self::notice_revision): Kubernetes shows the
    /// notices up to it, and their messages may be deleted.
    pub fn acknowledge_notices(&self, group: &str, revision: u64) {
        self.state().notices.acknowledge(group, revision);
        self.notify_feed();
    }

    /// Whether a view of the group was requested at that time or later, or no pool observes it.
    pub(crate) fn is_read_since(&self, group: &str, at: Instant) -> bool {
        self.state().groups.is_read_since(group, at)
    }

    pub(crate) fn has_acknowledged(&self, group: &str, revision: u64) -> bool {
        self.state().notices.has_acknowledged(group, revision)
    }

    /// The event queue was configured, or became available or unavailable: every pool may have it to report.
    pub(crate) fn set_queue(&self, queue: QueueState) {
        let mut state = self.state();
        if std::mem::replace(&mut state.queue, queue) == queue {
            return;
        }
        let names: Vec<String> = state.groups.names().cloned().collect();
        drop(state);
        self.update_trust();
        for group in names {
            self.changed(&group);
        }
    }

    /// Whether events of the region are received.
    #[must_use]
    pub fn queue(&self) -> QueueState {
        self.state().queue
    }

    /// Instances appeared or disappeared without an event: the rules that send events cannot be relied on. The next event
    /// that arrives shows that they work again.
    pub(super) fn events_are_missing(&self, group: &str) {
        let flowed = std::mem::replace(&mut self.state().events_flow, false);
        if flowed {
            tracing::info!(
                group,
                "an Auto Scaling group changed without an AWS event; groups are polled more often until events \
                 arrive again"
            );
            self.update_trust();
        }
    }

    /// Groups are polled slowly while the queue is available and events arrive: a queue that no rule sends to is available
    /// just as well.
    fn update_trust(&self) {
        let now = Instant::now();
        let mut state = self.state();
        let trusted = state.queue == QueueState::Available && state.events_flow;
        state.groups.set_events_trusted(trusted, now, &self.cadence);
        drop(state);
        self.groups_wanted.notify_one();
    }

    /// Whether events are relied on to show what changes.
    #[must_use]
    pub fn relies_on_events(&self) -> bool {
        let state = self.state();
        state.queue == QueueState::Available && state.events_flow
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Wakes the feed: a message may have been processed.
    pub(crate) fn notify_feed(&self) {
        self.feed_progress.notify_one();
    }

    /// Waits for [`Self::notify_feed`].
    pub(crate) async fn feed_progressed(&self) {
        self.feed_progress.notified().await;
    }
}
