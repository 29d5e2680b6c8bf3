//! The kinds of the Helm add-on provider: what hooks read of them, and the one field that is written.

use capasg_api::{
    conditions::READY,
    names::addons::{
        CHART_PROXY_LABEL, CLOUD_RESOURCES_REMAIN, KUBERNETES_VERSION, NEXT_KUBERNETES_VERSION, PHASES,
        Phase, Phases, RELEASE_READY, SPECS_UP_TO_DATE,
    },
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::ports::{AddonFacts, ReleaseFacts, ReleaseRequest};

/// A kind of the add-on provider.
pub(super) fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("addons.cluster.x-k8s.io", "v1alpha1", kind))
}

/// Whether a `HelmChartProxy` asks for a phase. A release that never changes is not waited for in an upgrade.
pub(super) fn asks(chart: &DynamicObject, phase: Phase) -> bool {
    let phases = Phases::of(chart.annotations().get(PHASES).map(String::as_str));
    let never_changes = chart.data["spec"]["reconcileStrategy"] == "InstallOnce";
    phases.contain(phase) && !(never_changes && phase.is_of_upgrade())
}

/// The facts of a `HelmChartProxy` for a Cluster; none if it does not select the Cluster. `releases` are those of the Cluster.
pub(super) fn facts_of(
    chart: &DynamicObject,
    cluster: &str,
    releases: &[DynamicObject],
) -> Option<AddonFacts> {
    let name = chart.name_any();
    let release = releases.iter().find(|release| release.labels().get(CHART_PROXY_LABEL) == Some(&name));
    let matching = chart.data.pointer("/status/matchingClusters").and_then(Value::as_array);
    let selects = matching.is_some_and(|all| all.iter().any(|one| one["name"] == cluster));
    (selects || release.is_some()).then(|| AddonFacts {
        name,
        reason: text(condition(chart, SPECS_UP_TO_DATE), "reason"),
        release: release.map(release_facts),
    })
}

fn release_facts(release: &DynamicObject) -> ReleaseFacts {
    let status = &release.data["status"];
    let ready = condition(release, RELEASE_READY);
    let reason = text(ready, "reason");
    // Before its first status, an object has none of both.
    let is_observed = release.metadata.generation.is_some_and(|it| status["observedGeneration"] == it);
    ReleaseFacts {
        name: release.name_any(),
        is_ready: is_observed
            && release.metadata.deletion_timestamp.is_none()
            && text(condition(release, READY), "status") == "True",
        remaining: (reason == CLOUD_RESOURCES_REMAIN).then(|| text(ready, "message")),
        reason,
        kubernetes_version: release.annotations().get(KUBERNETES_VERSION).cloned(),
        next: status[NEXT_KUBERNETES_VERSION].as_str().map(str::to_owned),
    }
}

fn condition<'a>(object: &'a DynamicObject, type_: &str) -> &'a Value {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
    all.and_then(|all| all.iter().find(|condition| condition["type"] == type_)).unwrap_or(&Value::Null)
}

fn text(object: &Value, member: &str) -> String {
    object[member].as_str().unwrap_or_default().to_owned()
}

/// Writes a request. The extension may write only the status, so that it cannot change what is installed.
pub(super) async fn request(client: Client, request: &ReleaseRequest) -> Result<(), kube::Error> {
    let status = json!({"status": {NEXT_KUBERNETES_VERSION: request.next}});
    let releases = resource("HelmReleaseProxy");
    let api: Api<DynamicObject> = Api::namespaced_with(client, &request.namespace, &releases);
    api.patch_status(&request.name, &PatchParams::default(), &Patch::Merge(status)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn chart(phases: &str, spec: &Value, status: &Value) -> DynamicObject {
        let metadata = json!({"name": "csi", "annotations": {PHASES: phases}});
        object(json!({"metadata": metadata, "spec": spec, "status": status}))
    }

    fn release(status: &Value) -> DynamicObject {
        object(json!({
            "metadata": {
                "name": "csi-prod", "generation": 3, "labels": {CHART_PROXY_LABEL: "csi"},
                "annotations": {KUBERNETES_VERSION: "v1.35.1"},
            },
            "status": status,
        }))
    }

    fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": message})
    }

    #[test]
    fn phases_are_asked_for_by_an_annotation() {
        let both = "before-control-plane-upgrade, before-cluster-delete, later";
        let asks = |spec: Value| Phase::ALL.map(|phase| asks(&chart(both, &spec, &json!({})), phase));
        assert_eq!(asks(json!({})), [false, true, false, true]);
        assert_eq!(asks(json!({"reconcileStrategy": "InstallOnce"})), [false, false, false, true]);
    }

    #[test]
    fn a_chart_that_selects_the_cluster_has_facts_with_or_without_a_release() {
        let updating = condition(SPECS_UP_TO_DATE, "False", "VersionNotAvailable", "");
        let status = json!({"matchingClusters": [{"name": "prod"}], "conditions": [updating]});
        let selects = chart("", &json!({}), &status);
        let without = AddonFacts { name: "csi".into(), reason: "VersionNotAvailable".into(), release: None };
        assert_eq!(facts_of(&selects, "prod", &[]), Some(without));
        assert_eq!(facts_of(&selects, "dev", &[]), None);
        let ready = json!({
            "observedGeneration": 3, "nextKubernetesVersion": "v1.36.3",
            "conditions": [condition(READY, "True", "Ready", ""), condition(RELEASE_READY, "True", "Ready", "")],
        });
        let not_selected = chart("", &json!({}), &json!(null));
        let of =
            |status: &Value| facts_of(&not_selected, "prod", &[release(status)]).unwrap().release.unwrap();
        let facts = of(&ready);
        let expected = ReleaseFacts {
            name: "csi-prod".into(),
            is_ready: true,
            reason: "Ready".into(),
            kubernetes_version: Some("v1.35.1".into()),
            next: Some("v1.36.3".into()),
            remaining: None,
        };
        assert_eq!(facts, expected);
        let mut stale = ready.clone();
        stale["observedGeneration"] = json!(2);
        assert!(!of(&stale).is_ready && !of(&json!({})).is_ready && !of(&json!(null)).is_ready);
        let remain = condition(RELEASE_READY, "False", CLOUD_RESOURCES_REMAIN, "Service web/nginx");
        let facts = of(&json!({"observedGeneration": 3, "conditions": [remain]}));
        assert_eq!(facts.remaining.as_deref(), Some("Service web/nginx"));
    }
}
