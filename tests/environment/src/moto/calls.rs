//! The log of calls, read back and counted.

use std::{collections::BTreeMap, fmt, path::Path};

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// One call that moto answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MotoCall {
    /// When it was answered, RFC 3339.
    pub time: String,
    /// The service that the request is signed for, for example `ec2`.
    pub service: String,
    /// The Region that the request is signed for.
    pub region: String,
    /// For example `RunInstances`.
    pub action: String,
    /// `capa`, `capasg` or `other`, by the user agent.
    pub client: String,
    /// The user agent.
    pub user_agent: String,
    /// The status of the answer.
    pub status: u16,
    /// The error code of an answer that is not a success.
    #[serde(default)]
    pub error: Option<String>,
}

/// Calls by client, then by `service:Action`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MotoSummary(pub BTreeMap<String, BTreeMap<String, Answers>>);

/// How an action was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Calls.
    pub calls: u64,
    /// Errors among them, by code.
    pub errors: BTreeMap<String, u64>,
}

pub(super) fn read(path: &Path) -> Result<Vec<MotoCall>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    // The last line may be half written.
    let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    complete.lines().map(|line| serde_json::from_str(line).context("a call that cannot be read")).collect()
}

impl MotoSummary {
    pub(super) fn of(calls: &[MotoCall]) -> Self {
        let mut summary = Self::default();
        for call in calls {
            let client = summary.0.entry(call.client.clone()).or_default();
            let answers = client.entry(format!("{}:{}", call.service, call.action)).or_default();
            answers.calls += 1;
            if call.status >= 400 {
                let code = call.error.clone().filter(|code| !code.is_empty());
                *answers.errors.entry(code.unwrap_or_else(|| call.status.to_string())).or_default() += 1;
            }
        }
        summary
    }

    /// The number of calls of a client to an action such as `ec2:RunInstances`.
    #[must_use]
    pub fn calls(&self, client: &str, action: &str) -> u64 {
        self.0.get(client).and_then(|actions| actions.get(action)).map_or(0, |answers| answers.calls)
    }
}

impl fmt::Display for MotoSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| client | action | calls | errors |\n| --- | --- | ---: | --- |")?;
        for (client, actions) in &self.0 {
            for (action, answers) in actions {
                let errors: Vec<String> =
                    answers.errors.iter().map(|(code, count)| format!("{code} {count}")).collect();
                writeln!(f, "| {client} | {action} | {} | {} |", answers.calls, errors.join(", "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_client_and_action() {
        let line = |client: &str, status: u16, error: &str| {
            format!(
                r#"{{"time":"t","service":"ec2","region":"eu-west-1","action":"CreateVpc","client":"{client}","userAgent":"","status":{status}{error}}}"#
            )
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.jsonl");
        let lines =
            [line("capa", 200, ""), line("capa", 400, r#","error":"Throttling""#), line("capasg", 200, "")];
        std::fs::write(&path, format!("{}\n{{\"half", lines.join("\n"))).unwrap();
        let summary = MotoSummary::of(&read(&path).unwrap());
        assert_eq!(summary.calls("capa", "ec2:CreateVpc"), 2);
        assert_eq!(summary.calls("capasg", "ec2:CreateVpc"), 1);
        assert!(summary.to_string().contains("| capa | ec2:CreateVpc | 2 | Throttling 1 |"), "{summary}");
    }
}
