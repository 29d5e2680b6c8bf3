//! `capasg why` about pools, by example.

use capasg_api::{ASGMachine, ASGMachinePool, capi::Machine};
use serde_json::{Value, json};

use super::*;

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2027-01-15T08:05:00Z",
    })
}

fn asg_machine(id: &str) -> ASGMachine {
    let status = json!({
        "instanceType": "m7i.large", "failureDomain": "eu-west-1a", "lifecycleState": "InService",
        "healthStatus": "Healthy", "launchTime": "2027-01-15T08:00:00Z",
    });
    let mut machine =
        ASGMachine::new(&format!("workers-{id}"), capasg_api::ASGMachineSpec::new("eu-west-1a", id));
    machine.status = serde_json::from_value(status).unwrap();
    machine
}

fn machine(id: &str, node: Option<&str>, conditions: &[Value]) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": format!("workers-{id}")},
        "spec": {"infrastructureRef": {"name": format!("workers-{id}")}},
        "status": {"nodeRef": node.map(|name| json!({"name": name})), "conditions": conditions},
    }))
    .unwrap()
}

fn why(status: Value, asg_machines: &[ASGMachine], machines: &[Machine]) -> String {
    let mut pool: ASGMachinePool = serde_json::from_value(capasg_test_objects::minimal_pool()).unwrap();
    pool.metadata.name = Some("workers".to_owned());
    pool.metadata.namespace = Some("teams".to_owned());
    pool.status = Some(serde_json::from_value(status).unwrap());
    let now = "2027-01-15T08:20:00Z".parse().unwrap();
    let (owner, cluster) = (Some("workers".to_owned()), Some("prod".to_owned()));
    PoolWhy::new(&pool, owner, cluster, asg_machines, machines, now).to_string()
}

#[test]
fn a_pool_whose_nodes_are_missing_says_what_to_check() {
    let status = json!({
        "desiredReplicas": 5, "replicas": 5, "readyReplicas": 1, "upToDateReplicas": 5, "phase": "Degraded",
        "version": "v1.36.3", "image": {"id": "ami-1"}, "securityGroupIDs": ["sg-1", "sg-2"],
        "conditions": [
            condition("Ready", "False", "NotReady", "* NodesReady: late"),
            condition("GroupReady", "True", "GroupReady", ""),
            condition("NodesReady", "False", "NodeStartupTimeout", "late"),
            condition("Stalled", "True", "Stalled", "* NodesReady: late"),
            condition("Paused", "False", "NotPaused", ""),
        ],
        "lastLaunchFailure": {
            "reason": "InsufficientCapacity", "message": "No capacity.", "instanceType": "m7i.large",
            "availabilityZone": "eu-west-1b", "time": "2027-01-15T08:10:00Z",
        },
    });
    let waiting = "Waiting for a Node with spec.providerID aws:///eu-west-1a/i-0b to exist";
    let budget = "Drain not completed yet (started at 2027-01-15T08:10:00Z):\n* Pod web/a: cannot evict pod as it would violate the pod's disruption budget";
    let ready = condition("Ready", "True", "Ready", "");
    let machines = [
        machine("i-0a", Some("node-a"), &[ready.clone(), condition("NodeReady", "True", "NodeReady", "")]),
        machine("i-0b", None, &[condition("NodeReady", "Unknown", "InspectionFailed", waiting)]),
        machine(
            "i-0c",
            Some("node-c"),
            &[condition(
                "NodeReady",
                "False",
                "NodeDeleted",
                "Node node-c has been deleted while the Machine still exists",
            )],
        ),
        machine(
            "i-0d",
            Some("node-d"),
            &[
                condition("NodeReady", "True", "NodeReady", ""),
                condition("Deleting", "True", "DrainingNode", budget),
            ],
        ),
    ];
    let ids = ["i-0a", "i-0b", "i-0c", "i-0d", "i-0e"];
    let asg_machines: Vec<ASGMachine> = ids.iter().map(|id| asg_machine(id)).collect();
    insta::assert_snapshot!("missing", why(status, &asg_machines, &machines));
}

#[test]
fn a_pool_that_no_controller_has_observed_says_so() {
    let text = why(json!({}), &[], &[]);
    assert!(text.contains("no conditions: no controller has observed it"), "{text}");
    assert!(!text.contains("Instances"), "{text}");
}
