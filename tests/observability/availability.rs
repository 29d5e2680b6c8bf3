//! All roles run with two replicas that survive the loss of a node or of a zone.

use serde_json::{Value, json};

use super::{components, of_kind, selects};

#[test]
fn every_role_runs_with_two_replicas_that_are_spread_and_are_not_evicted_together() {
    let objects = components();
    let deployments = of_kind(&objects, "Deployment");
    assert_eq!(deployments.len(), 3);
    let budgets = of_kind(&objects, "PodDisruptionBudget");
    assert_eq!(budgets.len(), 3);
    for deployment in deployments {
        let name = &deployment["metadata"]["name"];
        let (labels, pod) =
            (&deployment["spec"]["template"]["metadata"]["labels"], &deployment["spec"]["template"]["spec"]);
        assert_eq!(deployment["spec"]["replicas"], 2, "{name}");
        assert_eq!(pod["priorityClassName"], "system-cluster-critical", "{name}");
        let own: Vec<&&Value> = budgets
            .iter()
            .filter(|budget| budget["metadata"]["namespace"] == deployment["metadata"]["namespace"])
            .collect();
        let [budget] = own[..] else { panic!("{name}: one PodDisruptionBudget") };
        assert_eq!(budget["spec"]["maxUnavailable"], 1, "{name}");
        assert!(selects(&budget["spec"]["selector"]["matchLabels"], labels), "{name}");
        let spread = pod["topologySpreadConstraints"].as_array().unwrap();
        let keys: Vec<&Value> = spread.iter().map(|one| &one["topologyKey"]).collect();
        assert_eq!(keys, [&json!("kubernetes.io/hostname"), &json!("topology.kubernetes.io/zone")], "{name}");
        for one in spread {
            // A cluster of one node runs both.
            assert_eq!((&one["maxSkew"], &one["whenUnsatisfiable"]), (&json!(1), &json!("ScheduleAnyway")));
            assert!(selects(&one["labelSelector"]["matchLabels"], labels), "{name}");
        }
    }
}

#[test]
fn replicas_that_write_elect_a_leader() {
    for deployment in of_kind(&components(), "Deployment") {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let role = container["command"][1].as_str().unwrap();
        let elects = container["args"].as_array().unwrap().contains(&json!("--leader-elect"));
        assert_eq!(elects, role != "extension", "{role}");
    }
}
