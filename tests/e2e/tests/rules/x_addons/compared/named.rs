//! The differences that are meant.

use std::{fs, path::PathBuf};

use anyhow::Result;
use serde::Deserialize;

use super::table::Row;

/// The folder of the data.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rules/x_addons/compared")
}

/// Which of both has the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Theirs,
    Ours,
    Both,
}

/// A difference with its reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// What differs.
    pub what: String,
    /// Why.
    pub why: String,
    /// Flows by the beginnings of their names; none for all.
    #[serde(default)]
    flows: Vec<String>,
    /// The beginnings of the names of steps; none for all.
    #[serde(default)]
    steps: Vec<String>,
    /// The beginning of the object.
    #[serde(default)]
    object: String,
    /// The beginnings of the fields.
    fields: Vec<String>,
    /// The end of the field.
    #[serde(default)]
    end: String,
    /// Which of both has the field.
    has: Side,
    /// The value with CAAPH, if it is one.
    theirs: Option<String>,
    /// The value with ours, if it is one.
    ours: Option<String>,
}

impl Named {
    /// Whether this difference is the one that is named.
    pub fn is(&self, row: &Row) -> bool {
        let has = match (&row.theirs, &row.ours) {
            (Some(_), Some(_)) => Side::Both,
            (Some(_), None) => Side::Theirs,
            (None, _) => Side::Ours,
        };
        let any = |all: &[String], name: &str| all.is_empty() || all.iter().any(|one| name.starts_with(one));
        let is_value = |expected: Option<&str>, value: Option<&str>| expected.is_none() || expected == value;
        has == self.has
            && any(&self.flows, &row.flow)
            && any(&self.steps, &row.step)
            && row.object.starts_with(&self.object)
            && any(&self.fields, &row.field)
            && row.field.ends_with(&self.end)
            && is_value(self.theirs.as_deref(), row.theirs.as_deref())
            && is_value(self.ours.as_deref(), row.ours.as_deref())
    }
}

/// All of them. The first that applies counts.
pub fn named() -> Result<Vec<Named>> {
    Ok(serde_saphyr::from_str(&fs::read_to_string(folder().join("differences.yaml"))?)?)
}
