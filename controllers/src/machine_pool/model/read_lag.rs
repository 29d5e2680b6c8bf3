//! How far reads of AWS are behind what was written to it.

use chrono::{DateTime, TimeDelta, Utc};

/// Reads of AWS are behind its writes by no more than this.
const READ_LAG: TimeDelta = TimeDelta::seconds(15);

/// A list of AWS that is older than this shows what happened before.
pub const LIST_LAG: TimeDelta = TimeDelta::seconds(10);

/// How much longer than `now` a read may be behind what was written at `written`; `None` if none is.
#[must_use]
pub fn reads_behind(written: DateTime<Utc>, now: DateTime<Utc>) -> Option<TimeDelta> {
    Some(written + READ_LAG - now).filter(|wait| *wait > TimeDelta::zero())
}
