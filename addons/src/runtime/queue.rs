//! When each object is reconciled next, and how many are reconciled at the same time.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::Item;
use crate::controller::ObjectKey;

/// How many objects are reconciled at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of each kind.
    pub of_kind: usize,
    /// `HelmReleaseProxies` of one Cluster, so that a Cluster that does not respond does not occupy all workers.
    pub of_cluster: usize,
    /// Of each kind in one namespace, so that the Clusters of one tenant do not occupy all workers.
    pub of_namespace: usize,
}

/// A reconcile in progress.
#[derive(Debug)]
struct Running {
    /// The Cluster of a release.
    cluster: Option<ObjectKey>,
    /// When the object is due again, if it was woken meanwhile.
    again: Option<Instant>,
}

/// Objects that wait and objects that are reconciled. An object is in it once.
#[derive(Debug)]
pub(super) struct Queue {
    limits: Limits,
    due: BTreeMap<Item, Instant>,
    by_time: BTreeSet<(Instant, Item)>,
    running: BTreeMap<Item, Running>,
}

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, due: BTreeMap::new(), by_time: BTreeSet::new(), running: BTreeMap::new() }
    }

    /// The object is due at this time, or before if it already is. While it is reconciled, it waits for the end.
    pub(super) fn wake(&mut self, item: Item, at: Instant) {
        if let Some(running) = self.running.get_mut(&item) {
            running.again = Some(running.again.map_or(at, |again| again.min(at)));
            return;
        }
        if let Some(known) = self.due.get(&item).copied() {
            if known <= at {
                return;
            }
            self.by_time.remove(&(known, item.clone()));
        }
        self.due.insert(item.clone(), at);
        self.by_time.insert((at, item));
    }

    /// The next object to reconcile now, if there is one within the limits. `cluster_of` is the Cluster of a release.
    pub(super) fn take(
        &mut self,
        now: Instant,
        cluster_of: impl Fn(&ObjectKey) -> Option<ObjectKey>,
    ) -> Option<Item> {
        let charts = self.running.keys().filter(|item| item.is_chart()).count();
        let is_free = [charts, self.running.len() - charts].map(|running| running < self.limits.of_kind);
        if is_free == [false, false] {
            return None;
        }
        let due = self.by_time.iter().take_while(|(at, _)| *at <= now);
        let found =
            due.into_iter().filter(|(_, item)| self.has_room(item)).find_map(|(at, item)| match item {
                Item::Chart(_) => is_free[0].then(|| (*at, item.clone(), None)),
                Item::Release(key) => {
                    let cluster = cluster_of(key);
                    let fits = is_free[1] && self.of_cluster(cluster.as_ref()) < self.limits.of_cluster;
                    fits.then(|| (*at, item.clone(), cluster))
                }
            });
        let (at, item, cluster) = found?;
        self.due.remove(&item);
        self.by_time.remove(&(at, item.clone()));
        self.running.insert(item.clone(), Running { cluster, again: None });
        Some(item)
    }

    /// The reconcile of an object has ended; it is due again at this time, unless it was woken meanwhile.
    pub(super) fn finished(&mut self, item: &Item, next: Option<Instant>) {
        let Some(running) = self.running.remove(item) else { return };
        for at in [running.again, next].into_iter().flatten() {
            self.wake(item.clone(), at);
        }
    }

    /// When the next object becomes due. Those that are due already wait for the end of another one.
    pub(super) fn next_after(&self, now: Instant) -> Option<Instant> {
        self.by_time.iter().map(|(at, _)| *at).find(|at| *at > now)
    }

    /// Whether the namespace of an object has a worker left.
    fn has_room(&self, item: &Item) -> bool {
        let alike = |other: &&Item| {
            other.is_chart() == item.is_chart() && other.key().namespace == item.key().namespace
        };
        self.running.keys().filter(alike).count() < self.limits.of_namespace
    }

    fn of_cluster(&self, cluster: Option<&ObjectKey>) -> usize {
        self.running
            .values()
            .filter(|running| cluster.is_some() && running.cluster.as_ref() == cluster)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: Limits = Limits { of_kind: 3, of_cluster: 2, of_namespace: 3 };

    fn release(name: &str) -> Item {
        Item::Release(ObjectKey::new("teams", name))
    }

    fn chart(name: &str) -> Item {
        Item::Chart(ObjectKey::new("teams", name))
    }

    /// The Cluster of `a-1` is `a`.
    fn cluster_of(key: &ObjectKey) -> Option<ObjectKey> {
        key.name.split_once('-').map(|(cluster, _)| ObjectKey::new("teams", cluster))
    }

    #[test]
    fn an_object_has_one_worker_and_is_reconciled_again_if_it_is_woken_meanwhile() {
        let (mut queue, now) = (Queue::new(LIMITS), Instant::now());
        queue.wake(release("a-1"), now);
        queue.wake(release("a-1"), now);
        assert_eq!(queue.take(now, cluster_of), Some(release("a-1")));
        assert_eq!(queue.take(now, cluster_of), None);
        queue.wake(release("a-1"), now);
        assert_eq!(queue.take(now, cluster_of), None, "it is being reconciled");
        queue.finished(&release("a-1"), Some(now + Duration::from_mins(10)));
        assert_eq!(queue.take(now, cluster_of), Some(release("a-1")));
        queue.finished(&release("a-1"), None);
        assert_eq!((queue.take(now, cluster_of), queue.next_after(now)), (None, None));
    }

    #[test]
    fn the_earliest_time_counts() {
        let (mut queue, now) = (Queue::new(LIMITS), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        queue.wake(chart("a"), after(60));
        queue.wake(chart("a"), after(10));
        queue.wake(chart("a"), after(30));
        assert_eq!((queue.take(after(9), cluster_of), queue.next_after(now)), (None, Some(after(10))));
        assert_eq!(queue.take(after(10), cluster_of), Some(chart("a")));
        queue.finished(&chart("a"), None);
        assert_eq!(queue.take(after(60), cluster_of), None);
    }

    #[test]
    fn releases_of_one_cluster_leave_workers_to_others() {
        let (mut queue, now) = (Queue::new(LIMITS), Instant::now());
        for name in ["a-1", "a-2", "a-3", "b-1", "c-1"] {
            queue.wake(release(name), now);
        }
        let taken: Vec<_> = std::iter::from_fn(|| queue.take(now, cluster_of)).collect();
        assert_eq!(taken, [release("a-1"), release("a-2"), release("b-1")]);
        assert_eq!(queue.next_after(now), None, "those that are due wait for the end of another one");
        queue.finished(&release("b-1"), None);
        assert_eq!(queue.take(now, cluster_of), Some(release("c-1")));
        queue.finished(&release("a-1"), None);
        assert_eq!(queue.take(now, cluster_of), Some(release("a-3")));
    }

    #[test]
    fn objects_of_one_namespace_leave_workers_to_others() {
        let limits = Limits { of_kind: 3, of_cluster: 2, of_namespace: 2 };
        let (mut queue, now) = (Queue::new(limits), Instant::now());
        let other =
            [Item::Release(ObjectKey::new("other", "d-1")), Item::Chart(ObjectKey::new("other", "cni"))];
        for item in ["a-1", "b-1", "c-1"]
            .map(release)
            .into_iter()
            .chain(["x", "y", "z"].map(chart))
            .chain(other.clone())
        {
            queue.wake(item, now);
        }
        let taken: BTreeSet<_> = std::iter::from_fn(|| queue.take(now, cluster_of)).collect();
        let expected = [release("a-1"), release("b-1"), chart("x"), chart("y")].into_iter().chain(other);
        assert_eq!(taken, expected.collect());
        queue.finished(&release("a-1"), None);
        assert_eq!(queue.take(now, cluster_of), Some(release("c-1")));
    }

    #[test]
    fn each_kind_has_workers_of_its_own() {
        let (mut queue, now) = (Queue::new(LIMITS), Instant::now());
        for name in ["a-1", "b-1", "c-1", "d-1"] {
            queue.wake(release(name), now);
        }
        for _ in 0..3 {
            assert!(queue.take(now, cluster_of).is_some());
        }
        queue.wake(chart("cni"), now);
        assert_eq!(queue.take(now, cluster_of), Some(chart("cni")));
        assert_eq!(queue.take(now, cluster_of), None);
    }
}
