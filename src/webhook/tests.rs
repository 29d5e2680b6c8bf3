//! Requests as the API server sends them, and the answers.

use std::collections::BTreeMap;

use async_trait::async_trait;
use axum::http::Request;
use capasg_api::{
    ASGGuard, ASGIdentity,
    capi::{Machine, MachinePool},
    names::annotations,
};
use capasg_test_objects::{minimal_pool, with};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

/// An API server that holds some objects, and fails or hangs if requested.
#[derive(Default)]
struct Known {
    pools: Vec<Value>,
    guards: Vec<Arc<ASGGuard>>,
    identity: Option<ASGIdentity>,
    /// The labels of namespace `teams`; unknown, it may not be read.
    labels: Option<BTreeMap<String, String>>,
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

    async fn guards(&self) -> Result<Arc<Vec<Arc<ASGGuard>>>> {
        self.answered(Arc::new(self.guards.clone())).await
    }

    async fn identity(&self, name: &str) -> Result<Option<Arc<ASGIdentity>>> {
        let found = self.identity.clone().filter(|identity| identity.name_any() == name);
        self.answered(found.map(Arc::new)).await
    }

    async fn namespace_labels(&self, name: &str) -> Result<Option<Arc<BTreeMap<String, String>>>> {
        assert_eq!(name, "teams");
        let labels = self.labels.clone().expect("nothing selects namespaces by labels");
        self.answered(Some(Arc::new(labels))).await
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

fn guard(name: &str, namespaces: Value, spec: &Value) -> Arc<ASGGuard> {
    let spec = with(spec.clone(), "namespaces", namespaces);
    Arc::new(ASGGuard::new(name, serde_json::from_value(spec).unwrap()))
}

fn guarded(spec: &Value) -> Known {
    Known { guards: vec![guard("tenants", json!({"names": ["teams"]}), spec)], ..Known::default() }
}

/// A pool of namespace `teams` with these members.
fn having(edits: &[(&str, Value)]) -> Value {
    let pool = with(minimal_pool(), "metadata", json!({"name": "workers", "namespace": "teams"}));
    edits.iter().fold(pool, |pool, (path, value)| with(pool, path, value.clone()))
}

/// Why a request is rejected, if it is.
async fn rejection(known: Known, operation: &str, object: &Value, before: &Value) -> Option<String> {
    let reply = answered(known, POOLS, asked(operation, object, before)).await;
    assert_eq!(reply.get("warnings"), None);
    let message = reply["status"]["message"].as_str().map(str::to_owned);
    assert_eq!(reply["allowed"], message.is_none());
    message
}

// Rules: T3
#[tokio::test]
async fn what_a_guard_denies_is_rejected_when_it_comes_and_not_when_it_stays() {
    let rules = json!({
        "regions": ["eu-*"], "subnetIDs": [], "securityGroupIDs": [], "instanceProfiles": [],
        "sshKeyNames": [], "ssmParameterPrefixes": ["/images/"], "kmsKeyIDs": [], "groupNames": ["team-*"],
        "adoption": "Denied", "limits": {"maxReplicasPerPool": 3},
    });
    let tags = json!([{"tags": {"tier": "node"}}]);
    let base = [("spec/subnets", tags.clone()), ("spec/machine/securityGroups", tags)];
    let allowed = having(&base);
    assert_eq!(rejection(guarded(&rules), "CREATE", &allowed, &Value::Null).await, None);
    let group = || ("spec/group", json!({"name": "team-a"}));
    for (edits, message) in [
        (
            vec![("spec/region", json!("us-east-1"))],
            "spec.region: ASGGuard tenants does not allow Region us-east-1",
        ),
        (
            vec![("spec/subnets", json!([{"id": "subnet-0a1b2c3d"}]))],
            "spec.subnets: ASGGuard tenants does not allow subnet subnet-0a1b2c3d",
        ),
        (
            vec![("spec/machine/securityGroups", json!([{"id": "sg-0a1b2c3d"}]))],
            "spec.machine.securityGroups: ASGGuard tenants does not allow security group sg-0a1b2c3d",
        ),
        (
            vec![("spec/machine/iamInstanceProfile", json!("admin"))],
            "spec.machine.iamInstanceProfile: ASGGuard tenants does not allow instance profile admin",
        ),
        (
            vec![("spec/machine/sshKeyName", json!("mine"))],
            "spec.machine.sshKeyName: ASGGuard tenants does not allow key pair mine",
        ),
        (
            vec![("spec/machine/image", json!({"ssmParameter": "/secret"}))],
            "spec.machine.image.ssmParameter: ASGGuard tenants does not allow SSM parameter /secret",
        ),
        (
            vec![("spec/machine/rootVolume", json!({"kmsKeyID": "alias/theirs"}))],
            "spec.machine.rootVolume.kmsKeyID: ASGGuard tenants does not allow KMS key alias/theirs",
        ),
        (
            vec![("spec/group", json!({"name": "theirs"}))],
            "spec.group.name: ASGGuard tenants does not allow group name theirs",
        ),
        (
            vec![group(), ("spec/adoptionPolicy", json!("Adopt"))],
            "spec.adoptionPolicy: ASGGuard tenants denies the adoption of groups",
        ),
        (
            vec![("spec/minSize", json!(4))],
            "spec.minSize: ASGGuard tenants allows at most 3 replicas of a pool",
        ),
    ] {
        let denied = having(&[&base[..], &edits].concat());
        let message = Some(message.to_owned());
        assert_eq!(rejection(guarded(&rules), "CREATE", &denied, &Value::Null).await, message);
        assert_eq!(rejection(guarded(&rules), "UPDATE", &denied, &allowed).await, message);
        // A finalizer, a label, and another field of the spec.
        let later = with(denied.clone(), "metadata/finalizers", json!(["a.example.com/b"]));
        let later = with(later, "spec/drain", json!({"timeoutSeconds": 60}));
        assert_eq!(rejection(guarded(&rules), "UPDATE", &later, &denied).await, None, "{edits:?}");
        assert_eq!(rejection(guarded(&rules), "UPDATE", &allowed, &denied).await, None, "its removal");
        let deleted = with(denied.clone(), "metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        assert_eq!(rejection(guarded(&rules), "UPDATE", &deleted, &allowed).await, None);
        assert_eq!(rejection(guarded(&rules), "DELETE", &Value::Null, &denied).await, None);
    }
}

// Rules: T3
#[tokio::test]
async fn guards_may_follow_the_pools_that_need_them() {
    let edits = [
        ("spec/machine/iamInstanceProfile", json!("admin")),
        ("spec/group", json!({"name": "theirs"})),
        ("spec/adoptionPolicy", json!("Adopt")),
    ];
    let needy = having(&edits);
    let elsewhere = guard(
        "elsewhere",
        json!({"names": ["others"]}),
        &json!({"instanceProfiles": [], "adoption": "Denied"}),
    );
    for known in [
        Known::default(),
        Known { guards: vec![elsewhere], ..Known::default() },
        guarded(&json!({"regions": ["*"]})),
    ] {
        assert_eq!(rejection(known, "CREATE", &needy, &Value::Null).await, None);
    }
}

// Rules: M6, T3
#[tokio::test]
async fn pools_that_are_moved_or_restored_are_not_rejected() {
    let owner = json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": "workers", "uid": "u", "controller": true,
    }]);
    let arn = "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:u:autoScalingGroupName/any";
    let key = ("spec/machine/sshKeyName", json!("mine"));
    let known = || guarded(&json!({"sshKeyNames": []}));
    assert!(rejection(known(), "CREATE", &having(std::slice::from_ref(&key)), &Value::Null).await.is_some());
    for of_moved in [
        ("metadata/ownerReferences", owner),
        ("metadata/annotations", json!({annotations::OWNER_ID: "0123456789abcdef"})),
        ("spec/providerID", json!(arn)),
    ] {
        let (pool, before) = (having(&[key.clone(), of_moved.clone()]), having(&[of_moved]));
        assert_eq!(rejection(known(), "CREATE", &pool, &Value::Null).await, None);
        assert!(rejection(known(), "UPDATE", &pool, &before).await.is_some(), "a change is none");
    }
}

