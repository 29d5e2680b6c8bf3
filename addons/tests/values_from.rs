//! Values of a release from `ConfigMaps` and Secrets, with the real Helm.

mod support;

use capasg_addons::{HelmChartProxy, controller::Next, controller::preview};
use chrono::Utc;
use serde_json::{Value, json};
use support::{
    Outcome,
    lab::{CLUSTER, Lab, SECRETS, secret},
};

const ANNOTATION: &str = "asg.addons.cluster.x-k8s.io/values-from";
/// What the values of the Secret contain.
const CONFIDENTIAL: &str = "c0nfidential";

fn put_map(lab: &Lab, data: &Value) {
    let metadata = json!({"name": "base", "namespace": "teams"});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    lab.management.put("/api/v1/namespaces/teams/configmaps/base", map);
}

fn put_secret(lab: &Lab, data: &[(&str, &str)]) {
    lab.management.put(&format!("{SECRETS}/db"), secret("db", data));
}

/// The annotation with both objects, of which the Secret overrides the `ConfigMap`.
fn both(is_optional: bool) -> Value {
    let map = json!({"kind": "ConfigMap", "name": "base"});
    json!(
        json!([map, {"kind": "Secret", "name": "db", "key": "prod.yaml", "optional": is_optional}])
            .to_string()
    )
}

/// The values of the chart's `ConfigMap` that are in the workload cluster.
fn password(lab: &Lab) -> Value {
    let name = lab.object()["spec"]["releaseName"].as_str().unwrap_or_default().to_owned();
    let map = lab.workload.get(&format!("/api/v1/namespaces/kube-system/configmaps/{name}"));
    map.unwrap_or_default()["data"]["password"].clone()
}

