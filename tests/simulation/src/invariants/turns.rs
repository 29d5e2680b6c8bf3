//! Whose turn it is: several reconciles may be under way, each of which decided by what the caches showed when it began.

use capasg_controllers::ObjectKey;
use capasg_fake_aws::What;

use super::seen::turns::Turn;
use super::state::{Inner, Invariants};

impl Inner {
    /// The reconcile of this pool goes on: what it does is measured by what its caches showed when it began.
    pub(super) fn turn_to(&mut self, pool: &ObjectKey) {
        if self.turns.now.as_ref() == Some(pool) {
            return;
        }
        let next = self.turns.others.remove(pool).unwrap_or_default();
        let begun = std::mem::replace(&mut self.begun, next.begun);
        let paused = std::mem::replace(&mut self.paused.reconciled, next.paused);
        if let Some(last) = self.turns.now.replace(pool.clone()) {
            self.turns.others.insert(last, Turn { begun, paused });
        }
    }

    /// Whose turn it is.
    pub(super) fn turn(&self) -> Option<ObjectKey> {
        self.turns.now.clone()
    }

    /// What happens to a group is measured by what the last reconcile of its pool knew.
    pub(super) fn turn_to_group_of(&mut self, what: &What) {
        let group = match what {
            What::Changed(change) => change.group.as_ref(),
            What::Ending { group, .. } => Some(group),
            What::ShutDown(end) => end.group.as_ref(),
            _ => None,
        };
        self.turn_to_pool_of(group.map(String::as_str));
    }

    /// The same for a write to a group: a process that dies sends what other reconciles have begun, too.
    pub(super) fn turn_to_pool_of(&mut self, group: Option<&str>) {
        let pool = group.and_then(|group| self.pools.iter().find(|pool| pool.group == group));
        if let Some(pool) = pool.map(|pool| pool.key.clone())
            && self.turns.others.contains_key(&pool)
        {
            self.turn_to(&pool);
        }
    }
}

impl Invariants {
    /// The reconcile of a pool goes on.
    pub(crate) fn turns_to(&self, pool: &ObjectKey) {
        self.inner().turn_to(pool);
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn each_reconcile_keeps_what_it_knew_when_it_began() {
        let mut inner = Inner::default();
        let [one, other] = ["one", "other"].map(|name| ObjectKey::new("default", name));
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        inner.turn_to(&one);
        inner.begun.at = at(1);
        inner.paused.reconciled = Some(one.clone());
        inner.turn_to(&other);
        assert_eq!((inner.begun.at, inner.paused.reconciled.clone()), (DateTime::default(), None));
        inner.begun.at = at(2);
        inner.turn_to(&one);
        assert_eq!((inner.begun.at, inner.paused.reconciled.clone()), (at(1), Some(one.clone())));
        inner.turn_to(&one);
        assert_eq!(inner.begun.at, at(1));
        inner.turn_to(&other);
        assert_eq!(inner.begun.at, at(2));
    }
}
