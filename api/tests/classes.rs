//! The variables of the `ClusterClass`es in `templates` reject what the fields reject that they are copied to: core reports
//! an invalid variable to its user, an invalid pool only in a condition of the Cluster.

#![cfg(test)]

use capasg_api::crd;
use serde_json::Value;

const CLASSES: [&str; 2] = [
    include_str!("../../templates/clusterclass-asg-development.yaml"),
    include_str!("../../templates/clusterclass-asg-kubeadm.yaml"),
];

/// The schema of a variable.
fn variable(file: &str, name: &str) -> Value {
    let class = file.split("\n---\n").find(|document| document.contains("kind: ClusterClass\n")).unwrap();
    let class: Value = serde_saphyr::from_str(class).unwrap();
    let variables = class["spec"]["variables"].as_array().unwrap();
    let variable = variables.iter().find(|variable| variable["name"] == name).unwrap();
    variable["schema"]["openAPIV3Schema"].clone()
}

/// The schema of a field of a pool's spec.
fn field(name: &str) -> Value {
    let pool = crd::crds().into_iter().find(|crd| crd.spec.names.kind == "ASGMachinePool").unwrap();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    serde_json::to_value(pool).unwrap().pointer(schema).unwrap()[name].clone()
}

#[test]
fn the_variable_of_instance_types_has_the_limits_of_the_field() {
    let field = field("instanceTypes");
    let items = field["items"]["properties"].as_object().unwrap();
    for file in CLASSES {
        let variable = variable(file, "instanceTypes");
        for limit in ["minItems", "maxItems"] {
            assert_eq!(variable[limit], field[limit], "{limit}");
        }
        assert_eq!(variable["items"]["required"], field["items"]["required"]);
        // Core cannot compile a CEL rule on a list. As long as a type is all of an item, this says the same.
        assert_eq!((variable["uniqueItems"].as_bool(), items.len()), (Some(true), 1));
    }
}