/// Nothing of the Secret is in the object or in an event.
fn assert_confidential(lab: &Lab) {
    let mut all = vec![lab.object()];
    let events = lab.management.paths("/apis/events.k8s.io/v1/namespaces/teams/events/");
    assert!(!events.is_empty());
    all.extend(events.iter().filter_map(|path| lab.management.get(path)));
    assert!(!json!(all).to_string().contains(CONFIDENTIAL));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_follows_the_objects_with_its_values() -> Outcome {
    let lab = Lab::new().await?;
    put_map(&lab, &json!({"values.yaml": "password: base\nbase: true\n"}));
    put_secret(&lab, &[("prod.yaml", &format!("password: {CONFIDENTIAL}\n"))]);
    lab.change(|object| {
        object["metadata"]["annotations"][ANNOTATION] = both(false);
        object["spec"]["values"] = json!("");
    });
    assert_eq!(lab.settle().await?, Next::Later);
    assert_eq!((lab.condition("Ready").0.as_str(), password(&lab)), ("True", json!(CONFIDENTIAL)));
    assert_confidential(&lab);
    let versions = (lab.management.version(), lab.workload.version());
    assert_eq!(lab.settle().await?, Next::Later);
    assert_eq!((lab.management.version(), lab.workload.version()), versions, "nothing has changed");

    put_secret(&lab, &[("prod.yaml", &format!("password: {CONFIDENTIAL}-2\n"))]);
    lab.settle().await?;
    assert_eq!((password(&lab), &lab.object()["status"]["revision"]), (json!("c0nfidential-2"), &json!(2)));
    put_map(&lab, &json!({"values.yaml": "password: other\n"}));
    lab.settle().await?;
    assert_eq!((password(&lab), &lab.object()["status"]["revision"]), (json!("c0nfidential-2"), &json!(3)));
    lab.change(|object| object["spec"]["values"] = json!("password: of-spec\n"));
    lab.settle().await?;
    assert_eq!((password(&lab), &lab.object()["status"]["revision"]), (json!("of-spec"), &json!(4)));
    lab.change(|object| object["spec"]["values"] = json!("password: null\n"));
    lab.settle().await?;
    assert_eq!((password(&lab), &lab.object()["status"]["revision"]), (json!(""), &json!(5)));
    let version = lab.workload.version();
    lab.settle().await?;
    assert_eq!(lab.workload.version(), version, "the release has the null");
    assert_confidential(&lab);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_are_missing_or_invalid_change_nothing() -> Outcome {
    let lab = Lab::new().await?;
    let fails = async || -> Outcome<String> {
        let version = lab.workload.version();
        assert!(matches!(lab.settle().await?, Next::At(at) if at > Utc::now()), "it is not repeated at once");
        assert_eq!(lab.workload.version(), version, "the workload cluster stays as it is");
        let (status, reason, message) = lab.condition("HelmReleaseReady");
        assert_eq!((status.as_str(), reason.as_str()), ("False", "HelmInstallOrUpgradeFailed"), "{message}");
        assert!(!lab.object().to_string().contains(CONFIDENTIAL));
        Ok(message)
    };
    lab.change(|object| {
        object["metadata"]["annotations"][ANNOTATION] = both(false);
        object["spec"]["values"] = json!("");
    });
    assert!(
        fails().await?.starts_with("ConfigMap base does not exist in the namespace of the HelmChartProxy")
    );
    put_map(&lab, &json!({"values.yaml": "password: base\n"}));
    put_secret(&lab, &[("other.yaml", CONFIDENTIAL)]);
    assert_eq!(fails().await?, "Secret db has no key prod.yaml");
    for text in [CONFIDENTIAL, "- c0nfidential", "a: {c0nfidential", "a: c0nfidential\na: b\n\t"] {
        put_secret(&lab, &[("prod.yaml", text)]);
        assert_eq!(fails().await?, "key prod.yaml of Secret db is not YAML of a map", "{text}");
    }
    put_secret(&lab, &[("prod.yaml", &format!("a: {}\n", CONFIDENTIAL.repeat(100_000)))]);
    assert!(fails().await?.contains("have more than 1048576 bytes together"));
    lab.change(|object| object["metadata"]["annotations"][ANNOTATION] = json!(CONFIDENTIAL.to_uppercase()));
    assert!(fails().await?.contains("values-from is not a list of objects with kind"));

    // The failure ends without another change of the object.
    lab.change(|object| object["metadata"]["annotations"][ANNOTATION] = both(true));
    put_secret(&lab, &[("other.yaml", CONFIDENTIAL)]);
    lab.settle().await?;
    assert_eq!((lab.condition("Ready").0.as_str(), password(&lab)), ("True", json!("base")));
    lab.management.remove(&format!("{SECRETS}/db"));
    lab.settle().await?;
    assert_eq!(lab.condition("Ready").0, "True", "it is optional");

    // An uninstallation does not require them.
    lab.management.remove("/api/v1/namespaces/teams/configmaps/base");
    assert!(fails().await?.starts_with("ConfigMap base does not exist"));
    lab.change(|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert_eq!(lab.settle().await?, Next::Never);
    assert_eq!(lab.releases().len(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_failed_is_repeated_once_its_values_change() -> Outcome {
    let lab = Lab::new().await?;
    put_map(&lab, &json!({"values.yaml": "password: base\n"}));
    let annotation = json!(r#"[{"kind": "ConfigMap", "name": "base"}]"#);
    lab.change(|object| {
        object["metadata"]["annotations"][ANNOTATION] = annotation;
        object["spec"]["version"] = json!("9.9.9");
        object["spec"]["values"] = json!("");
    });
    let Next::At(until) = lab.settle().await? else { return Err("it was installed".into()) };
    assert_eq!(lab.step().await?, Next::At(until), "no operation before");
    put_map(&lab, &json!({"values.yaml": "password: other\n"}));
    assert_eq!(lab.step().await?, Next::Now, "it is tried at once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_has_the_keys_of_values_in_objects() -> Outcome {
    const CHART: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name";
    let lab = Lab::new().await?;
    lab.management.change(CLUSTER, |cluster| cluster["metadata"]["labels"] = json!({"cni": "demo"}));
    lab.change(|object| {
        object["metadata"]["labels"][CHART] = json!("cni");
        object["spec"]["tlsConfig"]["caSecret"]["namespace"] = json!("teams");
    });
    lab.settle().await?;
    put_map(&lab, &json!({"values.yaml": "password: base\nuser: {name: robot}\n"}));
    let spec = lab.object()["spec"].clone();
    let mut proxy = json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": "cni", "namespace": "teams", "annotations": {ANNOTATION: both(true)}},
        "spec": {
            "clusterSelector": {"matchLabels": {"cni": "demo"}}, "chartName": "demo", "repoURL": spec["repoURL"],
            "namespace": "kube-system", "version": "1.0.0", "valuesTemplate": "password: yes\n",
            "credentials": {"secret": {"name": "login"}}, "tlsConfig": spec["tlsConfig"], "options": spec["options"],
        },
    });
    let text = async |proxy: &Value| -> Outcome<String> {
        let proxy: HelmChartProxy = serde_json::from_value(proxy.clone())?;
        Ok(preview(&lab.context, &proxy, false, Utc::now()).await?.to_string())
    };
    let printed = text(&proxy).await?;
    assert!(printed.contains("  prod  upgrade ") && printed.ends_with("      values: + user\n"), "{printed}");
    lab.management.remove("/api/v1/namespaces/teams/configmaps/base");
    let printed = text(&proxy).await?;
    assert!(printed.contains("ConfigMap base does not exist") && !printed.contains("values:"), "{printed}");
    proxy["metadata"]["annotations"][ANNOTATION] = json!("base");
    let printed = text(&proxy).await?;
    assert!(
        printed.contains("  prod  nothing ") && printed.contains("values-from is not a list"),
        "{printed}"
    );
    Ok(())
}
