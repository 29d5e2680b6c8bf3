//! The summary `Ready` by core's merge rules, so that our objects look like core's own (I2).
//!
//! The result is that of core's library for the same conditions, byte for byte. There is one difference: when it is set, a
//! message that is too long for the API server is truncated, whereas the API server rejects core's write.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    status::{Status, get},
    types::is_negative,
};
use crate::reasons::{self, ready};

/// The message of core for a condition that is not set.
pub(super) const NOT_YET_REPORTED_MESSAGE: &str = "Condition not yet reported";

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// `False` with an issue, else `Unknown` with an unknown condition, else `True`.
    pub status: Status,
    /// `NotReady`, `ReadyUnknown` or `Ready`.
    pub reason: &'static str,
    /// One bullet for each condition that determines the status, in the requested order.
    pub message: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Priority {
    Issue,
    Unknown,
    Info,
}

/// Merges the conditions of the given types, in that order; a type that is not set counts as unknown.
///
/// With an issue (a positive condition that is `False`, a negative one that is `True`) the reason is `NotReady`; else with an
/// unknown condition `ReadyUnknown`; else `Ready`. The message has a bullet for each issue and each unknown condition; if
/// there is none, one for each condition with a message.
#[must_use]
pub fn summarize(conditions: &[Condition], types: &[&str]) -> Summary {
    let parts: Vec<Part<'_>> = types.iter().map(|type_| Part::of(conditions, type_)).collect();
    let any = |priority| parts.iter().any(|part| part.priority == priority);
    let (status, reason) = if any(Priority::Issue) {
        (Status::False, ready::NOT_READY)
    } else if any(Priority::Unknown) {
        (Status::Unknown, ready::READY_UNKNOWN)
    } else {
        (Status::True, ready::READY)
    };
    let is_listed = |part: &&Part<'_>| match part.priority {
        Priority::Issue | Priority::Unknown => true,
        Priority::Info => status == Status::True && !part.message.is_empty(),
    };
    let bullets: Vec<String> = parts.iter().filter(is_listed).map(Part::bullet).collect();
    Summary { status, reason, message: bullets.join("\n") }
}

/// A bullet for each of these conditions.
pub(super) fn bullets(conditions: &[Condition], types: &[&str]) -> String {
    types.iter().map(|type_| Part::of(conditions, type_).bullet()).collect::<Vec<_>>().join("\n")
}

struct Part<'a> {
    type_: &'a str,
    priority: Priority,
    reason: &'a str,
    message: &'a str,
}

impl<'a> Part<'a> {
    fn of(conditions: &'a [Condition], type_: &'a str) -> Self {
        let Some(condition) = get(conditions, type_) else {
            return Self {
                type_,
                priority: Priority::Unknown,
                reason: reasons::NOT_YET_REPORTED,
                message: NOT_YET_REPORTED_MESSAGE,
            };
        };
        let priority = match (Status::parse(&condition.status), is_negative(type_)) {
            (Status::Unknown, _) => Priority::Unknown,
            (Status::True, true) | (Status::False, false) => Priority::Issue,
            (Status::True, false) | (Status::False, true) => Priority::Info,
        };
        Self { type_, priority, reason: &condition.reason, message: &condition.message }
    }

    fn bullet(&self) -> String {
        let Self { type_, reason, message, .. } = self;
        if message.is_empty() {
            format!("* {type_}: {reason}")
        } else if message.contains('\n') || is_bullet(message) {
            format!("* {type_}:\n{}", indent(message))
        } else {
            format!("* {type_}: {message}")
        }
    }
}

/// Indents lines under a bullet. If only some lines are bullets, the other lines become bullets, and the bullets are nested
/// below them.
fn indent(message: &str) -> String {
    let mixed = !message.split('\n').all(is_bullet);
    let line = |line: &str| match (mixed, is_bullet(line)) {
        (true, true) => format!("    {line}"),
        (true, false) => format!("  * {line}"),
        (false, _) => format!("  {line}"),
    };
    message.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Core treats an asterisk before white space as a bullet anywhere in the line.
fn is_bullet(line: &str) -> bool {
    line.split('*').skip(1).any(|rest| rest.starts_with([' ', '\t', '\n', '\r', '\x0c']))
}
