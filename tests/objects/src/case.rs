//! A case of admission: an object that is sent, and what the API server must answer.

use serde_json::Value;

/// An object that the API server must reject.
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

/// An object, or a change, that the API server must accept.
#[derive(Clone, Debug)]
pub struct ValidCase {
    /// What the case is about, unique.
    pub name: String,
    /// What is sent.
    pub object: Value,
    /// What was there before, for changes.
    pub old: Option<Value>,
}

/// A new object that is rejected.
pub fn refused(name: &str, object: Value, message: &str) -> CelCase {
    CelCase { name: name.to_owned(), object, old: None, message: message.to_owned() }
}

/// A change that is rejected.
pub fn refused_change(name: &str, old: Value, object: Value, message: &str) -> CelCase {
    CelCase { name: name.to_owned(), object, old: Some(old), message: message.to_owned() }
}

/// A new object that is accepted.
pub fn taken(name: &str, object: Value) -> ValidCase {
    ValidCase { name: name.to_owned(), object, old: None }
}

/// A change that is accepted.
pub fn taken_change(name: &str, old: Value, object: Value) -> ValidCase {
    ValidCase { name: name.to_owned(), object, old: Some(old) }
}
