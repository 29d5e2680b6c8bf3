//! When an object whose reconcile failed is reconciled again. Failed operations of Helm have a backoff of their own.

use std::{collections::BTreeMap, time::Duration};

use super::Item;

/// The delay after the first failure; it doubles with each.
const FIRST: Duration = Duration::from_secs(1);
/// The longest delay.
const LONGEST: Duration = Duration::from_mins(2);

/// How often the last reconciles of each object failed.
#[derive(Debug, Default)]
pub(super) struct Backoff(BTreeMap<Item, u32>);

impl Backoff {
    /// The delay after another failure.
    pub(super) fn failed(&mut self, item: &Item) -> Duration {
        let failures = self.0.entry(item.clone()).or_default();
        let delay = FIRST.saturating_mul(1 << (*failures).min(16)).min(LONGEST);
        *failures = failures.saturating_add(1);
        delay
    }

    /// Forgets failures; whether there were any.
    pub(super) fn succeeded(&mut self, item: &Item) -> bool {
        self.0.remove(item).is_some()
    }

    /// How many objects of a controller wait for a retry.
    pub(super) fn count(&self, controller: &str) -> usize {
        self.0.keys().filter(|item| item.controller() == controller).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::ObjectKey;

    #[test]
    fn delays_double_up_to_the_longest_for_each_object() {
        let (one, other) =
            (Item::Chart(ObjectKey::new("teams", "a")), Item::Release(ObjectKey::new("teams", "a")));
        let mut backoff = Backoff::default();
        let delays: Vec<u64> = (0..9).map(|_| backoff.failed(&one).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 120, 120]);
        assert_eq!(backoff.failed(&other), FIRST);
        assert_eq!(backoff.count("helmchartproxy"), 1);
        assert!(backoff.succeeded(&one) && !backoff.succeeded(&one));
        assert_eq!(backoff.failed(&one), FIRST);
    }
}
