//! One shared view of everything that pools observe in one identity and region, so that cost does not grow with the number
//! of pools: one batched poll for all, EC2's facts fetched once, and a fence that says which views show our own writes.

mod cache;
mod cadence;
mod facts;
mod failed_read;
mod fence;
mod groups;
mod instance_types;
mod intake;
mod lookups;
mod notices;
mod offered;
mod offers;
mod poll;
mod reach;
mod refreshes;
mod templates;
#[cfg(test)]
mod tests;
mod view;
mod write;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use cadence::Cadence;
use facts::FactsTable;
use groups::Table;
pub use instance_types::InstanceTypes;
use instance_types::InstanceTypesTable;
pub(crate) use intake::Intake;
use lookups::Lookups;
use notices::Notices;
use reach::Reach;
use refreshes::RefreshesTable;
pub use refreshes::RefreshesView;
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
pub use view::{Facts, FactsView, Template, View};

use crate::{
    Clock, Gateway, Image, LifecycleHook, Priority, Result, ScalingActivity, SecurityGroup, Selector, Subnet,
    gateway::DESCRIBE_GROUPS,
};

/// Receives the name of each changed group; returns false once it no longer listens.
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

/// Whether events of the region are received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueueState {
    /// No queue is configured for the region.
    #[default]
    Absent,
    /// A queue is configured, and was not read yet.
    Unread,
    /// The queue is received from.
    Available,
    /// Messages cannot be received from the queue, or not be deleted.
    Unavailable,
}

#[derive(Default)]
struct State {
    groups: Table,
    facts: FactsTable,
    reach: Reach,
    notices: Notices,
    /// Whether the region has an event queue that can be read.
    queue: QueueState,
    /// An event about a registered group arrived, and no change was seen without its event since.
    events_flow: bool,
}

