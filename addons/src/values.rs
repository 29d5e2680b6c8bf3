//! Values of releases: rendered from templates, and read as Helm reads them. A small program in Go does both
//! (`addons/go/main.go`), since the result must be the one of Go's template engine, byte for byte.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::process::{Command, Launcher, RunError};

/// After which time the program is stopped.
const LIMIT: Duration = Duration::from_secs(30);
/// How long it has to end then.
const GRACE: Duration = Duration::from_secs(1);

/// How many bytes of texts are remembered with the values that they are. The oldest ones are dropped first.
const MOST_PARSED: usize = 1 << 20;

/// First results of functions that return something else at each call, such as `randAlphaNum`. They are secret.
pub type Kept = BTreeMap<String, Value>;

/// A template to render.
#[derive(Clone, Serialize)]
pub struct Template<'a> {
    /// A name for messages.
    pub name: &'a str,
    /// The text.
    pub template: &'a str,
    /// The data, such as `{"Cluster": {...}}`.
    pub data: &'a Value,
    /// The results that an earlier rendering kept.
    pub kept: &'a Kept,
}

/// A rendered template.
#[derive(Clone, PartialEq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// The results to keep, without those that are no longer used.
    pub kept: Kept,
}

/// Why a template is not rendered or a text is no values.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Rejection {
    /// The reason.
    pub reason: RejectionReason,
    /// The message of Go, in one line of at most 1000 bytes. It contains parts of the template and of its data.
    pub message: String,
}

/// The reason of a [`Rejection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum RejectionReason {
    /// The template has a syntax error, an unknown function, or a field that is named as in Go, such as `.Cluster.Spec`.
    TemplateInvalid,
    /// The template failed with this data, or its result is too long.
    TemplateFailed,
    /// The text is not YAML of a map.
    ValuesInvalid,
    /// The request is not as expected.
    RequestInvalid,
    /// A library failed.
    RequestFailed,
}

/// Why the program did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    /// It was not started, or did not end by itself.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It failed. What it printed is dropped: it may contain values.
    #[error("the program for values failed; a template may require more memory than is allowed")]
    Failed,
    /// Its answers are not as expected.
    #[error(
        "the answers of the program for values are not as expected; check that it belongs to this version"
    )]
    Unreadable,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    kept: Kept,
    #[serde(default)]
    values: Option<Map<String, Value>>,
    #[serde(default)]
    error: Option<Rejection>,
}

/// Texts and the values that they are, the oldest one first. A release is reconciled several times with the same text.
#[derive(Default)]
struct Parsed {
    all: VecDeque<(String, Map<String, Value>)>,
    bytes: usize,
}

/// Prints no values.
impl fmt::Debug for Parsed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Parsed(..)")
    }
}

impl Parsed {
    fn find(&self, text: &str) -> Option<Map<String, Value>> {
        self.all.iter().find(|(known, _)| known == text).map(|(_, values)| values.clone())
    }

    fn keep(&mut self, text: &str, values: &Map<String, Value>) {
        if text.len() > MOST_PARSED || self.all.iter().any(|(known, _)| known == text) {
            return;
        }
        self.all.push_back((text.to_owned(), values.clone()));
        self.bytes += text.len();
        while self.bytes > MOST_PARSED
            && let Some((oldest, _)) = self.all.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }
}

/// The program.
#[derive(Debug, Clone)]
pub struct Values {
    program: PathBuf,
    launcher: Launcher,
    parsed: Arc<Mutex<Parsed>>,
}

impl Values {
    /// `program` is `capasg-values`.
    #[must_use]
    pub fn new(program: PathBuf, launcher: Launcher) -> Self {
        Self { program, launcher, parsed: Arc::default() }
    }

    /// Renders templates. One that requires too much time or memory fails all: templates of one call belong to one user.
    ///
    /// # Errors
    /// If the program does not answer.
    pub async fn render(
        &self,
        templates: &[Template<'_>],
    ) -> Result<Vec<Result<Rendered, Rejection>>, ValuesError> {
        let answers = self.answers(templates.iter().map(|template| json!({"render": template}))).await?;
        let rendered = |answer: Answer| match (answer.text, answer.error) {
            (Some(text), None) => Ok(Ok(Rendered { text, kept: answer.kept })),
            (None, Some(rejection)) => Ok(Err(rejection)),
            _ => Err(ValuesError::Unreadable),
        };
        answers.into_iter().map(rendered).collect()
    }

    /// Reads values as Helm does: YAML 1.1, numbers as floating-point numbers. The program is not run for a text that it has
    /// read before, as far as that is remembered.
    ///
    /// # Errors
    /// If the program does not answer.
    pub async fn parse(
        &self,
        texts: &[&str],
    ) -> Result<Vec<Result<Map<String, Value>, Rejection>>, ValuesError> {
        let known: Option<Vec<_>> = {
            let parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
            texts.iter().map(|text| parsed.find(text).map(Ok)).collect()
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let answers = self.answers(texts.iter().map(|text| json!({"parse": text}))).await?;
        let parsed = |answer: Answer| match (answer.values, answer.error) {
            (Some(values), None) => Ok(Ok(values)),
            (None, Some(rejection)) => Ok(Err(rejection)),
            _ => Err(ValuesError::Unreadable),
        };
        let read: Vec<_> = answers.into_iter().map(parsed).collect::<Result<_, _>>()?;
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        for (text, values) in texts.iter().zip(&read) {
            if let Ok(values) = values {
                parsed.keep(text, values);
            }
        }
        drop(parsed);
        Ok(read)
    }

    async fn answers(&self, requests: impl Iterator<Item = Value>) -> Result<Vec<Answer>, ValuesError> {
        let requests: Vec<String> = requests.map(|request| request.to_string()).collect();
        let command = Command {
            program: self.program.clone(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: "/".into(),
            input: Some(requests.join("\n").into_bytes()),
            limit: LIMIT,
            grace: GRACE,
        };
        let output = command.run(&self.launcher).await?;
        if !output.is_success {
            return Err(ValuesError::Failed);
        }
        let answers = serde_json::Deserializer::from_slice(&output.output).into_iter();
        let answers: Vec<Answer> = answers.collect::<Result<_, _>>().map_err(|_| ValuesError::Unreadable)?;
        if answers.len() == requests.len() { Ok(answers) } else { Err(ValuesError::Unreadable) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_remembered_within_a_limit() {
        let (mut parsed, values) = (Parsed::default(), Map::new());
        let texts = ["a", "b", "c"].map(|text| text.repeat(MOST_PARSED / 2));
        for text in &texts {
            parsed.keep(text, &values);
            parsed.keep(text, &values);
        }
        assert_eq!(texts.each_ref().map(|text| parsed.find(text).is_some()), [false, true, true]);
        parsed.keep(&"d".repeat(MOST_PARSED + 1), &values);
        assert_eq!((parsed.all.len(), parsed.bytes), (2, MOST_PARSED));
        assert_eq!(format!("{parsed:?}"), "Parsed(..)");
    }
}
