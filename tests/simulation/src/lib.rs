//! A model of the API server and of core Cluster API, and the simulator as cloud port, for tests in virtual time.
//!
//! [`World`] holds them together: the controllers' reconcile functions run through their two ports under a seeded
//! scheduler, without kube runtime, SDK, sockets or real clock, so that the same seed gives the same run. A world lives
//! in a tokio runtime whose clock is paused ([`run`]): whoever sleeps moves virtual time.

mod api_server;
mod capi;
mod clock;
mod cloud;
mod invariants;
mod journal;
mod latency;
mod random;
pub mod simulation;
mod world;

pub use api_server::{ApiServer, Change, Kind, Lag, Objects};
pub use capi::{CANARY, Core, Drain};
pub use clock::{VirtualClock, run};
pub use cloud::SimulatedCloud;
pub use invariants::{Invariants, Line, Trace, Violation, exceeded_limits};
pub(crate) use invariants::{is_attached, within_limits};
pub use journal::{Entry, Journal, Port};
pub use latency::Latency;
pub use random::Random;
pub use world::{Moved, Observers, Pair, Pool, Setup, World, pool_spec};

/// Half of what a run costs with the system's allocator is memory that comes and goes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
