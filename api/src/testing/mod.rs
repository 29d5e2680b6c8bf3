//! Material for tests of other crates: objects that the API server must take, and ones that it must refuse with a given
//! message. Rules run on the API server, so only a test against a real one proves them.

mod edit;
mod foreign;
mod generated;
mod machine;
mod pool;
mod pool_limits;
mod pool_rules;
mod random;
mod template;

use serde_json::Value;

pub use edit::{with, without};
pub use foreign::foreign;
pub use generated::Generator;
pub use machine::{machine, machine_cases, valid_machines};
pub use pool::{maximal_pool, minimal_pool, valid_pools};
use pool_limits::schema_cases_of_pools;
pub use pool_rules::pool_cases;
pub use random::Random;
pub use template::{minimal_template, template_cases, template_of, valid_templates};

/// An object that the API server must refuse.
///
/// Where `old` is set, it is created for real, and `object` is sent as its update; otherwise `object` is sent as a new
/// object. Either is sent with `dryRun=All`. Namespace and resourceVersion are the test's to fill in.
#[derive(Clone, Debug)]
pub struct CelCase {
    /// What the case is about, unique.
    pub name: String,
    /// What is sent.
    pub object: Value,
    /// What was there before, for rules on changes.
    pub old: Option<Value>,
    /// A part of the API server's answer: for a rule its whole message.
    pub message: String,
}

/// An object, or a change, that the API server must take.
#[derive(Clone, Debug)]
pub struct ValidCase {
    /// What the case is about, unique.
    pub name: String,
    /// What is sent.
    pub object: Value,
    /// What was there before, for changes.
    pub old: Option<Value>,
}

/// At least one wrong object for every CEL rule of every kind.
#[must_use]
pub fn cel_cases() -> Vec<CelCase> {
    [pool_cases(), template_cases(), machine_cases()].concat()
}

/// Wrong objects that limits, patterns and enums refuse, with a part of the API server's own words.
#[must_use]
pub fn schema_cases() -> Vec<CelCase> {
    [schema_cases_of_pools(), template::schema_cases_of_templates()].concat()
}

/// Minimal, maximal and edited objects of every kind, all right.
#[must_use]
pub fn valid_cases() -> Vec<ValidCase> {
    [valid_pools(), valid_templates(), valid_machines()].concat()
}

fn refused(name: &str, object: Value, message: &str) -> CelCase {
    CelCase { name: name.to_owned(), object, old: None, message: message.to_owned() }
}

fn refused_change(name: &str, old: Value, object: Value, message: &str) -> CelCase {
    CelCase { name: name.to_owned(), object, old: Some(old), message: message.to_owned() }
}

fn taken(name: &str, object: Value) -> ValidCase {
    ValidCase { name: name.to_owned(), object, old: None }
}

fn taken_change(name: &str, old: Value, object: Value) -> ValidCase {
    ValidCase { name: name.to_owned(), object, old: Some(old) }
}
