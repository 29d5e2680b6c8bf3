//! All cases of all kinds.

use super::{
    case::{CelCase, ValidCase},
    machine::{machine_cases, valid_machines},
    operators::{operator_cases, valid_operators},
    pool::valid_pools,
    pool_limits::schema_cases_of_pools,
    pool_rules::pool_cases,
    template::{schema_cases_of_templates, template_cases, valid_templates},
};

/// At least one wrong object for every CEL rule of every kind.
#[must_use]
pub fn cel_cases() -> Vec<CelCase> {
    [pool_cases(), template_cases(), machine_cases(), operator_cases()].concat()
}

/// Wrong objects that limits, patterns and enums reject, with a part of the API server's message.
#[must_use]
pub fn schema_cases() -> Vec<CelCase> {
    [schema_cases_of_pools(), schema_cases_of_templates()].concat()
}

/// Minimal, maximal and edited objects of every kind, all right.
#[must_use]
pub fn valid_cases() -> Vec<ValidCase> {
    [valid_pools(), valid_templates(), valid_machines(), valid_operators()].concat()
}
