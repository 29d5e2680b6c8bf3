//! Conversion between chrono, our type for times, and the jiff timestamps of Kubernetes metadata.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Converts to the Kubernetes form, truncated to whole seconds as the API server stores it.
///
/// A time that jiff cannot represent (before year −9999 or after 9999) becomes the Unix epoch; no clock returns one.
#[must_use]
pub fn to_kubernetes(instant: DateTime<Utc>) -> Time {
    Time(jiff::Timestamp::from_second(instant.timestamp()).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}

/// Converts from the Kubernetes form, to the second; a time that chrono cannot represent becomes the Unix epoch.
#[must_use]
pub fn from_kubernetes(time: &Time) -> DateTime<Utc> {
    DateTime::from_timestamp(time.0.as_second(), 0).unwrap_or(DateTime::UNIX_EPOCH)
}

/// Truncates a time to whole seconds, so that a comparison with a value of the API server succeeds.
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
