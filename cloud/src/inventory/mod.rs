//! One shared view of everything that pools look at in one identity and region, so that cost does not grow with
//! what pools do: one batched poll for all, facts fetched once, and a fence that tells which views show our own
//! writes (design section 3).

mod cache;
mod cadence;
mod events;
mod facts;
mod fence;
mod groups;
mod instance_types;
mod lookups;
mod poll;
mod reach;
mod refreshes;
#[cfg(test)]
mod tests;
mod view;
mod write;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use cadence::Cadence;
use chrono::{DateTime, Utc};
pub(crate) use events::Passed;
use facts::FactsTable;
use groups::Table;
pub use instance_types::InstanceTypes;
use instance_types::InstanceTypesTable;
use lookups::Lookups;
use reach::Reach;
use refreshes::RefreshesTable;
pub use refreshes::RefreshesView;
use tokio::sync::{Notify, mpsc};
pub use view::{Facts, FactsView, Template, View};

use crate::{
    Clock, Gateway, Image, LifecycleHook, Priority, Result, ScalingActivity, SecurityGroup, Selector, Subnet,
    events::Notices, gateway::DESCRIBE_GROUPS,
};

/// Told of each change; returns false once it no longer listens.
type Listener = Box<dyn Fn(&str) -> bool + Send>;

/// The shared view of one identity and region.
pub struct Inventory {
    gateway: Arc<Gateway>,
    clock: Arc<dyn Clock>,
    cadence: Cadence,
    state: Mutex<State>,
    lookups: Lookups,
    instance_types: InstanceTypesTable,
    refreshes: RefreshesTable,
    groups_wanted: Notify,
    facts_wanted: Notify,
    feed_progress: Notify,
    listeners: Mutex<Vec<Listener>>,
}

#[derive(Default)]
struct State {
    groups: Table,
    facts: FactsTable,
    reach: Reach,
    notices: Notices,
    /// A queue of events answers.
    queue_answers: bool,
    /// It told of something of ours, and nothing that it should have told was seen without it since.
    events_flow: bool,
}

