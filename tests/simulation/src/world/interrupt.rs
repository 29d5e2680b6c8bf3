//! What interrupts: replies of the API server that are lost, watches that list again, caches and clocks of the past.

use std::time::Duration;

use chrono::TimeDelta;

use super::World;
use crate::{Kind, api_server::Stale};

impl World {
    /// How many pools are being reconciled.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.running.reconciles()
    }

    /// Whether writes are on their way whose sender does not wait for them any more.
    #[must_use]
    pub fn has_late_writes(&self) -> bool {
        self.next_landing().is_some()
    }

    /// How long a call takes at most.
    #[must_use]
    pub fn longest_call(&self) -> TimeDelta {
        let millis = self.setup.latency.map_or(0, |latency| latency.slow_millis.max(latency.typical_millis));
        TimeDelta::milliseconds(millis.cast_signed())
    }

    /// From now on no call takes longer than this.
    pub fn keep_calls_within(&self, most: Duration) {
        self.factory.shared.delays.keep_within(most);
    }

    /// The next writes to the API server take effect, and their replies are lost.
    pub fn lose_kubernetes_replies(&self, count: u32) {
        self.api.lose_replies(count);
    }

    /// The watch of a kind breaks and lists again: what was between is never shown, and nobody is told what is gone.
    pub fn list_again(&self, kind: Kind) {
        self.api.list_again(kind);
    }

    /// The process is killed, and another follows that lists from a cache of the past, which catches up after a while. Without
    /// [`super::Setup::latency`] the past is not remembered: the list is up to date.
    pub fn restart_in_the_past(&mut self, age: TimeDelta, catches_up: TimeDelta) {
        let now = self.now();
        self.stale = Some(Stale { at: now - age, catches_up: now + catches_up });
        self.restart();
    }

    /// The clock of the host is set while the process runs.
    pub fn set_clock_off(&self, off: TimeDelta) {
        self.clock.set_off(off);
    }

    /// The process is killed, and another follows on a host whose clock is off.
    pub fn restart_with_clock_off(&mut self, off: TimeDelta) {
        self.set_clock_off(off);
        self.restart();
    }
}
