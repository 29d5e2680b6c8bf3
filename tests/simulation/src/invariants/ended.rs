//! What is drained ends, and what runs does not go as terminated.

use std::sync::Arc;

use capasg_api::{ASGMachine, capi::pause_state, names::machine_name};
use capasg_cloud::Write;
use capasg_controllers::ObjectKey;
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::state::{Inner, Invariants};
use crate::Pool;

/// What is drained is terminated within this time: a termination is repeated after a minute, and one that AWS rejects
/// together with others is repeated alone.
const ENDED: TimeDelta = TimeDelta::minutes(5);

/// The reads that come before a termination.
const NEEDED: [&str; 1] = ["DescribeAutoScalingGroups"];

impl Invariants {
    /// Keeps which instances a call for terminations failed for. AWS rejects a call as a whole and need not name the
    /// instance that it rejects it for, so that one rejection of several instances excuses each of them, once. What AWS rejects
    /// alone is repeated after 30 s, and after 15 min at most (docs/contributors/architecture.md, "From a change to a call").
    pub(super) fn note_terminations(inner: &mut Inner, now: DateTime<Utc>, write: &Write) {
        let Write::TerminateInstances { instances, .. } = write else { return };
        let Some(is_rejected) = inner.ended.failed.take() else { return };
        for id in instances {
            let is_excuse = instances.len() == 1 || !is_rejected;
            if is_excuse || inner.ended.rejected_together.insert(id.clone()) {
                let rejected = inner.ended.rejected.entry(id.clone()).or_default();
                *rejected += u32::from(is_rejected && instances.len() == 1);
                let wait = rejected.checked_sub(1).map_or(0, |before| (30 << before.min(8)).min(15 * 60));
                inner.ended.since.insert(id.clone(), now + TimeDelta::seconds(wait));
            }
        }
    }

    /// An instance whose ASGMachine is being deleted, so that its Node is drained, is terminated within minutes, whatever
    /// AWS answers about others.
    ///
    /// Exempt: a pool that is paused or goes, a paused ASGMachine, and failures of the call for this instance, of the read
    /// before it, or of the API server, which records each request.
    pub(super) fn the_drained_end(&self, inner: &mut Inner, now: DateTime<Utc>) {
        for pool in inner.pools.clone() {
            let waiting = self.waiting(&pool);
            let own = format!("{}-", pool.key.name);
            inner.ended.since.retain(|id, _| waiting.contains(id));
            for id in waiting {
                let since = *inner.ended.since.entry(id.clone()).or_insert(now);
                let since = since.max(inner.failures.over(&NEEDED).unwrap_or(since));
                let since = since.max(self.api.state().waits_for_lost.unwrap_or(since));
                if now - since > ENDED {
                    inner.ended.since.insert(id.clone(), now);
                    inner.breaks(now, "the_drained_end", format!("{own}{id} is drained since {since}"));
                }
            }
        }
    }

    /// The instances that a group counts and whose ASGMachines the caches show being deleted.
    fn waiting(&self, pool: &Pool) -> Vec<String> {
        let is_going = |own: &Arc<ASGMachine>| own.metadata.deletion_timestamp.is_some();
        if !self.api.state().asg_machines.all_cached().any(is_going) || !self.is_reconciled(pool) {
            return Vec::new();
        }
        let api = self.api.state();
        let is_drained = |id: &String| {
            let key = pool.key.sibling(machine_name(&pool.key.name, id));
            [api.asg_machines.cached(&key), api.asg_machines.get(&key)].iter().all(|own| {
                own.as_ref().is_some_and(|own| {
                    own.metadata.deletion_timestamp.is_some()
                        && !pause_state(None, own.annotations()).is_paused()
                })
            })
        };
        self.simulator.counted(&self.at(&pool.group), &pool.group).into_iter().filter(is_drained).collect()
    }

    /// A Machine is deleted because its instance terminates or is terminated only if that is so. One that a user stopped
    /// may be started again.
    ///
    /// Exempt: an instance of which EC2 sent a Spot interruption notice, and one whose ASGMachine a user deleted.
    pub(super) fn what_runs_is_not_terminated(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        machine: &ObjectKey,
    ) {
        let Some(id) = machine.name.rfind("-i-").and_then(|at| machine.name.get(at + 1..)) else { return };
        let known = inner.ended.ending.contains(id)
            || inner.exempt.is_interrupted(id)
            || inner.exempt.is_deleted_by_hand(&machine.name);
        if known {
            return;
        }
        let mut instances = self.dump().into_iter().flat_map(|dump| dump.instances);
        if let Some(own) = instances.find(|own| own.id == id)
            && !["shutting-down", "terminated"].contains(&own.state.as_str())
        {
            let what = format!("{} was deleted as terminated: {id} is {}", machine.name, own.state);
            inner.breaks(now, "what_runs_is_not_terminated", what);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_rejection_of_several_excuses_each_once_and_one_of_its_own_always() {
        let mut inner = Inner::default();
        let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let mut fail = |ids: &[&str], is_rejected, seconds| {
            let instances: BTreeSet<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            let write = Write::TerminateInstances { group: "g".to_owned(), instances, decrement: false };
            inner.ended.failed = Some(is_rejected);
            Invariants::note_terminations(&mut inner, at(seconds), &write);
            inner.ended.since.get("i-1").copied()
        };
        assert_eq!(fail(&["i-1", "i-2"], true, 1), Some(at(1)));
        assert_eq!(fail(&["i-1", "i-2"], true, 2), Some(at(1)), "it is to be taken apart");
        assert_eq!(fail(&["i-1", "i-2"], false, 3), Some(at(3)), "AWS failed");
        assert_eq!(fail(&["i-1"], true, 4), Some(at(34)), "AWS rejects this one");
        assert_eq!(fail(&["i-1"], true, 40), Some(at(100)), "and repeatedly");
    }
}
