//! The health scripts for Argo CD, run by its interpreter on objects with the conditions that the controllers set.

use capasg_api::{
    conditions::{self, Finding, POOL, READY, RECONCILING, STALLED, Status, pool_summary},
    reasons::{group_ready, nodes_ready, scaling_healthy, up_to_date},
};
use capasg_environment::{argocd_health, filter};
use chrono::DateTime;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use super::{documents, of_kind, read, with_component};

const SCRIPTS: &str = "config/argocd/argocd-cm.yaml";
const PREFIX: &str = "resource.customizations.health.";
const GENERATION: i64 = 4;

fn script(kind: &str) -> String {
    let [config] = &documents(&read(SCRIPTS))[..] else { panic!("one ConfigMap") };
    config["data"][format!("{PREFIX}{kind}")]
        .as_str()
        .unwrap_or_else(|| panic!("no script for {kind}"))
        .to_owned()
}

/// The health of each object: status and message.
fn healths(kind: &str, objects: &[Value]) -> Vec<(String, String)> {
    let program = argocd_health(&|line| eprintln!("{line}")).unwrap();
    let script = script(kind);
    let questions: Vec<Value> =
        objects.iter().map(|object| json!({"script": script, "object": object})).collect();
    let answers = filter(&program, &questions).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    answers.iter().map(|answer| (text(&answer["status"]), text(&answer["message"]))).collect()
}

fn health(kind: &str, object: Value) -> (String, String) {
    healths(kind, &[object]).remove(0)
}

/// An object with this status, whose spec was observed.
fn observed(mut status: Value) -> Value {
    status["observedGeneration"] = json!(GENERATION);
    json!({"metadata": {"name": "workers", "namespace": "teams", "generation": GENERATION}, "status": status})
}

/// The conditions of a pool that is as its spec says, except for these findings; summarized as the controller does.
fn pool_conditions(findings: &[(&'static str, Status, &'static str)]) -> Vec<Condition> {
    let now = DateTime::UNIX_EPOCH;
    let mut all = Vec::new();
    for type_ in POOL.iter().filter(|type_| ![READY, RECONCILING, STALLED].contains(type_)) {
        conditions::set(
            &mut all,
            Finding::plain(type_, !conditions::is_negative(type_), "Normal"),
            GENERATION,
            now,
        );
    }
    for (type_, status, reason) in findings {
        conditions::set(
            &mut all,
            Finding::new(type_, *status, reason, format!("why {type_}")),
            GENERATION,
            now,
        );
    }
    let summary = pool_summary(&all);
    conditions::set_ready(&mut all, &summary, GENERATION, now);
    conditions::set_progress(&mut all, GENERATION, now);
    all
}

fn pool(findings: &[(&'static str, Status, &'static str)]) -> Value {
    observed(json!({"conditions": pool_conditions(findings)}))
}

const POOLS: &str = "infrastructure.cluster.x-k8s.io_ASGMachinePool";

#[test]
fn a_pool_is_healthy_progressing_degraded_or_suspended_as_its_conditions_say() {
    use Status::{False, True, Unknown};
    let cases: [(&str, Value, &str, &str); 11] = [
        ("at rest", pool(&[]), "Healthy", ""),
        (
            "rolling out",
            pool(&[(conditions::ROLLING_OUT, True, "RollingOut")]),
            "Progressing",
            "* RollingOut: why RollingOut",
        ),
        (
            "deleted",
            pool(&[(conditions::DELETING, True, "DrainingMachines")]),
            "Progressing",
            "* Deleting: why Deleting",
        ),
        (
            "rejected",
            pool(&[(conditions::GROUP_READY, False, group_ready::REJECTED)]),
            "Degraded",
            "* GroupReady: why GroupReady",
        ),
        (
            "stopped",
            pool(&[(conditions::UP_TO_DATE, False, up_to_date::PROGRESS_DEADLINE_EXCEEDED)]),
            "Degraded",
            "* UpToDate: why UpToDate",
        ),
        (
            "starting nodes",
            pool(&[(conditions::NODES_READY, False, nodes_ready::WAITING_FOR_NODES)]),
            "Progressing",
            "* NodesReady: why NodesReady",
        ),
        (
            "without nodes",
            pool(&[(conditions::NODES_READY, False, nodes_ready::NODE_STARTUP_TIMEOUT)]),
            "Degraded",
            "* NodesReady: why NodesReady",
        ),
        (
            "without capacity",
            pool(&[(conditions::SCALING_HEALTHY, False, scaling_healthy::INSUFFICIENT_CAPACITY)]),
            "Progressing",
            "* ScalingHealthy: why ScalingHealthy",
        ),
        (
            "waiting for a window",
            pool(&[(conditions::UP_TO_DATE, False, up_to_date::WAITING_FOR_WINDOW)]),
            "Healthy",
            "",
        ),
        ("paused", pool(&[(conditions::PAUSED, True, "Paused")]), "Suspended", "why Paused"),
        (
            "unknown",
            pool(&[(conditions::CLOUD_REACHABLE, Unknown, "NotYetReported")]),
            "Progressing",
            "* CloudReachable: why CloudReachable",
        ),
    ];
    let objects: Vec<Value> = cases.iter().map(|(_, object, ..)| object.clone()).collect();
    for ((name, _, status, message), found) in cases.iter().zip(healths(POOLS, &objects)) {
        assert_eq!((found.0.as_str(), found.1.as_str()), (*status, *message), "{name}");
    }
}

