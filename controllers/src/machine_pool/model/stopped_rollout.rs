//! The value of the annotation `rollout-stopped`: the revision that is not rolled out any further, and whether another actor
//! cancelled its instance refresh.

/// How the value ends if another actor cancelled the instance refresh.
const CANCELLED: &str = "/Cancelled";

/// The value for a revision.
#[must_use]
pub fn value(revision: String, cancelled: bool) -> String {
    if cancelled { revision + CANCELLED } else { revision }
}

/// Whether the value stops the rollout of a revision.
#[must_use]
pub fn stops(value: &str, revision: &str) -> bool {
    value.strip_suffix(CANCELLED).unwrap_or(value) == revision
}

/// Whether another actor cancelled the instance refresh.
#[must_use]
pub fn is_cancellation(value: &str) -> bool {
    value.ends_with(CANCELLED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stops_its_revision_alone() {
        for cancelled in [false, true] {
            let value = value("r1".into(), cancelled);
            assert!(stops(&value, "r1") && !stops(&value, "r2"));
            assert_eq!(is_cancellation(&value), cancelled);
        }
    }
}
