//! What `NodesReady` reports, by example.

use std::sync::Arc;

use capasg_api::capi::{ClusterInitialization, ClusterSpec, ClusterStatus, NodeReport};
use capasg_cloud::LifecycleState;

use super::*;
use crate::machine_pool::decide::testing::{Stage, now};
use crate::machine_pool::model::PoolState;
use crate::machine_pool::model::memory::node_startups::NodeStartups;
use crate::machine_pool::model::{Facts, Outdated, OutdatedReason};

const KEY: &str = "spec.nodeStartupTimeoutSeconds";

/// Core reports this state of an instance since some minutes ago.
fn report(stage: &mut Stage, id: &str, node: NodeState, minutes: i64) {
    let since = now() - TimeDelta::minutes(minutes);
    let machine = stage.instance(id).machine.as_mut().unwrap();
    machine.node = NodeReport { state: node, since: Some(since) };
    machine.has_node = !matches!(node, NodeState::NotJoined);
    if node == NodeState::NotJoined {
        machine.node.since = None;
        machine.created_at = Some(since);
    }
}

fn timeout(stage: &mut Stage, seconds: i32) {
    let mut pool = (*stage.objects.pool).clone();
    pool.spec.node_startup_timeout_seconds = Some(seconds);
    stage.objects.pool = Arc::new(pool);
}

fn nodes_with(stage: &Stage, plan: &Plan) -> Nodes {
    Nodes::of(&stage.objects, &stage.desired, &stage.observed, plan, &stage.memory, now())
}

fn nodes(stage: &Stage) -> Nodes {
    nodes_with(stage, &Plan::default())
}

fn finding(stage: &Stage) -> (Status, &'static str, String) {
    let found = nodes(stage).finding(&stage.objects);
    (found.status, found.reason, found.message.into_owned())
}

/// Instance i-1 of three has a state for some minutes.
fn one(node: NodeState, minutes: i64) -> (Status, &'static str, String) {
    let mut stage = Stage::new(3);
    report(&mut stage, "i-1", node, minutes);
    finding(&stage)
}

#[test]
fn a_state_is_overdue_after_the_timeout_and_not_before() {
    use NodeState::{Deleted, MachineNotReady, NotJoined, NotReady, Ready};
    assert_eq!(one(Ready, 99), (Status::True, "NodesReady", String::new()));
    for (state, reason, advice) in [
        (NotJoined, "NodeStartupTimeout", "security groups"),
        (Deleted, "NodeDeleted", "Restart the kubelet"),
        (NotReady, "NodeNotReady", "network plugin"),
        (MachineNotReady, "MachineNotReady", "condition Ready of the Machine"),
    ] {
        let (status, found, message) = one(state, 9);
        assert_eq!((status, found), (Status::False, "WaitingForNodes"), "{state:?}");
        assert_eq!(message, "waiting for the Nodes of 1 of 3 instances in service to be ready: i-1");
        let (status, found, message) = one(state, 10);
        assert_eq!((status, found), (Status::False, reason), "{state:?}");
        let begins = format!("1 of 3 instances in service had no ready Node for 600 s ({KEY}).");
        assert!(message.starts_with(&begins) && message.contains("i-1"), "{message}");
        assert!(message.contains(advice), "{message}");
        assert!(message.ends_with("capasg why asgmachinepool/p --namespace ns"), "{message}");
    }
}

#[test]
fn what_core_does_not_know_is_unknown_and_never_lost() {
    for minutes in [0, 9, 99] {
        let (status, reason, message) = one(NodeState::Unknown, minutes);
        assert_eq!((status, reason), (Status::Unknown, "NodesReadyUnknown"), "{minutes}");
        assert!(message.contains("1 of 3 instances in service (i-1)"), "{message}");
    }
    // What is known to be wrong stays so.
    let mut stage = Stage::new(3);
    report(&mut stage, "i-1", NodeState::NotJoined, 11);
    report(&mut stage, "i-2", NodeState::Unknown, 11);
    assert_eq!(finding(&stage).1, "NodeStartupTimeout");
}

#[test]
fn a_new_instance_without_a_machine_is_waited_for_and_then_unknown() {
    let mut stage = Stage::new(2);
    let instance = stage.instance("i-1");
    instance.machine = None;
    instance.asg_machine.as_mut().unwrap().created_at = Some(now() - TimeDelta::minutes(9));
    assert_eq!(finding(&stage).1, "WaitingForNodes");
    stage.instance("i-1").asg_machine.as_mut().unwrap().created_at = Some(now() - TimeDelta::minutes(10));
    assert_eq!(finding(&stage).1, "NodesReadyUnknown");
}

