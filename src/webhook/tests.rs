//! Requests as the API server sends them, and the answers.

use async_trait::async_trait;
use capasg_api::capi::{Machine, MachinePool};
use capasg_test_objects::{minimal_pool, with};
use serde_json::{Value, json};

use super::*;

/// An API server that holds one pool, and fails or hangs if requested.
#[derive(Default)]
struct Known {
    pools: Vec<Value>,
    machine: Option<Value>,
    fails: bool,
    hangs: bool,
}

impl Known {
    async fn answered<T>(&self, answer: T) -> Result<T, kube::Error> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if self.fails {
            return Err(kube::Error::LinesCodecMaxLineLengthExceeded);
        }
        Ok(answer)
    }
}

#[async_trait]
impl Facts for Known {
    async fn pools(&self) -> Result<Vec<ASGMachinePool>, kube::Error> {
        let pools = self.pools.iter().map(|pool| serde_json::from_value(pool.clone()).unwrap());
        self.answered(pools.collect()).await
    }

    async fn machine(&self, _: &str, _: &str) -> Result<Option<Machine>, kube::Error> {
        let machine = self.machine.as_ref().map(|machine| serde_json::from_value(machine.clone()).unwrap());
        self.answered(machine).await
    }

    async fn machine_pool(&self, _: &str, _: &str) -> Result<Option<MachinePool>, kube::Error> {
        self.answered(None).await
    }
}

fn pool(name: &str) -> Value {
    let pool = with(minimal_pool(), "metadata", json!({"name": name, "namespace": "teams"}));
    with(pool, "spec/group", json!({"name": "shared"}))
}

fn asked(operation: &str, object: &Value, old_object: &Value) -> Asked {
    serde_json::from_value(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "a-uid", "operation": operation, "object": object, "oldObject": old_object},
    }))
    .unwrap()
}

async fn answered(response: Response) -> Value {
    let bytes = axum::body::to_bytes(response.into_body(), LARGEST).await.unwrap();
    let reply: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(reply["response"]["uid"], "a-uid");
    reply["response"].clone()
}

#[tokio::test]
async fn a_second_pool_for_a_group_is_refused() {
    let known = Arc::new(Known { pools: vec![pool("first")], ..Known::default() });
    let second = asked("CREATE", &pool("second"), &Value::Null);
    let response = answered(pools(State(Arc::clone(&known)), Json(second)).await).await;
    assert_eq!(response["allowed"], false);
    assert!(
        response["status"]["message"].as_str().unwrap().contains("belongs to ASGMachinePool teams/first")
    );
    // Not at an update: the name cannot change, and an old pair must stay editable.
    let update = asked("UPDATE", &pool("second"), &pool("second"));
    let response = answered(pools(State(known), Json(update)).await).await;
    assert_eq!(response["allowed"], true);
}

// Rules: M6
#[tokio::test(start_paused = true)]
async fn what_cannot_be_looked_up_is_let_through_with_a_warning() {
    let machine = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGMachine",
        "metadata": {"name": "one", "namespace": "teams", "ownerReferences": [{
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "one", "uid": "u", "controller": true,
        }]},
        "spec": {"providerID": "aws:///eu-west-1a/i-0123456789abcdef0", "instanceID": "i-0123456789abcdef0"},
    });
    for (fails, hangs) in [(true, false), (false, true)] {
        let known = Arc::new(Known { fails, hangs, ..Known::default() });
        let delete = asked("DELETE", &Value::Null, &machine);
        let response = answered(machines(State(Arc::clone(&known)), Json(delete)).await).await;
        assert_eq!(response["allowed"], true);
        assert_eq!(
            response["warnings"][0],
            "CAPASG could not validate this object and allowed the request; check the conditions of the \
             object"
        );
        let create = asked("CREATE", &pool("second"), &Value::Null);
        let response = answered(pools(State(known), Json(create)).await).await;
        assert_eq!(response["allowed"], true);
    }
    // An object of another kind is for others to reject.
    let odd = asked("DELETE", &Value::Null, &json!({"spec": 1}));
    let response = answered(machines(State(Arc::new(Known::default())), Json(odd)).await).await;
    assert_eq!(response["allowed"], true);
}

// Rules: D12
#[tokio::test]
async fn an_instance_that_ends_without_a_drain_is_warned_of() {
    let owner = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "one", "uid": "u", "controller": true,
    });
    let machine = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGMachine",
        "metadata": {"name": "one", "namespace": "teams", "ownerReferences": [owner]},
        "spec": {"providerID": "aws:///eu-west-1a/i-0123456789abcdef0", "instanceID": "i-0123456789abcdef0"},
    });
    let there = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "one", "namespace": "teams", "uid": "u"},
        "spec": {},
    });
    let known = Arc::new(Known { machine: Some(there), ..Known::default() });
    let delete = asked("DELETE", &Value::Null, &machine);
    let response = answered(machines(State(known), Json(delete)).await).await;
    assert_eq!(response["allowed"], true);
    assert_eq!(
        response["warnings"],
        json!([
            "Instance i-0123456789abcdef0 will be terminated without draining its Node. To drain it, delete \
             Machine one first."
        ])
    );
}

#[tokio::test]
async fn a_window_that_cannot_be_read_is_refused_when_it_comes_and_not_when_it_stays() {
    let windows = json!([{"schedule": "0 25 * * *", "durationSeconds": 3600}]);
    let wrong = with(minimal_pool(), "spec/disruption/windows", windows);
    // An API server that fails: nothing is looked up for this.
    let facts = || State(Arc::new(Known { fails: true, ..Known::default() }));
    for (operation, before, allowed) in
        [("CREATE", Value::Null, false), ("UPDATE", minimal_pool(), false), ("UPDATE", wrong.clone(), true)]
    {
        let reply = answered(pools(facts(), Json(asked(operation, &wrong, &before))).await).await;
        assert_eq!(reply["allowed"], allowed, "{operation} {before}");
        if !allowed {
            let cause = &reply["status"]["details"]["causes"][0];
            assert_eq!(cause["field"], "spec.disruption.windows[0].schedule");
        }
    }
}
