//! The rules themselves, as `rules.yaml` has them.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// All rules, by group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// In the order of the contract.
    pub groups: Vec<Group>,
}

/// Rules with the same letter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Letter and topic.
    pub name: String,
    /// By their numbers.
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// For example `B6`.
    pub id: String,
    /// How much it binds.
    pub level: Level,
    /// What it says, in a sentence.
    pub text: String,
    /// Why no test shows it; such a rule may have none.
    pub absent: Option<Absent>,
}

/// Why a rule has no test, with the reason.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub enum Absent {
    /// It does not apply to CAPASG.
    #[serde(rename = "not applicable")]
    NotApplicable(String),
    /// It applies, and nothing in this environment could show it.
    #[serde(rename = "not shown")]
    NotShown(String),
    /// It applies, and CAPASG does not keep it yet.
    #[serde(rename = "open")]
    Open(String),
}

impl Absent {
    /// The verdict in words.
    #[must_use]
    pub const fn verdict(&self) -> &'static str {
        match self {
            Self::NotApplicable(_) => "not applicable",
            Self::NotShown(_) => "applies, not shown here",
            Self::Open(_) => "open",
        }
    }

    /// The reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::NotApplicable(reason) | Self::NotShown(reason) | Self::Open(reason) => reason,
        }
    }
}

/// How much a rule binds.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
pub enum Level {
    /// The written contract demands it.
    #[serde(rename = "MUST")]
    Must,
    /// Core or clusterctl fail without it, though the contract does not say so.
    #[serde(rename = "MUST*")]
    MustInFact,
    /// The contract advises it.
    #[serde(rename = "SHOULD")]
    Should,
    /// The contract allows it.
    #[serde(rename = "MAY")]
    May,
}

impl Level {
    /// As it is printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::MustInFact => "MUST*",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        }
    }
}

impl Rules {
    /// The rules that this program was built with.
    ///
    /// # Errors
    /// When the file cannot be read, an ID is there twice, or one stands in the group of another letter.
    pub fn load() -> Result<Self> {
        let rules: Self =
            serde_saphyr::from_str(include_str!("../rules.yaml")).context("cannot read rules.yaml")?;
        let mut seen = BTreeSet::new();
        for group in &rules.groups {
            for rule in &group.rules {
                ensure!(seen.insert(&rule.id), "rules.yaml has {} twice", rule.id);
                ensure!(
                    rule.id.get(..1) == group.name.get(..1),
                    "rules.yaml has {} in group {}",
                    rule.id,
                    group.name
                );
            }
        }
        Ok(rules)
    }

    /// All rules in order.
    pub fn all(&self) -> impl Iterator<Item = &Rule> {
        self.groups.iter().flat_map(|group| &group.rules)
    }

    /// The rule of this ID.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.all().find(|rule| rule.id == id)
    }
}
