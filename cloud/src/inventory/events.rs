//! Events: what they make the inventory look at, what they announce for single instances, and how far they are trusted
//! to tell what changes.

use crate::{CloudEvent, EventKind, Gateway, Inventory, Notice, events::Ticket};

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Passed {
    /// It comes from another account than what it names here.
    Foreign,
    /// It names nothing that a pool has.
    NotOurs,
    /// It announces something for an instance that no group of ours lists, or not yet.
    Stranger,
    /// This group is read soon.
    Hint(String),
    /// The pool of this group is woken to look at what is announced.
    Notice(String, Ticket),
}

impl Inventory {
    /// Takes in an event: its group is read soon, by one call with all others that are due then.
    pub(crate) fn pass(&self, event: &CloudEvent) -> Passed {
        let now = self.clock.now();
        let mut state = self.state();
        let by_instance =
            event.instances.iter().find_map(|id| state.facts.group_of(id).map(|group| group.to_string()));
        let group = event.group.clone().or(by_instance);
        // All groups of a region belong to the account of the credentials.
        let account = state
            .groups
            .names()
            .find_map(|name| Some(state.groups.view(name).group()?.account()?.to_owned()));
        if account.is_some_and(|account| account != event.account) {
            return Passed::Foreign;
        }
        let notice = event.kind.notice().map(|kind| Notice { kind, at: event.at });
        if let Some(notice) = notice {
            for id in &event.instances {
                state.notices.take(id, notice, now);
            }
        }
        let Some(group) = group else {
            return if notice.is_some() { Passed::Stranger } else { Passed::NotOurs };
        };
        if !state.groups.told(&group, now, now + self.cadence.coalesce) {
            return Passed::NotOurs;
        }
        state.events_flow = true;
        // Whether a machine still runs is known to EC2 before its group finds out.
        if notice.is_some() || event.kind == EventKind::StateChange {
            state.facts.want(&group, event.instances.iter().cloned(), true, now, &self.cadence);
        }
        let ticket = notice.map(|_| state.notices.announce());
        drop(state);
        self.trust_events();
        self.groups_wanted.notify_one();
        self.facts_wanted.notify_one();
        match ticket {
            Some(ticket) => {
                self.changed(&group);
                Passed::Notice(group, ticket)
            }
            None => Passed::Hint(group),
        }
    }

    /// What is announced for an instance. Costs no call.
    #[must_use]
    pub fn notice(&self, instance: &str) -> Option<Notice> {
        self.state().notices.of(instance)
    }

    /// What is announced so far, for [`Self::saw`]: taken when a reconcile begins.
    #[must_use]
    pub fn announced(&self) -> u64 {
        self.state().notices.mark()
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
