//! What the handlers of all requests share.

use chrono::{DateTime, Duration, Utc};

use super::{credentials::told_in_wall_time, pace::Pacer};
use crate::{Simulator, Tree, timestamp};

/// What every request needs.
pub(super) struct Shared {
    pub(super) simulator: Simulator,
    pub(super) pacer: Pacer,
}

impl Shared {
    /// Says when credentials in a reply end by the caller's clock, as fast as virtual time runs.
    pub(super) fn tell_in_wall_time(&self, reply: &mut Tree, wall_time: DateTime<Utc>) {
        let now = self.simulator.now();
        told_in_wall_time(reply, |end| {
            let end = DateTime::parse_from_rfc3339(end).ok()?.with_timezone(&Utc);
            let left = (end - now).num_milliseconds().max(0).unsigned_abs();
            let left = std::time::Duration::from_millis(left).div_f64(self.pacer.factor());
            Some(timestamp(wall_time + Duration::from_std(left).ok()?))
        });
    }
}
