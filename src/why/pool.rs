//! What is known about one pool, for users: its conditions, its instances, and what was observed of the Node of each.

use capasg_api::{
    ASGMachine, ASGMachinePool, ASGMachinePoolStatus,
    capi::{Machine, NodeState},
    conditions::{self, DELETING},
    time::from_kubernetes,
};
use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;

/// What is known about one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolWhy {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its AWS region.
    pub region: String,
    /// The AWS account of its group, once it has one.
    pub account: Option<String>,
    /// Its `MachinePool`.
    pub machine_pool: Option<String>,
    /// Its Cluster.
    pub cluster: Option<String>,
    /// Its instance profile.
    pub instance_profile: Option<String>,
    /// How long an instance may have no ready Node, in seconds; 0 is no limit.
    pub node_startup_timeout_seconds: i32,
    /// Its status.
    pub status: ASGMachinePoolStatus,
    /// Its instances by ID.
    pub instances: Vec<InstanceWhy>,
    /// The time of the question.
    pub now: DateTime<Utc>,
}

/// What is known about one instance.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceWhy {
    /// The instance ID.
    pub id: String,
    /// What its Node has as `spec.providerID`.
    pub provider_id: String,
    /// Its type, zone, lifecycle state and health, as far as they are reported.
    pub reported: Vec<String>,
    /// When it was launched.
    pub launched_at: Option<DateTime<Utc>>,
    /// Its Machine; `None` before core created it.
    pub machine: Option<MachineWhy>,
}

/// What core reports about the Machine of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineWhy {
    /// The name of the Machine.
    pub name: String,
    /// The name of its Node, once it has joined.
    pub node: Option<String>,
    /// The state of the Node.
    pub state: NodeState,
    /// The conditions that explain it.
    pub conditions: Vec<Condition>,
    /// The condition `Deleting` while the Machine is being deleted: what the drain waits for.
    pub deleting: Option<Condition>,
}

/// The conditions of a Machine that explain the state of its Node.
const OF_NODE: [&str; 4] = ["NodeReady", "NodeHealthy", "InfrastructureReady", "HealthCheckSucceeded"];

impl PoolWhy {
    /// Joins what was read.
    pub fn new(
        pool: &ASGMachinePool,
        machine_pool: Option<String>,
        cluster: Option<String>,
        asg_machines: &[ASGMachine],
        machines: &[Machine],
        now: DateTime<Utc>,
    ) -> Self {
        let instance = |own: &ASGMachine| {
            let machine = machines.iter().find(|one| one.spec.infrastructure_ref.name == own.name_any());
            InstanceWhy::new(own, machine)
        };
        let mut instances: Vec<InstanceWhy> = asg_machines.iter().map(instance).collect();
        instances.sort_by(|a, b| a.id.cmp(&b.id));
        Self {
            namespace: pool.namespace().unwrap_or_default(),
            name: pool.name_any(),
            region: pool.spec.region.clone(),
            account: pool.spec.provider_id.as_deref().and_then(account_of).map(str::to_owned),
            machine_pool,
            cluster,
            instance_profile: pool.spec.machine.iam_instance_profile.clone(),
            node_startup_timeout_seconds: pool.spec.node_startup_timeout_seconds(),
            status: pool.status.clone().unwrap_or_default(),
            instances,
            now,
        }
    }
}

/// The account in the ARN of a group.
fn account_of(arn: &str) -> Option<&str> {
    arn.split(':').nth(4).filter(|account| !account.is_empty())
}

impl InstanceWhy {
    fn new(own: &ASGMachine, machine: Option<&Machine>) -> Self {
        let status = own.status.clone().unwrap_or_default();
        let reported =
            [status.instance_type, status.failure_domain, status.lifecycle_state, status.health_status];
        Self {
            id: own.spec.instance_id.clone(),
            provider_id: own.spec.provider_id.clone(),
            reported: reported.into_iter().flatten().collect(),
            launched_at: status.launch_time.or(own.metadata.creation_timestamp.as_ref().map(from_kubernetes)),
            machine: machine.map(MachineWhy::new),
        }
    }
}

impl MachineWhy {
    fn new(machine: &Machine) -> Self {
        let state = machine.node_report().state;
        let all = machine.conditions();
        let explains = |type_: &&str| conditions::get(all, type_).filter(|found| found.status != "True");
        Self {
            name: machine.name_any(),
            node: machine.node_name().map(str::to_owned),
            state,
            conditions: OF_NODE.iter().filter_map(explains).cloned().collect(),
            deleting: conditions::get(all, DELETING).filter(|found| found.status == "True").cloned(),
        }
    }
}
