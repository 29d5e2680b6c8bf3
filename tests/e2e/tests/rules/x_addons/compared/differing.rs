//! What is recorded of our provider: the fields that differ from those of CAAPH.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::{
    named::folder,
    record::{Flow, Step},
    table::Row,
};

const FILE: &str = "ours.json";

/// Our values by flow, step, object and field; none for a field that CAAPH alone has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Differing(BTreeMap<String, BTreeMap<String, BTreeMap<String, Values>>>);

type Values = BTreeMap<String, Option<String>>;

impl Differing {
    /// Those of a comparison.
    pub fn of(rows: &[Row]) -> Self {
        let mut differing = Self::default();
        for row in rows.iter().filter(|row| !row.is_same()) {
            let of_flow = differing.0.entry(row.flow.clone()).or_default();
            let values = of_flow.entry(row.step.clone()).or_default().entry(row.object.clone()).or_default();
            values.insert(row.field.clone(), row.ours.clone());
        }
        differing
    }

    /// Those in the repository.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(folder().join(FILE)).context("nothing is recorded of our provider")?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Replaces those in the repository.
    pub fn write(&self) -> Result<()> {
        Ok(fs::write(folder().join(FILE), format!("{}\n", serde_json::to_string_pretty(self)?))?)
    }

    /// Our flows, from those of CAAPH.
    pub fn applied_to(&self, theirs: &[Flow]) -> Vec<Flow> {
        let mut flows = theirs.to_vec();
        for (flow, steps) in &self.0 {
            let flow =
                index(&mut flows, |one| one.name == *flow, || Flow { name: flow.clone(), steps: Vec::new() });
            for (step, objects) in steps {
                for (object, values) in objects {
                    let here = |one: &Step| one.name == *step && one.objects.contains_key(object);
                    let step = index(&mut flows[flow].steps, here, || Step {
                        name: step.clone(),
                        objects: BTreeMap::default(),
                    });
                    let fields = flows[flow].steps[step].objects.entry(object.clone()).or_default();
                    for (field, value) in values {
                        match value {
                            Some(value) => fields.insert(field.clone(), value.clone()),
                            None => fields.remove(field),
                        };
                    }
                }
            }
        }
        flows
    }
}

/// Where the item is, which is added if there is none.
fn index<T>(items: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    items.iter().position(is_it).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    })
}