// Rules: T3
#[tokio::test]
async fn guards_select_namespaces_by_labels() {
    let pool = having(&[("spec/machine/sshKeyName", json!("mine"))]);
    for (team, is_denied) in [("a", true), ("b", false)] {
        let selector = json!({"selector": {"matchLabels": {"team": "a"}}});
        let known = Known {
            guards: vec![guard("tenants", selector, &json!({"sshKeyNames": []}))],
            labels: Some(BTreeMap::from([("team".to_owned(), team.to_owned())])),
            ..Known::default()
        };
        assert_eq!(rejection(known, "CREATE", &pool, &Value::Null).await.is_some(), is_denied, "{team}");
    }
}

// Rules: T1
#[tokio::test]
async fn an_identity_that_does_not_allow_the_namespace_is_rejected_when_it_is_named() {
    let identity = |namespaces: Value| {
        let spec = json!({"type": "Controller", "allowedNamespaces": namespaces});
        Some(ASGIdentity::new("hers", serde_json::from_value(spec).unwrap()))
    };
    let naming = |name: &str| having(&[("spec/identityRef", json!({"kind": "ASGIdentity", "name": name}))]);
    let (pool, none) = (naming("hers"), having(&[]));
    let message = "spec.identityRef: ASGIdentity hers does not allow namespace teams: an operator must add it to \
                   spec.allowedNamespaces, or the pool must use another identity";
    let others = || Known { identity: identity(json!({"names": ["others"]})), ..Known::default() };
    for (operation, before, expected) in [
        ("CREATE", &Value::Null, Some(message)),
        ("UPDATE", &none, Some(message)),
        ("UPDATE", &naming("another"), Some(message)),
        ("UPDATE", &with(pool.clone(), "spec/minSize", json!(1)), None),
    ] {
        let found = rejection(others(), operation, &pool, before).await;
        assert_eq!(found.as_deref(), expected, "{operation} {before}");
    }
    assert_eq!(rejection(others(), "CREATE", &naming("later"), &Value::Null).await, None, "it may follow");
    let of_another_provider =
        having(&[("spec/identityRef", json!({"kind": "AWSClusterRoleIdentity", "name": "hers"}))]);
    assert_eq!(rejection(others(), "CREATE", &of_another_provider, &Value::Null).await, None);
    let allowed = Known { identity: identity(json!({"names": ["teams"]})), ..Known::default() };
    assert_eq!(rejection(allowed, "CREATE", &pool, &Value::Null).await, None);
    let by_label = Known {
        identity: identity(json!({"selector": {"matchLabels": {"team": "a"}}})),
        labels: Some(BTreeMap::from([("team".to_owned(), "a".to_owned())])),
        ..Known::default()
    };
    assert_eq!(rejection(by_label, "CREATE", &pool, &Value::Null).await, None);
}
