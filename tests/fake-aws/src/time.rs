//! Virtual time: where it starts and how AWS writes it.

use chrono::{DateTime, Duration, SecondsFormat, Utc};

/// Seconds since 1970 at which virtual time starts unless set: 2026-01-01T00:00:00Z.
pub const EPOCH: i64 = 1_767_225_600;

/// The start of virtual time.
pub(crate) fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(EPOCH, 0).unwrap_or_default()
}

/// A time as the APIs write it, with milliseconds and `Z`.
#[must_use]
pub fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Milliseconds as a span of virtual time.
pub(crate) fn millis(millis: u64) -> Duration {
    Duration::milliseconds(i64::try_from(millis).unwrap_or(i64::MAX / 1_000_000))
}
