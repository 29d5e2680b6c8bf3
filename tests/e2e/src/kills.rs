//! Flows that come through although the manager dies (kill -9) at three random moments on the way.
//!
//! A moment is told by what was done, never by the clock: so many changes of the pool's objects and calls that change
//! something in AWS since the manager was last ready, and maybe in the middle of the next such call, so that it has its
//! effect and nobody remembers it.

use std::{
    fmt,
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail};
use capasg_fake_aws::{Effect, Fault};
use futures::StreamExt as _;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    core::PartialObjectMeta,
    runtime::{
        watcher,
        watcher::{Config, Event},
    },
};
use tokio::task::JoinSet;

use crate::Rig;

/// How often the manager dies in a flow.
pub const KILLS: usize = 3;

/// The variable that sets the seed: the moments are then those that an earlier run has printed.
pub const SEED: &str = "CAPASG_KILL_SEED";

/// How long answers of AWS are held back while the manager is to die in the middle of a call.
const HELD: Duration = Duration::from_millis(600);

/// How often progress is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// When the manager dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    /// After so many changes since it was last ready.
    changes: u64,
    /// Then in the middle of its next call that changes something in AWS, should one come within as many changes.
    in_call: bool,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} changes", self.changes)?;
        if self.in_call { f.write_str(" in the next call") } else { Ok(()) }
    }
}

/// Random numbers that a seed repeats.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Those of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next one, of the numbers from 0 to 1.
    pub fn share(&mut self) -> f64 {
        f64::from(u32::try_from(self.draw() >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
    }
}

/// The moments of a seed; none is later than `within` changes after the one before.
fn moments(seed: u64, within: u64) -> [Moment; KILLS] {
    let mut random = Random::new(seed);
    std::array::from_fn(|_| Moment {
        changes: 1 + random.draw() % within.max(1),
        in_call: random.draw().is_multiple_of(2),
    })
}

/// The seed of this run: [`SEED`], or another one each time.
///
/// # Errors
/// When the variable is no number.
pub fn seed() -> Result<u64> {
    match std::env::var(SEED) {
        Ok(seed) => seed.parse().with_context(|| format!("{SEED}={seed} is no number")),
        Err(_) => Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?),
    }
}

/// Counts what changes in the test's namespace and in its region, until it is dropped.
struct Progress<'a> {
    rig: &'a Rig<'a>,
    objects: Arc<AtomicU64>,
    _watches: JoinSet<()>,
}

impl<'a> Progress<'a> {
    fn new(rig: &'a Rig<'a>) -> Self {
        let objects = Arc::new(AtomicU64::new(0));
        let mut watches = JoinSet::new();
        let (client, namespace) = (&rig.scenario.client, &rig.scenario.namespace);
        let kind = |group, version, kind, plural| {
            let resource =
                ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
            Api::<PartialObjectMeta<DynamicObject>>::namespaced_with(client.clone(), namespace, &resource)
        };
        let kinds = [
            kind("infrastructure.cluster.x-k8s.io", "v1alpha1", "ASGMachinePool", "asgmachinepools"),
            kind("infrastructure.cluster.x-k8s.io", "v1alpha1", "ASGMachine", "asgmachines"),
            kind("cluster.x-k8s.io", "v1beta2", "Machine", "machines"),
        ];
        for api in kinds {
            let objects = Arc::clone(&objects);
            watches.spawn(async move {
                let mut changes = watcher(api, Config::default()).boxed();
                while let Some(change) = changes.next().await {
                    if matches!(change, Ok(Event::Apply(_) | Event::Delete(_))) {
                        objects.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        Self { rig, objects, _watches: watches }
    }

    fn calls(&self) -> u64 {
        u64::try_from(self.rig.mutations()).unwrap_or(u64::MAX)
    }

    fn changes(&self) -> u64 {
        self.objects.load(Ordering::Relaxed) + self.calls()
    }

    async fn reached(&self, moment: Moment) {
        let begun = self.changes();
        while self.changes() < begun + moment.changes {
            tokio::time::sleep(PAUSE).await;
        }
        if !moment.in_call {
            return;
        }
        let mut held = Fault::new("*", Effect::None).in_region(&self.rig.scenario.region).times(None);
        held.delay_millis = u64::try_from(HELD.as_millis()).unwrap_or(u64::MAX);
        let simulator = self.rig.scenario.simulator();
        simulator.add_fault(held.clone());
        let (calls, changes) = (self.calls(), self.changes());
        while self.calls() == calls && self.changes() < changes + moment.changes {
            tokio::time::sleep(PAUSE).await;
        }
        simulator.remove_fault(&held);
    }
}

impl Rig<'_> {
    /// Carries out `flow` while the manager dies at three random moments and is started again after each.
    ///
    /// `within` says how many changes at most lie between two moments: the flow needs some six times as many to be sure
    /// to come to the last one, however the dice fall. Changes are those of ASGMachinePools, ASGMachines and Machines in
    /// the namespace, and calls that change something in AWS. Seed and moments are printed; [`SEED`] sets the seed.
    ///
    /// # Errors
    /// Those of the flow, a manager that does not become ready again, and a flow that ended before the last moment.
    pub async fn through_kills<T>(
        &self,
        name: &str,
        within: u64,
        flow: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let seed = seed()?;
        let moments = moments(seed, within);
        let told: Vec<_> = moments.iter().map(Moment::to_string).collect();
        let told = format!("{name}: the manager dies {} ({SEED}={seed})", told.join(", then "));
        // Straight to the terminal, also from a test that passes.
        writeln!(std::io::stderr(), "{told}")?;
        let struck = AtomicU64::new(0);
        let progress = Progress::new(self);
        let killer = async {
            for moment in moments {
                progress.reached(moment).await;
                self.kill_manager().await?;
                struck.fetch_add(1, Ordering::Relaxed);
                self.start_manager().await?;
            }
            anyhow::Ok(())
        };
        let (killer, flow) = (std::pin::pin!(killer), std::pin::pin!(flow));
        let outcome = match futures::future::select(killer, flow).await {
            futures::future::Either::Left((deaths, flow)) => match deaths {
                Ok(()) => flow.await,
                Err(error) => Err(error),
            },
            futures::future::Either::Right((outcome, killer)) => {
                let times = struck.load(Ordering::Relaxed);
                match outcome {
                    // The last one died at the end, and its successor is on its way.
                    Ok(value) if times == KILLS as u64 => killer.await.map(|()| value),
                    Ok(_) => {
                        bail!("{told}; but the flow was over after {times} deaths: make `within` smaller")
                    }
                    Err(error) => Err(error),
                }
            }
        };
        outcome.with_context(|| told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_moments_again_and_others_give_others() {
        assert_eq!(moments(7, 10), moments(7, 10));
        assert!((0..20).map(|seed| moments(seed, 10)).any(|other| other != moments(7, 10)));
        let all: Vec<Moment> = (0..200).flat_map(|seed| moments(seed, 10)).collect();
        assert!(all.iter().all(|moment| (1..=10).contains(&moment.changes)));
        assert!(all.iter().any(|moment| moment.in_call) && all.iter().any(|moment| !moment.in_call));
    }
}
