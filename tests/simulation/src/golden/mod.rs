//! Golden traces: what a seed's run writes (A) and reads (B), as lines that are hashed, to prove that a refactoring changes
//! no behaviour. Lines name what AWS and the API server see, and leave out what is wording: messages and reasons.
//!
//! A run is on one thread from its begin to its end, so what is recorded of it is the thread's.

mod command;
mod wording;

use std::{
    cell::{Cell, RefCell},
    fmt::Write as _,
};

use capasg_cloud::Limits;
use capasg_controllers::{ObjectKey, kubernetes::KubeError};
use capasg_fake_aws::{ApiError, EPOCH, Operation, Service, Tree, operations};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

pub use command::main;

/// What was recorded of a run.
#[derive(Debug, Default)]
struct Recorder {
    writes: Hash,
    reads: Hash,
    /// The lines as text, if they are to be shown.
    lines: Option<Vec<String>>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
    /// Whether an object changes by a write of the controllers.
    static OURS: Cell<bool> = const { Cell::new(false) };
    /// Whether runs are without what strikes at a certain call.
    static WITHOUT_FAULTS: Cell<bool> = const { Cell::new(false) };
    /// Whether calls are without rate limits, so that a read does not delay a write.
    static WITHOUT_LIMITS: Cell<bool> = const { Cell::new(false) };
}

/// FNV-1a of 128 bits, which is the same everywhere.
#[derive(Debug, Clone, Copy)]
struct Hash(u128);

impl Default for Hash {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Hash {
    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }

    fn of(text: &str) -> Self {
        let mut hash = Self::default();
        hash.add(text);
        hash
    }

    fn hex(self) -> String {
        format!("{:016x}", (self.0 >> 64) ^ (self.0 & u128::from(u64::MAX)))
    }
}

fn is_on() -> bool {
    RECORDER.with_borrow(Option::is_some)
}

fn line(at: DateTime<Utc>, mutation: bool, what: &str) {
    RECORDER.with_borrow_mut(|recorder| {
        let Some(recorder) = recorder else { return };
        let millis = at.timestamp_millis() - EPOCH * 1000;
        let line = format!("{} {:>10.3} {what}\n", if mutation { 'A' } else { 'B' }, seconds(millis));
        let hash = if mutation { &mut recorder.writes } else { &mut recorder.reads };
        hash.add(&line);
        if let Some(lines) = &mut recorder.lines {
            lines.push(line);
        }
    });
}

#[expect(clippy::cast_precision_loss, reason = "a few million at most")]
fn seconds(millis: i64) -> f64 {
    millis as f64 / 1000.0
}

/// The parameters of a call, if they are recorded.
pub(crate) fn sent(params: &Tree) -> Value {
    if is_on() { without_user_data(params.to_json()) } else { Value::Null }
}

/// A call of the controllers that AWS received.
pub(crate) fn aws(
    at: DateTime<Utc>,
    service: Service,
    action: &str,
    params: &Value,
    result: &Result<Tree, ApiError>,
) {
    if !is_on() {
        return;
    }
    let known = operations().iter().find(|one| one.service == service && one.action == action);
    // Whatever takes messages out of a queue counts as a read.
    let mutation = service != Service::Sqs && known.is_none_or(Operation::is_mutation);
    let outcome = match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => format!("{} {}", error.status, error.code),
    };
    line(at, mutation, &format!("aws {} {action} {params} -> {outcome}", service.as_str()));
}

/// User data as a hash: they are long.
fn without_user_data(params: Value) -> Value {
    match params {
        Value::Object(members) => {
            let one = |(name, value): (String, Value)| match value {
                Value::String(text) if name == "UserData" => (name, Hash::of(&text).hex().into()),
                value => (name, without_user_data(value)),
            };
            members.into_iter().map(one).collect()
        }
        Value::Array(items) => items.into_iter().map(without_user_data).collect(),
        other => other,
    }
}

/// A read of the controllers that the API server received; `what` is a verb and a kind.
pub(crate) fn read(at: DateTime<Utc>, what: &str, key: &ObjectKey) {
    if is_on() {
        line(at, false, &format!("k8s {what} {key}"));
    }
}

/// Carries out a write of the controllers: what changes by it is theirs.
pub(crate) fn ours<T>(write: impl FnOnce() -> T) -> T {
    OURS.set(is_on());
    let result = write();
    OURS.set(false);
    result
}

/// A write of the controllers to the API server was answered; where it changed something, [`effect`] has it.
pub(crate) fn answered(at: DateTime<Utc>, result: &Result<bool, KubeError>) {
    match result {
        _ if !is_on() => {}
        Ok(true) => {}
        Ok(false) => line(at, true, "k8s unchanged"),
        Err(error) => line(at, true, &format!("k8s refused {}", error.reason())),
    }
}

/// An object changes: created if there was none before, deleted if there is none after.
pub(crate) fn effect<T: Serialize>(
    at: DateTime<Utc>,
    kind: &str,
    key: &ObjectKey,
    before: Option<&T>,
    after: Option<&T>,
) {
    if !OURS.get() {
        return;
    }
    let mut what = format!("k8s {{}} {kind} {key}");
    let Some(after) = after.map(wording::stripped) else {
        return line(at, true, &what.replace("{}", "delete"));
    };
    let text = after.to_string();
    let Some(before) = before.map(wording::stripped) else {
        return line(at, true, &format!("{} {text}", what.replace("{}", "create")));
    };
    let mut changes = Vec::new();
    wording::differences("", &before, &after, &mut changes);
    let verb = if changes.is_empty() { "reword" } else { "update" };
    what = what.replace("{}", verb);
    // The whole object counts, what changed is shown.
    let _ = write!(what, " {} {}", Hash::of(&text).hex(), changes.join(" "));
    line(at, true, &what);
}

/// Whether runs are without what strikes at a certain call or is drawn at each: a read more or less would change all that
/// follows.
pub(crate) fn is_without_faults() -> bool {
    WITHOUT_FAULTS.get()
}

/// The rate limits of calls to AWS.
pub(crate) fn limits() -> Limits {
    if WITHOUT_LIMITS.get() { Limits::unlimited() } else { Limits::default() }
}
