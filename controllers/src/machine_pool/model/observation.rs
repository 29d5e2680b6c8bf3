//! The result of observe: the state that a pool is in, with the facts that this state requires.

use capasg_api::{ASGMachinePool, conditions::Finding};
use capasg_cloud::CloudError;
use chrono::TimeDelta;

use crate::kubernetes::KubeError;
use crate::machine_pool::model::memory::Registration;
use crate::machine_pool::model::{
    BootstrapDigest, Desired, Machines, NamedImage, Observed, PoolObjects, References, ReportReads,
};

/// One observation of a pool.
#[derive(Debug)]
pub struct Observation {
    /// The Kubernetes objects of the pool.
    pub objects: PoolObjects,
    /// The state of the pool, with the facts that decisions require.
    pub state: PoolState,
    /// The Machines and ASGMachines, cached or listed live.
    pub machines: Machines,
    /// What the references of the spec resolved to.
    pub references: References,
    /// What is missing, one finding for each condition.
    pub findings: Vec<Finding>,
    /// The bootstrap data, as far as they were read.
    pub bootstrap: Option<BootstrapDigest>,
    /// The image that the spec's parameter names, as last read.
    pub named_image: Option<NamedImage>,
    /// What AWS answered to the reads that only report requires.
    pub reads: ReportReads,
    /// What the pool is registered for.
    pub registered: Option<Registration>,
    /// Whether the pool is not registered any more.
    pub unregistered: bool,
    /// The reads that failed, so that something is unknown. They are reported and retried.
    pub failed_reads: Vec<CloudError>,
    /// The reads that failed although decide requires them: what depends on them was not decided.
    pub failed_fetches: Vec<CloudError>,
    /// Why Machines and ASGMachines could not be listed although decide requires it.
    pub unlisted: Option<KubeError>,
    /// Whether AWS was unreachable when the observation began.
    pub unreachable: bool,
}

/// The state of a pool, which determines what may be done.
#[derive(Debug)]
pub enum PoolState {
    /// The pool or its Cluster is paused: nothing changes in AWS (F1). With facts while `clusterctl move` is blocked
    /// (F5).
    Paused(Option<Box<Facts>>),
    /// A prerequisite is missing, which `findings` names. After the time, if any, the pool is requeued.
    Waiting(Option<TimeDelta>),
    /// The finalizer or the owner ID is missing (C6, C8). With the owner ID to set.
    Unclaimed(String),
    /// The pool is active: not paused, not being deleted, prerequisites met.
    Running(Box<Facts>),
    /// No MachinePool refers to the pool (any more), which has a group. What runs is drained and released when it
    /// terminates; nothing else changes.
    Unreferenced(Box<Facts>),
    /// The pool is being deleted.
    Deleting(Box<Facts>),
    /// The pool is being deleted, and nothing of it was ever created in AWS (E3).
    NeverCreated,
    /// The pool is being deleted, and has our finalizer no longer.
    Released,
}

/// The desired state and the facts that it is compared with.
#[derive(Debug)]
pub struct Facts {
    /// The desired state.
    pub desired: Desired,
    /// The facts.
    pub observed: Observed,
}

impl Observation {
    /// An observation in a state without further facts.
    #[must_use]
    pub fn of(objects: &PoolObjects, state: PoolState) -> Self {
        Self {
            objects: objects.clone(),
            state,
            machines: Machines::default(),
            references: References::default(),
            findings: Vec::new(),
            bootstrap: None,
            named_image: None,
            reads: ReportReads::default(),
            registered: None,
            unregistered: false,
            failed_reads: Vec::new(),
            failed_fetches: Vec::new(),
            unlisted: None,
            unreachable: false,
        }
    }

    /// An observation of a pool that waits for what the finding names.
    #[must_use]
    pub fn waiting(objects: &PoolObjects, finding: Finding, requeue_after: Option<TimeDelta>) -> Self {
        let state = PoolState::Waiting(requeue_after);
        Self { findings: vec![finding], ..Self::of(objects, state) }
    }

    /// The reads that failed, of whatever kind. What does not need them is decided, carried out and requeued as usual.
    pub fn failed(&self) -> impl Iterator<Item = &CloudError> {
        self.failed_reads.iter().chain(&self.failed_fetches)
    }

    /// The failed read to report: one that no user has to correct, if there is one, since it concerns AWS itself.
    #[must_use]
    pub fn reported_failure(&self) -> Option<&CloudError> {
        self.failed().min_by_key(|error| error.class.is_permanent())
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &ASGMachinePool {
        &self.objects.pool
    }

    /// Whether the pool or its Cluster is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        matches!(self.state, PoolState::Paused(_))
    }

    /// The desired state and the facts, in states that have them.
    #[must_use]
    pub fn facts(&self) -> Option<&Facts> {
        match &self.state {
            PoolState::Paused(facts) => facts.as_deref(),
            PoolState::Running(facts) | PoolState::Unreferenced(facts) | PoolState::Deleting(facts) => {
                Some(facts)
            }
            PoolState::Waiting(_)
            | PoolState::Unclaimed(_)
            | PoolState::NeverCreated
            | PoolState::Released => None,
        }
    }
}
