//! `ASGMachine`s, right and wrong.

use serde_json::{Value, json};

use super::case::{CelCase, ValidCase, refused, refused_change, taken};
use super::edit::with;

/// An instance as the controller makes it.
#[must_use]
pub fn machine() -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "ASGMachine",
        "metadata": { "name": "workers-i-0a1b2c3d4e5f60718" },
        "spec": { "providerID": "aws:///eu-west-1a/i-0a1b2c3d4e5f60718", "instanceID": "i-0a1b2c3d4e5f60718" },
    })
}

/// Objects and changes that must be taken.
#[must_use]
pub fn valid_machines() -> Vec<ValidCase> {
    vec![taken("instance", machine())]
}

/// At least one wrong object for every rule of `ASGMachine`.
#[must_use]
pub fn machine_cases() -> Vec<CelCase> {
    let other = with(machine(), "spec/instanceID", "i-0123456789abcdef0");
    vec![
        refused(
            "instance-of-another-provider-id",
            other.clone(),
            "spec.instanceID: must be the instance of spec.providerID",
        ),
        refused_change(
            "instance-provider-id-changed",
            machine(),
            with(machine(), "spec/providerID", "aws:///eu-west-1b/i-0a1b2c3d4e5f60718"),
            "spec.providerID: cannot be changed",
        ),
        refused_change("instance-id-changed", machine(), other, "spec.instanceID: cannot be changed"),
    ]
}
