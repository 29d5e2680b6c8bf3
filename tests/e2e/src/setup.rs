//! What a test starts with: its cluster's control plane, and its manager.

use capasg_environment::Scenario;

/// The name of each test's cluster.
pub const CLUSTER: &str = "prod";

/// What a workload cluster's control plane is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Control {
    /// A stub in front of a real API server that all tests share: there within a second or two.
    #[default]
    Stub,
    /// A real control plane in memory, with kubeadm's bootstrap data: there after about 45 s.
    InMemory,
    /// There is no cluster yet.
    None,
}

/// What a test starts with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The cluster.
    pub control: Control,
    /// Whether a manager runs from the start.
    pub manager: bool,
    /// More flags for the manager.
    pub args: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { control: Control::Stub, manager: true, args: Vec::new() }
    }
}

impl Setup {
    /// With kubeadm's own bootstrap data.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { control: Control::InMemory, ..Self::default() }
    }

    /// Without a cluster, for tests that make their own.
    #[must_use]
    pub fn bare() -> Self {
        Self { control: Control::None, ..Self::default() }
    }

    /// One more flag for the manager.
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Without a manager of ours at first.
    #[must_use]
    pub fn without_manager(mut self) -> Self {
        self.manager = false;
        self
    }
}

/// What lets a machine join, and what only the machine may see.
pub(crate) fn marker(scenario: &Scenario) -> String {
    format!("canary-of-{}-0451", scenario.namespace)
}
