//! A template of a request: its text, which is parsed only if it is of a kind that is needed.

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// A template as text. Most templates of a topology are of other providers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(Box<RawValue>);

/// What is read of every template. A field of another type makes it a template of no kind.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kind {
    api_version: String,
    kind: String,
}

impl Template {
    /// The template, if its version and kind are accepted.
    pub(crate) fn of_kind(&self, is_needed: impl Fn(&str, &str) -> bool) -> Option<Value> {
        let kind: Kind = serde_json::from_str(self.0.get()).ok()?;
        is_needed(&kind.api_version, &kind.kind).then(|| serde_json::from_str(self.0.get()).ok())?
    }
}

impl Default for Template {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}
