//! By how much reads of AWS lag behind writes.

use chrono::{DateTime, TimeDelta, Utc};

use crate::backoff::DECISION;

/// Reads of AWS lag behind writes by at most this.
const READ_LAG: TimeDelta = TimeDelta::seconds(15);

/// A list call returns every change that was made at least this long before the call.
pub const LIST_LAG: TimeDelta = TimeDelta::seconds(10);

/// The same moment, unless it is further ahead than a decision may be old: then it was noted before the clock was set back.
#[must_use]
pub fn unless_set_back(at: DateTime<Utc>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    (at - now <= DECISION).then_some(at)
}

/// For how much longer reads may not show what was written at `written`; `None` if they show it.
#[must_use]
pub fn reads_behind(written: DateTime<Utc>, now: DateTime<Utc>) -> Option<TimeDelta> {
    Some(written + READ_LAG - now).filter(|wait| *wait > TimeDelta::zero())
}
