//! Requests as the API server sends them, and the answers.

use async_trait::async_trait;
use axum::http::Request;
use capasg_api::capi::{Machine, MachinePool};
use capasg_test_objects::{minimal_pool, with};
use serde_json::{Value, json};
use tower::ServiceExt as _;

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
    async fn answered<T>(&self, answer: T) -> Result<T> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if self.fails {
            anyhow::bail!("the API server does not answer");
        }
        Ok(answer)
    }
}

#[async_trait]
impl Facts for Known {
    async fn pools(&self) -> Result<Arc<Vec<ASGMachinePool>>> {
        let pools = self.pools.iter().map(|pool| serde_json::from_value(pool.clone()).unwrap());
        self.answered(Arc::new(pools.collect())).await
    }

    async fn machine(&self, _: &str, _: &str) -> Result<Option<Machine>> {
        let machine = self.machine.as_ref().map(|machine| serde_json::from_value(machine.clone()).unwrap());
        self.answered(machine).await
    }

    async fn machine_pool(&self, _: &str, _: &str) -> Result<Option<MachinePool>> {
        self.answered(None).await
    }
}

fn pool(name: &str) -> Value {
    let pool = with(minimal_pool(), "metadata", json!({"name": name, "namespace": "teams"}));
    with(pool, "spec/group", json!({"name": "shared"}))
}

fn asked(operation: &str, object: &Value, old_object: &Value) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "a-uid", "operation": operation, "object": object, "oldObject": old_object},
    })
    .to_string()
}

async fn posted(router: &Router, path: &str, body: Body) -> Response {
    router.clone().oneshot(Request::post(path).body(body).unwrap()).await.unwrap()
}

/// What is answered to a review.
async fn answered(known: Known, path: &str, review: String) -> Value {
    let response = posted(&router(known), path, review.into()).await;
    let bytes = axum::body::to_bytes(response.into_body(), BUDGET.largest).await.unwrap();
    let reply: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(reply["response"]["uid"], "a-uid");
    reply["response"].clone()
}

#[tokio::test]
async fn a_second_pool_for_a_group_is_refused() {
    let known = || Known { pools: vec![pool("first")], ..Known::default() };
    let second = asked("CREATE", &pool("second"), &Value::Null);
    let response = answered(known(), POOLS, second).await;
    assert_eq!(response["allowed"], false);
    assert!(
        response["status"]["message"].as_str().unwrap().contains("belongs to ASGMachinePool teams/first")
    );
    // Not at an update: the name cannot change, and an old pair must stay editable.
    let update = asked("UPDATE", &pool("second"), &pool("second"));
    assert_eq!(answered(known(), POOLS, update).await["allowed"], true);
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
        let known = || Known { fails, hangs, ..Known::default() };
        let delete = asked("DELETE", &Value::Null, &machine);
        let response = answered(known(), MACHINES, delete).await;
        assert_eq!(response["allowed"], true);
        assert_eq!(
            response["warnings"][0],
            "CAPASG could not validate this object and allowed the request; check the conditions of the \
             object"
        );
        let create = asked("CREATE", &pool("second"), &Value::Null);
        let response = answered(known(), POOLS, create).await;
        assert_eq!(response["allowed"], true);
    }
    // An object of another kind is for others to reject.
    let odd = asked("DELETE", &Value::Null, &json!({"spec": 1}));
    let response = answered(Known::default(), MACHINES, odd).await;
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
    let known = Known { machine: Some(there), ..Known::default() };
    let delete = asked("DELETE", &Value::Null, &machine);
    let response = answered(known, MACHINES, delete).await;
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
    let facts = || Known { fails: true, ..Known::default() };
    for (operation, before, allowed) in
        [("CREATE", Value::Null, false), ("UPDATE", minimal_pool(), false), ("UPDATE", wrong.clone(), true)]
    {
        let reply = answered(facts(), POOLS, asked(operation, &wrong, &before)).await;
        assert_eq!(reply["allowed"], allowed, "{operation} {before}");
        if !allowed {
            let cause = &reply["status"]["details"]["causes"][0];
            assert_eq!(cause["field"], "spec.disruption.windows[0].schedule");
        }
    }
}

// Rules: N3
#[tokio::test(start_paused = true)]
async fn bodies_that_are_too_large_too_costly_too_slow_or_no_review_are_refused() {
    let router = router(Known::default());
    let status = async |body: Body| posted(&router, POOLS, body).await.status().as_u16();
    assert_eq!(status(" ".repeat(BUDGET.largest + 1).into()).await, 413);
    let many = r#"{"":0},"#.repeat(BUDGET.largest / 8);
    assert_eq!(status(format!("{{\"request\": [{many}0]}}").into()).await, 413);
    for body in ["", "[]", "{}", "{\"request\": {\"uid\": \"a\"}}", &"[".repeat(1000)] {
        assert_eq!(status(body.to_owned().into()).await, 400, "{body}");
    }
    let silent = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    assert_eq!(status(silent).await, 408);
}

/// A pool with as many instances as one may have, twice in an update, with what records who wrote each of them.
#[tokio::test]
async fn the_largest_pool_is_validated() {
    let ids: Vec<String> = (0..10_000).map(|number| format!("aws:///eu-west-1a/i-{number:017x}")).collect();
    let owned: serde_json::Map<String, Value> =
        ids.iter().map(|id| (format!("v:\"{id}\""), json!({}))).collect();
    let fields = json!([{
        "manager": "capasg", "operation": "Apply", "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:providerIDList": owned}},
    }]);
    let pool = with(with(pool("first"), "spec/providerIDList", json!(ids)), "metadata/managedFields", fields);
    let update = asked("UPDATE", &pool, &pool);
    assert!(update.len() > 1536 * 1024, "{}", update.len());
    assert_eq!(answered(Known::default(), POOLS, update).await, json!({"uid": "a-uid", "allowed": true}));
}

#[tokio::test]
async fn an_answer_does_not_repeat_what_is_long() {
    let schedule = "9".repeat(100_000);
    let windows: Vec<Value> =
        (0..20).map(|_| json!({"schedule": schedule, "durationSeconds": 3600})).collect();
    let wrong = with(minimal_pool(), "spec/disruption/windows", json!(windows));
    let reply = answered(Known::default(), POOLS, asked("CREATE", &wrong, &Value::Null)).await;
    assert_eq!(reply["allowed"], false);
    assert!(reply.to_string().len() < 64 * 1024, "{} bytes", reply.to_string().len());
}