impl Inventory {
    /// An empty inventory; nothing is read before [`Self::run`] or [`Self::poll_due`]. `template_tag` is the key of a tag
    /// that the launch templates of all pools have.
    #[must_use]
    pub fn new(
        gateway: Arc<Gateway>,
        clock: Arc<dyn Clock>,
        cadence: Cadence,
        template_tag: &'static str,
    ) -> Arc<Self> {
        Arc::new(Self {
            gateway,
            clock,
            cadence,
            state: Mutex::default(),
            lookups: Lookups::new(&cadence, template_tag),
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

    /// A pool observes this group from now on; it is read soon. Repeating it does nothing.
    pub fn register(&self, group: &str) {
        self.state().groups.register(group, Instant::now(), &self.cadence);
        self.groups_wanted.notify_one();
    }

    /// Whether a pool observes any group.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.state().groups.is_registered()
    }

    /// No pool observes this group any more.
    pub fn forget(&self, group: &str) {
        let mut state = self.state();
        state.groups.forget(group, Instant::now());
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
        self.state().groups.set_transition(group, on, Instant::now(), &self.cadence);
        if on {
            self.groups_wanted.notify_one();
        }
    }

    /// Polls a group as often with events as without, or no longer: another actor scales it, for example lowers desired
    /// capacity, which gives no event.
    pub fn set_externally_scaled(&self, group: &str, on: bool) {
        self.state().groups.set_externally_scaled(group, on, Instant::now(), &self.cadence);
        if on {
            self.groups_wanted.notify_one();
        }
    }

    /// Requests a read soon; requests at the same time share the call.
    pub fn request_read(&self, group: &str) {
        let at = Instant::now() + self.cadence.coalesce;
        if self.state().groups.request_read(group, at) {
            self.groups_wanted.notify_one();
        }
    }

    /// Reads one group now, by itself, and returns what this answer says: also an absence that is not confirmed, while
    /// [`Self::view`] shows the absence of a group that existed only once it is. Has the priority of a termination, since
    /// terminations wait for it.
    ///
    /// # Errors
    /// If a page failed; the view stays as it was.
    pub async fn read_group(&self, group: &str) -> Result<View> {
        let permit = self.gateway.permit(DESCRIBE_GROUPS, Priority::Terminate).await;
        let start = self.state().groups.start(Instant::now(), self.clock.now());
        let names = [group.to_owned()];
        let listing = self.gateway.list_groups(permit, &names).await;
        if let Some(error) = listing.failed {
            return Err(error);
        }
        let now = Instant::now();
        let mut state = self.state();
        let found = listing.items.iter().find(|item| item.name == group).cloned();
        let applied = state.groups.apply(&names, start, listing.items, true, now, &self.cadence);
        let view = match (state.groups.view(group), found) {
            // The shared one, unless the group is not registered or a later answer came first.
            (view @ View::Present { .. }, Some(_)) => view,
            (_, found) => state.groups.view_of_answer(group, found, start),
        };
        drop(state);
        self.take_effect(&applied);
        self.record_reachability(DESCRIBE_GROUPS, None);
        // Its absence may have to be confirmed, or the pause after failures may be over.
        self.groups_wanted.notify_one();
        Ok(view)
    }

    /// What is known of an EC2 instance. Costs no call.
    #[must_use]
    pub fn facts(&self, id: &str) -> FactsView {
        self.state().facts.view(id)
    }

    /// Requests the facts of EC2 instances that are not known yet; the group's pools are woken when they arrive. The
    /// instances of a registered group are read without this.
    pub fn request_facts(&self, group: &str, ids: impl IntoIterator<Item = String>) {
        self.state().facts.request(group, ids, false, Instant::now(), &self.cadence);
        self.facts_wanted.notify_one();
    }

    /// Requests the facts of EC2 instances again, for example to learn whether one has terminated.
    pub fn refetch_facts(&self, group: &str, ids: impl IntoIterator<Item = String>) {
        self.state().facts.request(group, ids, true, Instant::now(), &self.cadence);
        self.facts_wanted.notify_one();
    }

    /// A launch template with its versions: read once, then kept up by our own writes, read again every hour. At first, and
    /// every hour, the launch templates of all pools are listed together, with the latest version of each:
    /// [`Template::has_all_versions`] tells whether there are others, which the read after [`Self::forget_template`] shows.
    ///
    /// # Errors
    /// As the reads; an error is kept for [`Cadence::negative`], and so is the absence of a template.
    pub async fn template(&self, name: &str) -> Result<Option<Arc<Template>>> {
        self.lookups.templates.get(&self.clock, &self.gateway, name).await
    }

    /// The next [`Self::template`] reads again, with all versions.
    pub fn forget_template(&self, name: &str) {
        self.lookups.templates.forget(name);
    }

    /// The same, if the template was read at least this long ago.
    pub fn forget_older_template(&self, name: &str, age: Duration) {
        self.lookups.templates.forget_older(name, age);
    }

    /// What was looked up about a group and the launch template of its pool is read again: another manager, or a user,
    /// may change both from now on.
    pub fn forget_lookups(&self, group: &str, template: &str) {
        self.lookups.forget_hooks(group);
        self.lookups.templates.forget(template);
        self.refreshes.forget(group);
    }

    /// The hooks of a group: kept up by our own writes, read again every hour.
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn hooks(&self, group: &str) -> Result<Arc<Vec<LifecycleHook>>> {
        self.lookups.hooks(&self.gateway, group).await
    }

    /// The hooks of a group, if they are kept: makes no call.
    #[must_use]
    pub fn known_hooks(&self, group: &str) -> Option<Arc<Vec<LifecycleHook>>> {
        self.lookups.known_hooks(group)
    }

    /// How long [`Self::known_hooks`] are kept; `None` if they are not.
    #[must_use]
    pub fn hooks_kept_for(&self, group: &str) -> Option<Duration> {
        self.lookups.hooks_kept_for(group)
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
        self.lookups.subnets(&self.gateway, selector).await
    }

    /// The next [`Self::subnets`] by this selector reads again.
    pub fn forget_subnets(&self, selector: &Selector) {
        self.lookups.forget_subnets(selector);
    }

    /// The next [`Self::security_groups`] by this selector reads again.
    pub fn forget_security_groups(&self, selector: &Selector) {
        self.lookups.forget_security_groups(selector);
    }

    /// The next [`Self::image`] of this ID reads again, and so does [`Self::snapshot_gib`] of the snapshots of its volumes.
    pub fn forget_image(&self, id: &str) {
        self.lookups.forget_image(id);
    }

    /// The next [`Self::snapshot_gib`] of this ID reads again.
    pub fn forget_snapshot(&self, id: &str) {
        self.lookups.forget_snapshot(id);
    }

    /// The next [`Self::image`] of this ID reads again if it was read at least this long ago.
    pub fn forget_older_image(&self, id: &str, age: Duration) {
        self.lookups.forget_older_image(id, age);
    }

    /// The next [`Self::parameter`] of this name reads again.
    pub fn forget_parameter(&self, name: &str) {
        self.lookups.forget_parameter(name);
    }

    /// Security groups, kept as [`Self::subnets`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn security_groups(&self, selector: &Selector) -> Result<Arc<Vec<SecurityGroup>>> {
        self.lookups.security_groups(&self.gateway, selector).await
    }

    /// Whether a security group is associated with a VPC other than its own, kept for [`Cadence::lookup`]; for
    /// [`Cadence::negative`] if it is not.
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn is_associated(&self, security_group: &str, vpc: &str) -> Result<bool> {
        self.lookups.is_associated(&self.gateway, security_group, vpc).await
    }

    /// An image, kept for [`Cadence::constant`]; its absence for [`Cadence::negative`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn image(&self, id: &str) -> Result<Option<Image>> {
        self.lookups.image(&self.gateway, id).await
    }

