//! The edge between our own clock type, chrono, and the jiff timestamps of Kubernetes metadata.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Converts to the Kubernetes form, cut to whole seconds as the API server stores it.
///
/// An instant that jiff cannot express (before year −9999 or after 9999) becomes the Unix epoch; no clock yields one.
#[must_use]
pub fn to_kubernetes(instant: DateTime<Utc>) -> Time {
    Time(jiff::Timestamp::from_second(instant.timestamp()).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}

/// Converts from the Kubernetes form, to the second; an instant that chrono cannot express becomes the Unix epoch.
#[must_use]
pub fn from_kubernetes(time: &Time) -> DateTime<Utc> {
    DateTime::from_timestamp(time.0.as_second(), 0).unwrap_or(DateTime::UNIX_EPOCH)
}

/// Cuts an instant to whole seconds, so that what is compared equals what the API server returns.
#[must_use]
pub fn to_second(instant: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp(instant.timestamp(), 0).unwrap_or(DateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_keeps_the_second_and_drops_the_rest() {
        let instant = DateTime::from_timestamp(1_700_000_000, 999_999_999).unwrap();
        assert_eq!(from_kubernetes(&to_kubernetes(instant)), to_second(instant));
        assert_eq!(serde_json::to_value(to_kubernetes(instant)).unwrap(), "2023-11-14T22:13:20Z");
    }
}
