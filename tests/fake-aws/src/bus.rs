//! EventBridge: the queues of a scope, and the rules by which events come to them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{Scope, ids::Ids, queue::Queue};

/// The queues of a scope and the rules that fill them.
pub(crate) struct Bus {
    /// Of its own: whether anybody listens must not change what else happens.
    pub(crate) ids: Ids,
    pub(crate) queues: BTreeMap<String, Queue>,
    pub(crate) rules: Vec<(String, Value)>,
}

impl Bus {
    pub(crate) fn new(seed: u64, scope: &Scope) -> Self {
        Self {
            ids: Ids::new(seed.rotate_left(32) ^ 0x5eed, scope),
            queues: BTreeMap::new(),
            rules: Vec::new(),
        }
    }

    pub(crate) fn id(&mut self) -> String {
        self.ids.uuid()
    }

    pub(crate) fn put_rule(&mut self, queue: &str, pattern: Value) {
        self.rules.push((queue.to_owned(), pattern));
    }

    pub(crate) fn remove(&mut self, queue: &str) {
        self.queues.remove(queue);
        self.rules.retain(|(name, _)| name != queue);
    }

    pub(crate) fn has_messages(&self, now: DateTime<Utc>) -> bool {
        self.queues.values().any(|queue| queue.has_messages(now))
    }

    pub(crate) fn messages(&self) -> usize {
        self.queues.values().map(Queue::len).sum()
    }
}

/// Whether an event matches a pattern: every member that the pattern has must be one of its values; a value may be a
/// `prefix`. Nothing else of EventBridge's patterns is known, and a pattern that has it matches nothing.
pub(crate) fn matches(pattern: &Value, event: &Value) -> bool {
    match pattern {
        Value::Object(members) => members.iter().all(|(name, wanted)| match event.get(name) {
            Some(found) => matches(wanted, found),
            None => false,
        }),
        Value::Array(values) => values.iter().any(|value| match (value, event) {
            (value, Value::Array(found)) => found.iter().any(|one| matches_one(value, one)),
            (value, found) => matches_one(value, found),
        }),
        _ => false,
    }
}

fn matches_one(value: &Value, found: &Value) -> bool {
    match value.get("prefix").and_then(Value::as_str) {
        Some(prefix) => found.as_str().is_some_and(|found| found.starts_with(prefix)),
        None => value == found,
    }
}
