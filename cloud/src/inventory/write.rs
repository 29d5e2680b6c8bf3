//! Writes: through the gateway, with the fence held while they are under way and what they teach taken in.

use chrono::{DateTime, Utc};

use crate::{
    CloudError, ErrorClass, Result, Write, Written,
    inventory::{Inventory, fence::Ending, lookups::Learnt},
};

impl Inventory {
    /// Carries out one change: in its priority's turn, while this process leads. A group's view is unsettled from
    /// the begin until a read that started after the answer; the group joins the fast round and is read soon.
    ///
    /// # Errors
    /// As [`crate::Gateway::write`].
    pub async fn write(&self, write: &Write) -> Result<Written> {
        self.gateway.time_left(write.api())?;
        let mut under_way = UnderWay::begin(self, write);
        let permit = self.gateway.permit(write.api(), write.priority()).await;
        under_way.sent = Some(self.clock.now());
        let result = self.gateway.send_write(permit, write).await;
        under_way.end(&result);
        result
    }
}

/// A write that has begun. Dropping it before the answer counts as a lost reply if it was sent.
struct UnderWay<'a> {
    inventory: &'a Inventory,
    write: &'a Write,
    sent: Option<DateTime<Utc>>,
    ended: bool,
}

impl<'a> UnderWay<'a> {
    fn begin(inventory: &'a Inventory, write: &'a Write) -> Self {
        if let Some(group) = write.group() {
            inventory.state().groups.begin_write(group);
        }
        Self { inventory, write, sent: None, ended: false }
    }

    fn end(&mut self, result: &Result<Written>) {
        let (ending, learnt) = match result {
            // It says that somebody is at work, and changes nothing that a view could show.
            Ok(_) if matches!(self.write, Write::RecordLifecycleActionHeartbeat { .. }) => {
                (Ending::Nothing, Learnt::Nothing)
            }
            Ok(written) => (Ending::Answered, Learnt::Done(written)),
            Err(error) if error.outcome_unknown => (self.lost(), Learnt::Unsure),
            Err(error) if was_not_looked_at(error) => (Ending::Nothing, Learnt::Nothing),
            Err(_) => (Ending::Answered, Learnt::Unsure),
        };
        let refused = result.as_ref().is_err_and(|error| error.class.is_permanent());
        self.close(ending, learnt, refused);
    }

    /// The write may take effect until its timeout and an allowance for what is in flight have passed.
    fn lost(&self) -> Ending {
        let now = self.inventory.clock.now();
        let timed_out = self.sent.unwrap_or(now) + self.inventory.gateway.limits().write_timeout;
        Ending::Lost(now.max(timed_out) + self.inventory.cadence.in_flight)
    }

    fn close(&mut self, ending: Ending, learnt: Learnt<'_>, refused: bool) {
        self.ended = true;
        let (inventory, write) = (self.inventory, self.write);
        inventory.lookups.learn(&*inventory.clock, write, learnt);
        inventory.refreshes.doubt(write);
        let Some(group) = write.group() else { return };
        let now = inventory.clock.now();
        let mut state = inventory.state();
        state.groups.end_write(group, ending);
        match (write, learnt) {
            (Write::CreateGroup(_), Learnt::Done(_)) => state.groups.expect(group, true),
            (Write::DeleteGroup { .. }, Learnt::Done(_) | Learnt::Unsure) => {
                state.groups.expect(group, false);
            }
            _ => {}
        }
        if ending == Ending::Nothing {
            return;
        }
        if !takes_its_time(write) || ending != Ending::Answered {
            state.groups.ask(group, now + inventory.cadence.coalesce);
        }
        if let Ending::Lost(until) = ending {
            // The first view that can settle: worth a read, however slow the rounds are.
            state.groups.ask_later(group, until);
        }
        if !refused {
            state.groups.set_transition(group, true, now, &inventory.cadence);
        }
        drop(state);
        inventory.groups_wanted.notify_one();
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if self.sent.is_some() {
            self.close(self.lost(), Learnt::Unsure, false);
        } else {
            self.close(Ending::Nothing, Learnt::Nothing, false);
        }
    }
}

/// Whether a read right after the answer would show nothing that the next fast round does not: machines end and hooks go on
/// in seconds at best.
fn takes_its_time(write: &Write) -> bool {
    matches!(write, Write::TerminateInstances { .. } | Write::CompleteLifecycleAction { .. })
}

/// Whether it is sure that nothing was done: views stay as good as they were.
fn was_not_looked_at(error: &CloudError) -> bool {
    matches!(error.class, ErrorClass::NotLeading | ErrorClass::Throttled | ErrorClass::Denied)
}