/// Core looks for the Nodes of adopted or moved instances once their Machines exist.
#[test]
fn an_instance_that_is_older_than_its_machine_has_the_whole_timeout() {
    let mut stage = Stage::new(1);
    report(&mut stage, "i-1", NodeState::NotJoined, 9);
    stage.instance("i-1").asg_machine.as_mut().unwrap().launched_at = Some(now() - TimeDelta::days(30));
    assert_eq!(finding(&stage).1, "WaitingForNodes");
    // It was stopped and started again.
    report(&mut stage, "i-1", NodeState::NotJoined, 60);
    stage.instance("i-1").asg_machine.as_mut().unwrap().launched_at = Some(now() - TimeDelta::minutes(9));
    assert_eq!(finding(&stage).1, "WaitingForNodes");
}

#[test]
fn a_message_names_three_instances_and_counts_the_others() {
    let mut stage = Stage::new(9);
    for id in ["i-1", "i-2", "i-3", "i-4"] {
        report(&mut stage, id, NodeState::NotJoined, 30);
    }
    report(&mut stage, "i-5", NodeState::Deleted, 30);
    let (_, reason, message) = finding(&stage);
    assert_eq!(reason, "NodeStartupTimeout", "the first of several");
    assert!(message.starts_with("5 of 9 instances"), "{message}");
    assert!(message.contains("Not joined: i-1, i-2, i-3 and 1 more. Check"), "{message}");
    assert!(message.contains("Node deleted: 1 instance. Restart"), "{message}");
}

#[test]
fn without_a_timeout_the_pool_waits() {
    let mut stage = Stage::new(2);
    timeout(&mut stage, 0);
    report(&mut stage, "i-1", NodeState::NotJoined, 999);
    let found = nodes(&stage);
    assert_eq!((found.finding(&stage.objects).reason, found.next), ("WaitingForNodes", None));
}

#[test]
fn the_time_before_the_control_plane_does_not_count() {
    let cluster = |initialized: bool, minutes: i64| {
        let at = capasg_api::time::to_kubernetes(now() - TimeDelta::minutes(minutes));
        let condition = k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition {
            type_: "ControlPlaneInitialized".to_owned(),
            status: if initialized { "True" } else { "False" }.to_owned(),
            reason: "Initialized".to_owned(),
            message: String::new(),
            last_transition_time: at,
            observed_generation: None,
        };
        let initialization = ClusterInitialization {
            control_plane_initialized: Some(initialized),
            ..ClusterInitialization::default()
        };
        let mut cluster = Cluster::new("c", ClusterSpec::default());
        cluster.status = Some(ClusterStatus { initialization, conditions: vec![condition] });
        Some(Arc::new(cluster))
    };
    let mut stage = Stage::new(1);
    report(&mut stage, "i-1", NodeState::NotJoined, 60);
    stage.objects.cluster = cluster(true, 60);
    assert_eq!(finding(&stage).1, "NodeStartupTimeout");
    stage.objects.cluster = cluster(true, 5);
    assert_eq!(finding(&stage).1, "WaitingForNodes");
    stage.memory.startups.fail_since(now() - TimeDelta::minutes(60));
    assert_eq!(finding(&stage).1, "WaitingForNodes");
    stage.objects.cluster = cluster(false, 60);
    let (status, _, message) = finding(&stage);
    assert_eq!(status, Status::Unknown);
    assert!(message.ends_with("the control plane of the Cluster is not initialized"), "{message}");
}

#[test]
fn instances_that_go_or_are_not_in_service_have_no_node_to_wait_for() {
    let mut stage = Stage::new(4);
    for id in ["i-1", "i-2", "i-3"] {
        report(&mut stage, id, NodeState::NotJoined, 60);
    }
    stage.draining("i-1").lifecycle("i-2", LifecycleState::Standby).lifecycle("i-3", LifecycleState::Pending);
    let (_, reason, message) = finding(&stage);
    assert_eq!(
        (reason, message.as_str()),
        ("WaitingForNodes", "waiting for instances: 1 of 4 replicas are ready")
    );
    stage.desired.replicas = 1;
    assert_eq!(finding(&stage).0, Status::True);
    report(&mut stage, "i-4", NodeState::NotJoined, 60);
    let mut pool = (*stage.objects.pool).clone();
    pool.metadata.deletion_timestamp = Some(capasg_api::time::to_kubernetes(now()));
    stage.objects.pool = Arc::new(pool);
    assert_eq!(finding(&stage).0, Status::True, "a pool that is being deleted");
}

