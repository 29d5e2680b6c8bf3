//! What a run begins with.

use std::sync::Arc;

use capasg_cloud::{Cadence, CallObserver};
use capasg_controllers::PoolObserver;
use capasg_fake_aws::{DEFAULT_ACCOUNT, Settings};

use super::pool::REGION;
use crate::Latency;

/// What a run begins with.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, each on or off")]
pub struct Setup {
    /// Decides every order and delay.
    pub seed: u64,
    /// Where the looks at AWS look.
    pub region: String,
    /// The account of the pools. Identities give access to another one than that of the process.
    pub account: String,
    /// The simulator's settings.
    pub settings: Settings,
    /// The inventory's times.
    pub cadence: Cadence,
    /// How far caches may be behind, in milliseconds.
    pub lag_millis: u64,
    /// In how many of a hundred calls of a reconcile core acts in between, where calls take no time.
    pub meanwhile_percent: u64,
    /// How long calls take; without it a reconcile runs whole at one instant.
    pub latency: Option<Latency>,
    /// How far the clock of the controllers' host is off from that of AWS and of the API server, in seconds.
    pub clock_off_seconds: i64,
    /// Whether there is a queue to which all events come.
    pub events: bool,
    /// Whether rules are checked after every action.
    pub watch: bool,
    /// Whether every call is decided by the policy of the documentation, and must be allowed.
    pub policy: bool,
    /// Whether the rules of [`crate::Invariants`] are checked at every step.
    pub invariants: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            region: REGION.to_owned(),
            account: DEFAULT_ACCOUNT.to_owned(),
            settings: Settings::default(),
            cadence: Cadence::default(),
            lag_millis: 20,
            meanwhile_percent: 20,
            latency: None,
            clock_off_seconds: 0,
            events: false,
            watch: true,
            policy: true,
            invariants: true,
        }
    }
}

impl Setup {
    /// The default run of a seed.
    #[must_use]
    pub fn seed(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }
}

/// What receives calls to AWS and what happens to pools.
pub struct Observers {
    /// Receives calls.
    pub calls: Arc<dyn CallObserver>,
    /// Receives what happens to pools.
    pub pools: Arc<dyn PoolObserver>,
}

impl Default for Observers {
    fn default() -> Self {
        Self {
            calls: Arc::new(capasg_cloud::NoObserver),
            pools: Arc::new(capasg_controllers::observer::NoObserver),
        }
    }
}
