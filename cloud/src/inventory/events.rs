//! Events: what they make the inventory look at, what they announce for single instances, and how far they are trusted
//! to tell what changes.

use std::collections::{BTreeMap, BTreeSet};

use super::State;
use crate::{CloudEvent, EventKind, FactsView, Gateway, Inventory, Notice, events::Ticket};

/// Notices about instances that no group of ours lists are kept for this many of an event.
const STRANGERS_OF_AN_EVENT: usize = 100;

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Passed {
    /// It comes from another account than what it names here.
    Foreign,
    /// It names nothing that a pool has.
    NotOurs,
    /// It announces something for an instance that no group of ours lists, or not yet.
    Stranger,
    /// These groups are read soon.
    Hint(BTreeSet<String>),
    /// The pools of these groups are woken to look at what is announced.
    Notice(BTreeSet<String>, Ticket),
}

impl Inventory {
    /// Takes in an event: its groups are read soon, by one call with all others that are due then.
    pub(crate) fn pass(&self, event: &CloudEvent) -> Passed {
        let now = self.clock.now();
        let mut state = self.state();
        // All groups of a region belong to the account of the credentials.
        let account = state
            .groups
            .names()
            .find_map(|name| Some(state.groups.view(name).group()?.account()?.to_owned()));
        if account.is_some_and(|account| account != event.account) {
            return Passed::Foreign;
        }
        let State { facts, notices, groups, .. } = &mut *state;
        // An event of AWS Health may name instances of several groups.
        let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut strangers = Vec::new();
        for id in &event.instances {
            match facts.group_of(id) {
                Some(group) => members.entry(group.to_string()).or_default().push(id.clone()),
                None => strangers.push(id),
            }
        }
        let notice = event.kind.notice().map(|kind| Notice { kind, at: event.at });
        if let Some(notice) = notice {
            let known = members.values().flatten();
            for id in known.chain(strangers.into_iter().take(STRANGERS_OF_AN_EVENT)) {
                notices.take(id, notice, now, |id| facts.group_of(id).is_some());
            }
        }
        let named: BTreeSet<String> = members.keys().chain(&event.group).cloned().collect();
        let told: BTreeSet<String> =
            named.into_iter().filter(|group| groups.told(group, now, &self.cadence)).collect();
        if told.is_empty() {
            let waits = notice.is_some() && members.is_empty();
            return if waits { Passed::Stranger } else { Passed::NotOurs };
        }
        // Whether a machine still runs, and how it is paid for, is known to EC2 before its group finds out.
        if notice.is_some() || event.kind == EventKind::StateChange {
            for (group, ids) in members {
                facts.want(&group, ids, true, now, &self.cadence);
            }
        }
        let ticket = notice.map(|_| notices.announce());
        state.events_flow = true;
        drop(state);
        self.trust_events();
        self.groups_wanted.notify_one();
        self.facts_wanted.notify_one();
        match ticket {
            Some(ticket) => {
                for group in &told {
                    self.changed(group);
                }
                Passed::Notice(told, ticket)
            }
            None => Passed::Hint(told),
        }
    }

    /// What is announced for an instance. Costs no call.
    #[must_use]
    pub fn notice(&self, instance: &str) -> Option<Notice> {
        self.state().notices.of(instance)
    }

    /// What is announced so far, for [`Self::saw`]: taken when a reconcile of the group's pool begins. As long as the
    /// machine behind an announcement is not known, nobody can judge it, so that nothing counts as seen.
    #[must_use]
    pub fn announced(&self, group: &str) -> u64 {
        let state = self.state();
        let unknown = |id: &str| {
            state.facts.group_of(id).is_some_and(|of| *of == *group)
                && matches!(state.facts.view(id), FactsView::Unknown)
        };
        if state.notices.instances().any(unknown) { 0 } else { state.notices.mark() }
    }

    /// A reconcile of the group's pool has ended well that began when `mark` was [announced](Self::announced): what was
    /// announced by then stands in Kubernetes now, and messages that said so may be deleted.
    pub fn saw(&self, group: &str, mark: u64) {
        self.state().notices.saw(group, mark);
        self.feed_progress();
    }

    pub(crate) fn has_seen(&self, group: &str, ticket: Ticket) -> bool {
        self.state().notices.has_seen(group, ticket)
    }

    /// A queue of events answers, or does no more.
    pub(crate) fn set_fed(&self, answers: bool) {
        let mut state = self.state();
        let turned = std::mem::replace(&mut state.queue_answers, answers) != answers;
        drop(state);
        if turned {
            self.trust_events();
        }
    }

    /// Instances came or went and no event told of it: whatever sends them is not to be relied on. The next event that
    /// comes is taken for a sign that it works again.
    pub(super) fn events_are_missing(&self) {
        let flowed = std::mem::replace(&mut self.state().events_flow, false);
        if flowed {
            tracing::info!(
                "a group changed without an event; groups are polled more often until events come again"
            );
            self.trust_events();
        }
    }

    /// Groups are polled at leisure as long as a queue answers and events are seen to come out of it: one that nothing
    /// is sent to answers just as well.
    fn trust_events(&self) {
        let now = self.clock.now();
        let mut state = self.state();
        let fed = state.queue_answers && state.events_flow;
        state.groups.set_fed(fed, now, &self.cadence);
        drop(state);
        self.groups_wanted.notify_one();
    }

    /// Whether events are relied on to tell what changes.
    #[must_use]
    pub fn is_fed(&self) -> bool {
        let state = self.state();
        state.queue_answers && state.events_flow
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// What messages wait for may have come.
    pub(crate) fn feed_progress(&self) {
        self.feed_progress.notify_one();
    }

    /// Waits until it may have.
    pub(crate) async fn fed(&self) {
        self.feed_progress.notified().await;
    }
}