#[test]
fn an_object_whose_spec_was_not_observed_is_progressing() {
    for kind in [POOLS, "addons.cluster.x-k8s.io_HelmChartProxy", "addons.cluster.x-k8s.io_HelmReleaseProxy"]
    {
        let mut changed = pool(&[]);
        assert_eq!(health(kind, changed.clone()).0, "Healthy", "{kind}");
        changed["metadata"]["generation"] = json!(GENERATION + 1);
        let new = json!({"metadata": {"name": "new", "generation": 1}});
        let empty = observed(json!({}));
        for (found, _) in healths(kind, &[changed, new, empty]) {
            assert_eq!(found, "Progressing", "{kind}");
        }
    }
}

#[test]
fn an_instance_that_starts_or_terminates_is_progressing() {
    let condition = |type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason, "message": format!("why {type_}")});
    let machine = |conditions: &[Value]| observed(json!({"conditions": conditions}));
    let kind = "infrastructure.cluster.x-k8s.io_ASGMachine";
    let ready = |status: &str| condition("Ready", status, "R");
    let objects = [
        machine(&[ready("True"), condition("InstanceReady", "True", "InstanceReady")]),
        machine(&[ready("False"), condition("InstanceReady", "False", "Pending")]),
        machine(&[ready("True"), condition("TerminationPending", "True", "SpotInterruption")]),
        machine(&[ready("False"), condition("InstanceReady", "False", "Unhealthy")]),
        machine(&[ready("True"), condition("Paused", "True", "Paused")]),
        machine(&[]),
    ];
    let found: Vec<String> = healths(kind, &objects).into_iter().map(|(status, _)| status).collect();
    assert_eq!(found, ["Healthy", "Progressing", "Progressing", "Degraded", "Suspended", "Progressing"]);
}

#[test]
fn an_add_on_is_degraded_when_helm_fails_and_progressing_while_it_works() {
    let condition = |type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason, "message": format!("why {type_}")});
    let release = |conditions: &[Value]| observed(json!({"conditions": conditions}));
    let not_ready = || condition("Ready", "False", "IssuesReported");
    let mut deleted = release(&[condition("Ready", "True", "InfoReported")]);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-03-01T00:00:00Z");
    let objects = [
        release(&[
            condition("Ready", "True", "InfoReported"),
            condition("Drifted", "True", "ResourcesChanged"),
        ]),
        release(&[not_ready(), condition("HelmReleaseReady", "False", "HelmReleasePending")]),
        release(&[not_ready(), condition("HelmReleaseReady", "False", "HelmInstallOrUpgradeFailed")]),
        release(&[not_ready(), condition("ClusterAvailable", "False", "ClusterUnreachable")]),
        deleted,
    ];
    let found = healths("addons.cluster.x-k8s.io_HelmReleaseProxy", &objects);
    let statuses: Vec<&str> = found.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(statuses, ["Healthy", "Progressing", "Degraded", "Progressing", "Progressing"]);
    assert_eq!(found[2].1, "why HelmReleaseReady");
    let chart = "addons.cluster.x-k8s.io_HelmChartProxy";
    let failed = release(&[
        not_ready(),
        condition("HelmReleaseProxySpecsUpToDate", "False", "ClusterSelectionFailed"),
    ]);
    assert_eq!(health(chart, failed).0, "Degraded");
    let waiting = release(&[not_ready(), condition("HelmReleaseProxiesReady", "False", "IssuesReported")]);
    assert_eq!(health(chart, waiting), ("Progressing".to_owned(), "why Ready".to_owned()));
}

#[test]
fn the_component_adds_the_scripts_to_the_configuration_of_argo_cd() {
    let own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\ndata: {url: \
               'https://argocd.example.com'}\n";
    let shipped = with_component("argocd", &[("argocd-cm.own.yaml", own)]);
    let [config] = of_kind(&shipped, "ConfigMap")[..] else { panic!("one ConfigMap") };
    let data = config["data"].as_object().unwrap();
    assert_eq!(data["url"], "https://argocd.example.com");
    assert_eq!(data.keys().filter(|key| key.starts_with(PREFIX)).count(), 4);
}
