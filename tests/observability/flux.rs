//! The example for Flux: what it refers to exists.

use capasg_addons::HelmChartProxy;
use kube::Resource as _;
use serde_json::Value;

use super::{documents, of_kind, read};

#[test]
fn the_example_refers_to_its_own_objects_and_to_our_kinds() {
    let objects = documents(&read("config/flux/clusters.yaml"));
    let [source] = of_kind(&objects, "GitRepository")[..] else { panic!("one GitRepository") };
    let kustomizations = of_kind(&objects, "Kustomization");
    let names: Vec<&Value> = kustomizations.iter().map(|object| &object["metadata"]["name"]).collect();
    for kustomization in &kustomizations {
        let spec = &kustomization["spec"];
        assert_eq!(spec["sourceRef"]["name"], source["metadata"]["name"]);
        assert!(spec["timeout"].is_string(), "the default of Flux is shorter than a control plane takes");
        for other in spec["dependsOn"].as_array().into_iter().flatten() {
            assert!(names.contains(&&other["name"]), "{other}");
        }
        let checks = ["healthChecks", "healthCheckExprs"].map(|field| spec[field].as_array());
        let waits = spec["wait"] == true;
        assert!(waits != checks.iter().any(Option::is_some), "Flux ignores checks with `wait`");
        for check in checks.into_iter().flatten().flatten() {
            assert_eq!(check["apiVersion"], HelmChartProxy::api_version(&()).as_ref());
            assert_eq!(check["kind"], HelmChartProxy::kind(&()).as_ref());
        }
    }
    assert_eq!(kustomizations.len(), 3);
}

#[test]
fn the_network_plugin_waits_for_no_nodes() {
    let objects = documents(&read("config/flux/clusters.yaml"));
    let kustomizations = of_kind(&objects, "Kustomization");
    let installs_it = |object: &&&Value| object["spec"]["healthChecks"][0]["name"] == "cni";
    let found = kustomizations.iter().find(installs_it).expect("a Kustomization checks the network plugin");
    assert!(found["spec"]["dependsOn"].is_null(), "{found}");
}
