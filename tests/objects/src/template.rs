//! `ASGMachinePoolTemplate`s, right and wrong: pools as templates, so that each case of a pool is one of its template.

use capasg_api::template::message_of_template;
use serde_json::{Value, json};

use super::case::{CelCase, ValidCase, refused, taken, taken_change};
use super::edit::{with, without};
use super::pool::{minimal_pool, valid_pools};
use super::pool_limits::schema_cases_of_pools;
use super::pool_rules::pool_cases;

/// The smallest template: the smallest pool.
#[must_use]
pub fn minimal_template() -> Value {
    template_of(&minimal_pool())
}

/// The template that pools like this one come from: without what is written for one pool alone.
#[must_use]
pub fn template_of(pool: &Value) -> Value {
    let mut spec = pool["spec"].clone();
    for path in ["providerID", "providerIDList", "group/name", "adoptionPolicy"] {
        let there = spec.pointer(&format!("/{path}")).is_some();
        if there {
            spec = without(spec, path);
        }
    }
    json!({
        "apiVersion": pool["apiVersion"],
        "kind": "ASGMachinePoolTemplate",
        "metadata": pool["metadata"],
        "spec": { "template": { "spec": spec } },
    })
}

/// Objects and changes that must be taken: those of pools, metadata, and changes that a pool would refuse.
#[must_use]
pub fn valid_templates() -> Vec<ValidCase> {
    let of_pools = valid_pools().into_iter().map(|case| ValidCase {
        name: name_of_template(&case.name),
        object: template_of(&case.object),
        old: case.old.as_ref().map(template_of),
    });
    let metadata = json!({
        "labels": { "example.com/team": "a".repeat(63) },
        "annotations": { "example.com/note": "b".repeat(100_000) },
    });
    let region_changed = with(minimal_template(), "spec/template/spec/region", "us-east-1");
    of_pools
        .chain([
            taken("template-metadata", with(minimal_template(), "spec/template/metadata", metadata)),
            taken_change("template-region-changed", minimal_template(), region_changed),
        ])
        .collect()
}

/// At least one wrong template for every rule of templates, which are those of pools that judge neither a change nor the
/// region of what a pool names.
#[must_use]
pub fn template_cases() -> Vec<CelCase> {
    let cases = pool_cases();
    let by_itself = cases.iter().filter(|case| case.old.is_none());
    let there = by_itself.filter(|case| {
        ["providerID", "adoptionPolicy"].iter().all(|field| case.object["spec"][*field].is_null())
    });
    there.filter(|case| !case.message.contains(" of spec.region;")).map(as_template).collect()
}

/// Wrong templates that limits, patterns and enums refuse.
pub(super) fn schema_cases_of_templates() -> Vec<CelCase> {
    let of_pools = schema_cases_of_pools();
    // What templates lack cannot be wrong in them.
    let there = of_pools.iter().filter(|case| {
        let spec = &case.object["spec"];
        spec["providerIDList"].is_null()
            && spec["adoptionPolicy"].is_null()
            && spec.pointer("/group/name").is_none()
    });
    let long = json!({ "labels": { "team": "a".repeat(64) } });
    there
        .map(as_template)
        .chain([
            refused(
                "template-without-spec",
                without(minimal_template(), "spec/template/spec"),
                "spec.template.spec: Required value",
            ),
            refused(
                "template-label-too-long",
                with(minimal_template(), "spec/template/metadata", long),
                "spec.template.metadata.labels.team",
            ),
        ])
        .collect()
}

fn as_template(case: &CelCase) -> CelCase {
    CelCase {
        name: name_of_template(&case.name),
        object: template_of(&case.object),
        old: None,
        message: message_of_template(&case.message),
    }
}

fn name_of_template(name: &str) -> String {
    name.replacen("pool-", "template-", 1)
}