impl Inventory {
    /// An empty inventory; nothing is read before [`Self::run`] or [`Self::poll_due`].
    #[must_use]
    pub fn new(gateway: Arc<Gateway>, clock: Arc<dyn Clock>, cadence: Cadence) -> Arc<Self> {
        Arc::new(Self {
            gateway,
            clock,
            cadence,
            state: Mutex::default(),
            lookups: Lookups::new(&cadence),
            instance_types: InstanceTypesTable::default(),
            refreshes: RefreshesTable::default(),
            groups_wanted: Notify::new(),
            facts_wanted: Notify::new(),
            feed_progress: Notify::new(),
            listeners: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pool looks at this group from now on; it is read soon. Repeating it does nothing.
    pub fn register(&self, group: &str) {
        self.state().groups.register(group, self.clock.now(), &self.cadence);
        self.groups_wanted.notify_one();
    }

    /// Nobody looks at this group any more.
    pub fn forget(&self, group: &str) {
        let mut state = self.state();
        state.groups.forget(group, self.clock.now());
        state.facts.forget(group);
        self.refreshes.forget(group);
        state.notices.forget(group);
    }

    /// What is known of a group. Costs no call.
    #[must_use]
    pub fn view(&self, group: &str) -> View {
        self.state().groups.view(group)
    }

    /// Puts a group into the fast round, or back into the slow one. A write to a group puts it into the fast
    /// one; the caller takes it out when it has settled.
    pub fn set_transition(&self, group: &str, on: bool) {
        self.state().groups.set_transition(group, on, self.clock.now(), &self.cadence);
        if on {
            self.groups_wanted.notify_one();
        }
    }

    /// Has a group polled as often with events as without, or not any more: for one that changes in ways which give no
    /// event, such as a desired capacity that somebody else lowers.
    pub fn set_restless(&self, group: &str, on: bool) {
        self.state().groups.set_restless(group, on, self.clock.now(), &self.cadence);
        if on {
            self.groups_wanted.notify_one();
        }
    }

    /// Asks for a read soon; wishes that come together share the call.
    pub fn refresh(&self, group: &str) {
        let at = self.clock.now() + self.cadence.coalesce;
        if self.state().groups.ask(group, at) {
            self.groups_wanted.notify_one();
        }
    }

    /// Reads one group now, by itself, and tells what that very answer said: an absence is told at once, while
    /// [`Self::view`] believes it of a known group only if it is repeated. Goes in the turn of an end, since ends
    /// wait for it.
    ///
    /// # Errors
    /// If a page failed; the view stays as it was.
    pub async fn read_group(&self, group: &str) -> Result<View> {
        let permit = self.gateway.permit(DESCRIBE_GROUPS, Priority::End).await;
        let start = self.state().groups.start(self.clock.now());
        let names = [group.to_owned()];
        let listing = self.gateway.list_groups(permit, &names).await;
        if let Some(error) = listing.failed {
            return Err(error);
        }
        let now = self.clock.now();
        let mut state = self.state();
        let found = listing.items.iter().find(|item| item.name == group).cloned();
        let applied = state.groups.apply(&names, start, listing.items, true, now, &self.cadence);
        let view = match (state.groups.view(group), found) {
            // The shared one, unless the group is not registered or a later answer came first.
            (view @ View::Present { .. }, Some(_)) => view,
            (_, found) => state.groups.answer(group, found, start),
        };
        drop(state);
        self.take_effect(&applied);
        self.tell_reach(DESCRIBE_GROUPS, None);
        // It may be in doubt, or the pause after failures may be over.
        self.groups_wanted.notify_one();
        Ok(view)
    }

    /// What is known of a machine. Costs no call.
    #[must_use]
    pub fn facts(&self, id: &str) -> FactsView {
        self.state().facts.view(id)
    }

    /// Asks for the facts of machines that are not known yet; the group is woken when they arrive. Members of a
    /// registered group are asked for without this.
    pub fn want_facts(&self, group: &str, ids: impl IntoIterator<Item = String>) {
        self.state().facts.want(group, ids, false, self.clock.now(), &self.cadence);
        self.facts_wanted.notify_one();
    }

    /// Asks for the facts of machines again, for example to learn whether one that ends is gone.
    pub fn refetch(&self, group: &str, ids: impl IntoIterator<Item = String>) {
        self.state().facts.want(group, ids, true, self.clock.now(), &self.cadence);
        self.facts_wanted.notify_one();
    }

    /// A launch template with its versions: read once, then kept up by our own writes, audited hourly.
    ///
    /// # Errors
    /// As the reads; an error is kept for [`Cadence::negative`], and so is the absence of a template.
    pub async fn template(&self, name: &str) -> Result<Option<Arc<Template>>> {
        self.lookups.template(&*self.clock, &self.gateway, name).await
    }

    /// The next [`Self::template`] reads again.
    pub fn forget_template(&self, name: &str) {
        self.lookups.forget_template(name);
    }

    /// The hooks of a group: kept up by our own writes, audited hourly.
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn hooks(&self, group: &str) -> Result<Arc<Vec<LifecycleHook>>> {
        self.lookups.hooks(&*self.clock, &self.gateway, group).await
    }

    /// The next [`Self::hooks`] reads again.
    pub fn forget_hooks(&self, group: &str) {
        self.lookups.forget_hooks(group);
    }

    /// Subnets, kept for [`Cadence::lookup`]; for [`Cadence::negative`] if one that is named is missing.
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn subnets(&self, selector: &Selector) -> Result<Arc<Vec<Subnet>>> {
        self.lookups.subnets(&*self.clock, &self.gateway, selector).await
    }

    /// Security groups, kept as [`Self::subnets`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn security_groups(&self, selector: &Selector) -> Result<Arc<Vec<SecurityGroup>>> {
        self.lookups.security_groups(&*self.clock, &self.gateway, selector).await
    }

    /// An image, kept for [`Cadence::constant`]; its absence for [`Cadence::negative`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn image(&self, id: &str) -> Result<Option<Image>> {
        self.lookups.image(&*self.clock, &self.gateway, id).await
    }

    /// Instance types by name. All that pools ask for at the same time is read by one call, and kept for
    /// [`Cadence::instance_type`].
    ///
    /// # Errors
    /// As the read. A failure in passing is kept for [`Cadence::negative`], one that only a person can mend for
    /// [`Cadence::lookup`].
    pub async fn instance_types(&self, names: &[String]) -> Result<InstanceTypes> {
        self.instance_types.get(&*self.clock, &self.gateway, &self.cadence, names).await
    }

    /// The instance refreshes of a group, newest first; what is younger than `believed` is not read again, unless we
    /// wrote something since that concerns them.
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn instance_refreshes(&self, group: &str, believed: Duration) -> Result<RefreshesView> {
        self.refreshes.get(&*self.clock, &self.gateway, self.cadence.negative, group, believed).await
    }

    /// The instance refreshes of a group as last read, however old. Costs no call.
    #[must_use]
    pub fn known_refreshes(&self, group: &str) -> Option<RefreshesView> {
        self.refreshes.known(group)
    }

    /// A parameter's value, kept for [`Cadence::lookup`]; its absence for [`Cadence::negative`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn parameter(&self, name: &str) -> Result<Option<String>> {
        self.lookups.parameter(&*self.clock, &self.gateway, name).await
    }

    /// The account of the credentials, kept for [`Cadence::constant`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn account(&self) -> Result<String> {
        self.lookups.account(&*self.clock, &self.gateway).await
    }

    /// The newest scaling activities of a group, newest first; read each time.
    ///
    /// # Errors
    /// As the read.
    pub async fn scaling_activities(&self, group: &str) -> Result<Vec<ScalingActivity>> {
        self.gateway.scaling_activities(group).await
    }

    /// Whether the background reads get through: the last error if they keep failing, or fail for a reason that
    /// only a person can mend. Every group is told when this turns.
    ///
    /// # Errors
    /// The error that the background reads meet.
    pub fn reachable(&self) -> Result<()> {
        self.state().reach.state()
    }

    /// When a background read last succeeded.
    #[must_use]
    pub fn last_success(&self) -> Option<DateTime<Utc>> {
        self.state().reach.last_success()
    }

    /// The names of groups whose view or machines' facts change from now on, each change once: the view's
    /// content, that it has settled, facts that arrived, and whether the cloud can be reached.
    #[must_use]
    pub fn changes(&self) -> mpsc::UnboundedReceiver<String> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.listen(move |group| sender.send(group.to_owned()).is_ok());
        receiver
    }

    pub(crate) fn listen(&self, listener: impl Fn(&str) -> bool + Send + 'static) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    fn changed(&self, group: &str) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).retain(|listener| listener(group));
    }
}
