//! Writes: through the gateway, with the fence held while they are under way, and with caches updated by their answers.

use tokio::time::Instant;

use crate::{
    CloudError, ErrorClass, Result, Write, Written,
    inventory::{Inventory, fence::Ending, lookups::Learnt},
};

impl Inventory {
    /// Carries out one change: by its priority, while this process leads. The group's view is not settled from now until a
    /// read that started after the answer; the group joins the fast round and is read soon.
    ///
    /// # Errors
    /// As [`crate::Gateway::write`].
    pub async fn write(&self, write: &Write) -> Result<Written> {
        self.gateway.time_left(write.api())?;
        let mut under_way = UnderWay::begin(self, write);
        let permit = self.gateway.permit(write.api(), write.priority()).await;
        under_way.sent = Some(Instant::now());
        let result = self.gateway.send_write(permit, write).await;
        under_way.end(&result);
        result
    }
}

/// A write that has begun. Dropping it before the answer counts as a lost answer if it was sent.
struct UnderWay<'a> {
    inventory: &'a Inventory,
    write: &'a Write,
    sent: Option<Instant>,
    finished: bool,
}

impl<'a> UnderWay<'a> {
    fn begin(inventory: &'a Inventory, write: &'a Write) -> Self {
        if let Some(group) = write.group() {
            inventory.state().groups.begin_write(group);
        }
        Self { inventory, write, sent: None, finished: false }
    }

    fn end(&mut self, result: &Result<Written>) {
        let (ending, learnt) = match result {
            // It prolongs a lifecycle action, and changes nothing that a view could show.
            Ok(_) if matches!(self.write, Write::RecordLifecycleActionHeartbeat { .. }) => {
                (Ending::Nothing, Learnt::Nothing)
            }
            Ok(written) => (Ending::Answered, Learnt::Done(written)),
            Err(error) if error.outcome_unknown => (self.lost(), Learnt::Unsure),
            // A policy with conditions on tags also denies changes of what is deleted already: after a lost answer, or by
            // another actor.
            Err(error) if error.class == ErrorClass::Denied && names_launch_template(self.write) => {
                (Ending::Nothing, Learnt::Unsure)
            }
            Err(error) if was_rejected_unread(error) => (Ending::Nothing, Learnt::Nothing),
            Err(_) => (Ending::Answered, Learnt::Unsure),
        };
        let rejected = result.as_ref().is_err_and(|error| error.class.is_permanent());
        self.close(ending, learnt, rejected);
    }

    /// The write may take effect until its timeout and an allowance for what is in flight have passed.
    fn lost(&self) -> Ending {
        let now = Instant::now();
        let timed_out = self.sent.unwrap_or(now) + self.inventory.gateway.limits().write_timeout;
        Ending::Lost(now.max(timed_out) + self.inventory.cadence.in_flight)
    }

    fn close(&mut self, ending: Ending, learnt: Learnt<'_>, rejected: bool) {
        self.finished = true;
        let (inventory, write) = (self.inventory, self.write);
        inventory.lookups.learn(write, learnt);
        inventory.refreshes.invalidate(write);
        let Some(group) = write.group() else { return };
        let now = Instant::now();
        let mut state = inventory.state();
        state.groups.end_write(group, ending);
        match (write, learnt) {
            (Write::CreateGroup(_), Learnt::Done(_)) => state.groups.set_exists(group, true),
            (Write::DeleteGroup { .. }, Learnt::Done(_) | Learnt::Unsure) => {
                state.groups.set_exists(group, false);
            }
            _ => {}
        }
        if ending == Ending::Nothing {
            return;
        }
        if !takes_seconds(write) || ending != Ending::Answered {
            state.groups.request_read(group, now + inventory.cadence.coalesce);
        }
        if let Ending::Lost(until) = ending {
            // The first view that can be settled: worth a read, however slow the rounds are.
            state.groups.request_later_read(group, until);
        }
        if !rejected {
            state.groups.set_transition(group, true, now, &inventory.cadence);
        }
        drop(state);
        inventory.groups_wanted.notify_one();
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if self.sent.is_some() {
            self.close(self.lost(), Learnt::Unsure, false);
        } else {
            self.close(Ending::Nothing, Learnt::Nothing, false);
        }
    }
}

/// Whether a read right after the answer would show nothing that the next fast round does not: terminations and lifecycle
/// actions take seconds at best.
fn takes_seconds(write: &Write) -> bool {
    matches!(write, Write::TerminateInstances { .. } | Write::CompleteLifecycleAction { .. })
}

/// Whether it changes an existing launch template.
fn names_launch_template(write: &Write) -> bool {
    matches!(
        write,
        Write::CreateLaunchTemplateVersion { .. }
            | Write::DeleteLaunchTemplateVersions { .. }
            | Write::DeleteLaunchTemplate { .. }
    )
}

/// Whether it is certain that nothing was done: views stay valid.
fn was_rejected_unread(error: &CloudError) -> bool {
    matches!(error.class, ErrorClass::NotLeading | ErrorClass::Throttled | ErrorClass::Denied)
}
