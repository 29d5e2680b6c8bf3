//! Every status that is written fits the schema of its CRD: the API server rejects one that does not as a whole.

use std::{collections::BTreeMap, sync::OnceLock};

use capasg_api::crd;
use capasg_controllers::kubernetes::KubeWrite;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::state::{Inner, Invariants};

impl Invariants {
    /// A status exceeds no limit of its schema.
    pub(super) fn a_status_fits_its_schema(inner: &mut Inner, now: DateTime<Utc>, write: &KubeWrite) {
        let exceeded = match write {
            KubeWrite::PatchPoolStatus { status, .. } => exceeded_limits("ASGMachinePool", status),
            KubeWrite::PatchAsgMachineStatus { status, .. } => exceeded_limits("ASGMachine", status),
            _ => return,
        };
        if !exceeded.is_empty() {
            inner.breaks(now, "a_status_fits_its_schema", exceeded.join(", "));
        }
    }
}

/// The limits of the schema of its kind that a status exceeds.
pub fn exceeded_limits(kind: &str, status: &impl Serialize) -> Vec<String> {
    let value = serde_json::to_value(status).unwrap_or_default();
    match schemas().get(kind) {
        Some(schema) => capasg_test_objects::exceeded_limits(schema, &value, "status"),
        None => vec![format!("{kind} has no schema")],
    }
}

/// The schemas of statuses by kind. They are the same in all runs.
fn schemas() -> &'static BTreeMap<String, Value> {
    static SCHEMAS: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let schema = |definition: &Value| {
            definition.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status").cloned()
        };
        let kinds = crd::crds().into_iter().filter_map(|definition| {
            let kind = definition.spec.names.kind.clone();
            Some((kind, schema(&serde_json::to_value(definition).ok()?)?))
        });
        kinds.collect()
    })
}
