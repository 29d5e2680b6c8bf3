//! What is recorded of an add-on provider.

use std::fs;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{fields::Objects, named::folder};

/// The objects at the end of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub name: String,
    pub objects: Objects,
}

/// A flow, and the objects after each of its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    pub name: String,
    pub steps: Vec<Step>,
}

/// A sample manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Its name among the samples.
    pub file: String,
    /// Its object.
    pub manifest: Value,
}

/// What CAAPH did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The manifests that come with it.
    pub samples: Vec<Sample>,
    /// The flows, by name.
    pub flows: Vec<Flow>,
}

const FILE: &str = "caaph.json";

impl Record {
    /// The one in the repository.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(folder().join(FILE))
            .context("nothing is recorded of CAAPH; run the long form")?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Replaces the one in the repository.
    pub fn write(&self) -> Result<()> {
        Ok(fs::write(folder().join(FILE), format!("{}\n", serde_json::to_string_pretty(self)?))?)
    }
}