#[test]
fn what_is_being_replaced_is_waited_for() {
    let mut stage = Stage::new(2);
    report(&mut stage, "i-1", NodeState::NotJoined, 60);
    let outdated = Outdated::default().with_reason("i-1", OutdatedReason::ImageChanged);
    let mut plan = Plan::with_outdated(outdated);
    let rolling = |awaits_new| RolloutPhase::Rolling {
        draining: Vec::new(),
        starting: Vec::new(),
        awaits_new,
        out_of_budget: false,
        kept: Vec::new(),
    };
    for (phase, reason) in [
        (rolling(true), "WaitingForNodes"),
        (RolloutPhase::Settling, "WaitingForNodes"),
        (RolloutPhase::OnDelete, "NodeStartupTimeout"),
        (RolloutPhase::Paused { draining: Vec::new() }, "NodeStartupTimeout"),
        (RolloutPhase::Rejected, "NodeStartupTimeout"),
    ] {
        plan.rollout = Some(phase.clone());
        assert_eq!(nodes_with(&stage, &plan).finding(&stage.objects).reason, reason, "{phase:?}");
    }
    // The new instances are the ones that do not join.
    report(&mut stage, "i-1", NodeState::Ready, 60);
    report(&mut stage, "i-2", NodeState::NotJoined, 60);
    plan.rollout = Some(rolling(true));
    assert_eq!(nodes_with(&stage, &plan).finding(&stage.objects).reason, "NodeStartupTimeout");
    stage.instance("i-2").machine.as_mut().unwrap().needs_remediation = true;
    assert_eq!(finding(&stage).1, "WaitingForNodes", "a MachineHealthCheck has it replaced");
    stage.desired.remediate = false;
    assert_eq!(finding(&stage).1, "NodeStartupTimeout", "remediation is ignored");
}

#[test]
fn the_pool_is_requeued_when_the_next_instance_exceeds_the_timeout() {
    let mut stage = Stage::new(3);
    report(&mut stage, "i-1", NodeState::NotJoined, 30);
    report(&mut stage, "i-2", NodeState::NotReady, 3);
    report(&mut stage, "i-3", NodeState::NotJoined, 2);
    stage.memory.startups.fail_since(now() - TimeDelta::minutes(4));
    let Stage { objects, desired, observed, mut memory, .. } = stage;
    let facts = Facts { desired, observed };
    let observation = Observation::of(&objects, PoolState::Running(Box::new(facts)));
    let next = |memory: &PoolMemory| next_timeout(&observation, &Plan::default(), memory, now());
    assert_eq!(next(&memory), Some(TimeDelta::minutes(6)), "the pool");
    memory.startups = NodeStartups::default();
    assert_eq!(next(&memory), Some(TimeDelta::minutes(7)));
}

#[test]
fn instances_that_terminate_before_their_nodes_are_ready_are_overdue_together() {
    let mut stage = Stage::new(3);
    report(&mut stage, "i-1", NodeState::NotJoined, 2);
    stage.memory.startups.fail_since(now() - TimeDelta::minutes(9));
    assert_eq!(finding(&stage).1, "WaitingForNodes");
    stage.memory.startups.fail_since(now() - TimeDelta::minutes(10));
    let (status, reason, message) = finding(&stage);
    assert_eq!((status, reason), (Status::False, "NodeStartupTimeout"));
    assert!(
        message.starts_with(&format!("{TERMINATED_EARLY}, and no Node has become ready for 600 s")),
        "{message}"
    );
    assert!(message.contains("describe-scaling-activities --auto-scaling-group-name g)."), "{message}");
    assert!(message.ends_with("capasg why asgmachinepool/p --namespace ns"), "{message}");
    assert!(!message.contains("in service"), "{message}");
    // Between two of them as well.
    stage.observed.instances.remove("i-1");
    assert_eq!(finding(&stage).1, "NodeStartupTimeout");
    // With what is overdue by itself.
    report(&mut stage, "i-2", NodeState::NotReady, 11);
    let (_, reason, message) = finding(&stage);
    assert_eq!(reason, "NodeStartupTimeout");
    assert!(message.contains(" 1 of 2 instances in service had no ready Node for 600 s"), "{message}");
    timeout(&mut stage, 0);
    assert_eq!(finding(&stage).1, "WaitingForNodes");
}
