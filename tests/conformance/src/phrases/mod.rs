//! Words of our own that do not belong into what users read: events, conditions, logs, help, `kubectl explain`, docs.
//!
//! `phrases.yaml` lists them with what to say instead, and where one is allowed for a reason.

mod definitions;
mod markdown;
mod program;
#[cfg(test)]
mod tests;
mod text;

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::{root, tree};
pub use text::Text;
use text::words;

/// The phrases that are not to be used, and the places where one may be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phrases {
    banned: Vec<Banned>,
    #[serde(default)]
    allowed: Vec<Allowed>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Banned {
    phrases: Vec<String>,
    say: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    path: String,
    text: String,
    #[expect(dead_code, reason = "for those who read the list")]
    reason: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// From the root of the tree.
    pub path: String,
    /// A line for people: where, which phrase, what to say instead, and the text around it.
    pub line: String,
}

/// The folders whose string literals users read: of the product, and of the demo.
const PROGRAMS: [&str; 8] = [
    "src",
    "addons/src",
    "api/src",
    "cloud/src",
    "cloud/aws/src",
    "controllers/src",
    "extensions/src",
    "tests/environment/src/demo",
];

impl Phrases {
    /// Those of the tree.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn load() -> Result<Self> {
        let path = root().join("tests/conformance/phrases.yaml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_saphyr::from_str(&text).with_context(|| format!("cannot parse {}", path.display()))
    }

    /// What is found in all that users read.
    ///
    /// # Errors
    /// When a file cannot be read, or when something is allowed that does not occur any more.
    pub fn findings(&self) -> Result<Vec<Finding>> {
        let texts = visible()?;
        for allowed in &self.allowed {
            let occurs =
                texts.iter().any(|text| text.path == allowed.path && text.text.contains(&allowed.text));
            ensure!(occurs, "phrases.yaml allows what {} does not say: {}", allowed.path, allowed.text);
        }
        let found: BTreeSet<Finding> = texts.iter().flat_map(|text| self.in_text(text)).collect();
        Ok(found.into_iter().collect())
    }

    fn in_text(&self, text: &Text) -> Vec<Finding> {
        let mut left = text.text.clone();
        for allowed in self.allowed.iter().filter(|allowed| allowed.path == text.path) {
            left = left.replace(&allowed.text, " ");
        }
        let words = words(&left);
        let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let mut found = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let Some((length, phrase, say)) = self.longest(&lower[at..]) else {
                at += 1;
                continue;
            };
            let around = words[at.saturating_sub(5)..words.len().min(at + length + 5)].join(" ");
            found.push(Finding {
                path: text.path.clone(),
                line: format!("{}:{}: \"{phrase}\" ({say}): {around}", text.path, text.place),
            });
            at += length;
        }
        found
    }

    /// The longest phrase that these words begin with: how many words, the phrase, and what to say instead.
    fn longest(&self, words: &[String]) -> Option<(usize, &str, &str)> {
        let all =
            self.banned.iter().flat_map(|banned| banned.phrases.iter().map(|phrase| (phrase, &banned.say)));
        let here = all.filter_map(|(phrase, say)| {
            let length = phrase.split(' ').count();
            let begin = words.get(..length)?;
            begin.iter().eq(phrase.split(' ')).then_some((length, phrase.as_str(), say.as_str()))
        });
        here.max_by_key(|(length, ..)| *length)
    }
}

/// All texts that users read.
fn visible() -> Result<Vec<Text>> {
    let mut texts = Vec::new();
    for path in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"] {
        texts.extend(markdown::texts(path, &tree::read(path)?.text));
    }
    for file in tree::files(&["docs"], "md")? {
        texts.extend(markdown::texts(&file.path, &file.text));
    }
    for file in tree::files(&["config/crd/bases"], "yaml")? {
        texts.extend(definitions::texts(&file.path, &file.text)?);
    }
    for file in tree::files(&PROGRAMS, "rs")? {
        texts.extend(program::texts(&file.path, &file.text)?);
    }
    Ok(texts)
}