    /// The size of a snapshot in GiB, kept for [`Cadence::constant`]; `None` if it does not exist, is not shared with the
    /// account, or its description is denied.
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn snapshot_gib(&self, id: &str) -> Result<Option<i32>> {
        self.lookups.snapshot_gib(&self.gateway, id).await
    }

    /// Instance types by name. All that pools request at the same time is read by one call, and kept for
    /// [`Cadence::instance_type`].
    ///
    /// # Errors
    /// As the read. A transient failure is kept for [`Cadence::negative`], one that only a user can fix for 30 s at first
    /// and, doubling, for [`Cadence::lookup`] at most.
    pub async fn instance_types(&self, names: &[String]) -> Result<InstanceTypes> {
        self.instance_types.get(&self.gateway, &self.cadence, names).await
    }

    /// The instance refreshes of a group, newest first; what is younger than `max_age` is not read again, unless we wrote
    /// something since that concerns them.
    ///
    /// # Errors
    /// As the read. A transient failure is kept for [`Cadence::negative`], one that only a user can fix for 30 s at first
    /// and, doubling, for [`Cadence::lookup`] at most.
    pub async fn instance_refreshes(&self, group: &str, max_age: Duration) -> Result<RefreshesView> {
        self.refreshes.get(&*self.clock, &self.gateway, &self.cadence, group, max_age).await
    }

    /// The instance refreshes of a group as last read, however old. Costs no call.
    #[must_use]
    pub fn known_refreshes(&self, group: &str) -> Option<RefreshesView> {
        self.refreshes.known(group)
    }

    /// The image ID that a parameter holds, kept for [`Cadence::lookup`]; its absence for [`Cadence::negative`].
    ///
    /// # Errors
    /// [`crate::ErrorClass::Invalid`] if it holds anything else; else as the read. An error is kept for
    /// [`Cadence::negative`].
    pub async fn parameter(&self, name: &str) -> Result<Option<String>> {
        self.lookups.parameter(&self.gateway, name).await
    }

    /// Drops what was looked up and is out of date. An inventory whose groups are polled does so itself.
    pub fn drop_expired(&self) {
        self.lookups.prune(Instant::now());
    }

    /// The account of the credentials, kept for [`Cadence::constant`].
    ///
    /// # Errors
    /// As the read; an error is kept for [`Cadence::negative`].
    pub async fn account(&self) -> Result<String> {
        self.lookups.account(&self.gateway).await
    }

    /// The newest scaling activities of a group, newest first, as many pages as are `enough`; read each time.
    ///
    /// # Errors
    /// As the read.
    pub async fn scaling_activities(
        &self,
        group: &str,
        enough: impl Fn(&[ScalingActivity]) -> bool,
    ) -> Result<Vec<ScalingActivity>> {
        self.gateway.scaling_activities(group, enough).await
    }

    /// Whether the background reads succeed: the last error if they keep failing, or fail for a reason that only a user can
    /// fix. The pools of all groups are woken when this changes.
    ///
    /// # Errors
    /// The error of the background reads.
    pub fn reachable(&self) -> Result<()> {
        self.state().reach.state()
    }

    /// The names of groups whose view or instances change from now on, each change once: the view's content, that it has
    /// settled, facts that arrived, whether AWS is reachable, and the state of the event queue.
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
