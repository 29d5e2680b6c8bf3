//! The log of every call: who asked for what, when, and what came of it; never user data.

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{Service, Tree, iam};

/// Entries kept; older ones are dropped, counts go on.
const KEPT: usize = 50_000;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Answered.
    Ok,
    /// Refused.
    Error {
        /// HTTP status.
        status: u16,
        /// AWS's code.
        code: String,
        /// AWS's words.
        message: String,
    },
    /// The reply was lost; the call may have had its effect.
    Lost,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// Counts up from 1 over all scopes.
    pub sequence: u64,
    /// The id in the reply.
    pub request_id: String,
    /// Virtual time.
    pub time: DateTime<Utc>,
    /// Wall-clock time of arrival; absent in process.
    pub wall_time: Option<DateTime<Utc>>,
    /// The access key of the caller's signature, which tells callers of one account apart; absent in process.
    #[serde(default)]
    pub access_key: Option<String>,
    /// Who called: the ARN of a user or of the session of a role, or the subject of a web identity token; absent if the
    /// credentials were not valid.
    #[serde(default)]
    pub identity: Option<String>,
    /// The caller's account.
    pub account: String,
    /// The region called.
    pub region: String,
    /// The API called.
    pub service: Service,
    /// The operation.
    pub action: String,
    /// Groups (and launch templates by name) that the parameters name.
    pub groups: Vec<String>,
    /// Instances that the parameters name.
    pub instances: Vec<String>,
    /// The parameters, user data replaced by its length.
    pub params: serde_json::Value,
    /// Whether the operation is one that changes something (also if it was refused).
    pub mutation: bool,
    /// How it ended.
    pub outcome: Outcome,
}

/// Which entries to show; everything that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filter {
    /// Only entries after this sequence number.
    pub since: Option<u64>,
    /// Only this account.
    pub account: Option<String>,
    /// Only this region.
    pub region: Option<String>,
    /// Only calls that name this group.
    pub group: Option<String>,
    /// Only calls that name this instance.
    pub instance: Option<String>,
    /// Only this operation.
    pub action: Option<String>,
    /// Only mutations, or only reads.
    pub mutation: Option<bool>,
    /// Only calls with this access key.
    pub access_key: Option<String>,
    /// Only calls of this identity; the ARN of a role stands for all its sessions.
    pub identity: Option<String>,
}

impl Filter {
    /// Everything in a region.
    #[must_use]
    pub fn region(region: &str) -> Self {
        Self { region: Some(region.to_owned()), ..Self::default() }
    }

    /// Only entries after a sequence number.
    #[must_use]
    pub fn since(mut self, sequence: u64) -> Self {
        self.since = Some(sequence);
        self
    }

    /// Only an operation.
    #[must_use]
    pub fn action(mut self, action: &str) -> Self {
        self.action = Some(action.to_owned());
        self
    }

    /// Only mutations.
    #[must_use]
    pub fn mutations(mut self) -> Self {
        self.mutation = Some(true);
        self
    }

    /// Only an identity; the ARN of a role stands for all its sessions.
    #[must_use]
    pub fn identity(mut self, arn: &str) -> Self {
        self.identity = Some(arn.to_owned());
        self
    }

    fn matches(&self, entry: &LogEntry) -> bool {
        self.since.is_none_or(|since| entry.sequence > since)
            && self.account.as_ref().is_none_or(|account| *account == entry.account)
            && self.region.as_ref().is_none_or(|region| *region == entry.region)
            && self.group.as_ref().is_none_or(|group| entry.groups.contains(group))
            && self.instance.as_ref().is_none_or(|id| entry.instances.contains(id))
            && self.action.as_ref().is_none_or(|action| *action == entry.action)
            && self.mutation.is_none_or(|mutation| mutation == entry.mutation)
            && self.access_key.as_ref().is_none_or(|key| entry.access_key.as_ref() == Some(key))
            && self.identity.as_ref().is_none_or(|wanted| {
                entry.identity.as_ref().is_some_and(|own| own == wanted || is_session(own, wanted))
            })
    }
}

/// How many calls match a filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All of them.
    pub calls: usize,
    /// Those of operations that change something.
    pub mutations: usize,
    /// Those that were refused or lost.
    pub errors: usize,
    /// By operation.
    pub by_action: BTreeMap<String, usize>,
    /// By identity, as in [`LogEntry::identity`].
    #[serde(default)]
    pub by_identity: BTreeMap<String, usize>,
    /// The last sequence number in the log, whatever the filter; the next `since`.
    pub last_sequence: u64,
}

/// The log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<LogEntry>,
    sequence: u64,
}

impl Log {
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence + 1
    }

    pub(crate) fn push(&mut self, entry: LogEntry) {
        self.sequence = entry.sequence;
        self.entries.push_back(entry);
        if self.entries.len() > KEPT {
            self.entries.pop_front();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn clear_region(&mut self, region: &str) {
        self.entries.retain(|entry| entry.region != region);
    }

    fn select<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = &'a LogEntry> {
        // Entries are in order of their numbers: skip the part that is not asked for without looking at it.
        let start =
            filter.since.map_or(0, |since| self.entries.partition_point(|entry| entry.sequence <= since));
        self.entries.range(start..).filter(|entry| filter.matches(entry))
    }

    pub(crate) fn entries(&self, filter: &Filter) -> Vec<LogEntry> {
        self.select(filter).cloned().collect()
    }

    pub(crate) fn counts(&self, filter: &Filter) -> Counts {
        let mut counts = Counts { last_sequence: self.sequence, ..Counts::default() };
        for entry in self.select(filter) {
            counts.calls += 1;
            counts.mutations += usize::from(entry.mutation);
            counts.errors += usize::from(entry.outcome != Outcome::Ok);
            *counts.by_action.entry(entry.action.clone()).or_default() += 1;
            if let Some(identity) = &entry.identity {
                *counts.by_identity.entry(identity.clone()).or_default() += 1;
            }
        }
        counts
    }
}

/// Whether an ARN is that of a session of a role.
fn is_session(arn: &str, role: &str) -> bool {
    let Some((account, name)) = iam::role_parts(role) else { return false };
    let partition = role.split(':').nth(1).unwrap_or_default();
    arn.starts_with(&format!("arn:{partition}:sts::{account}:assumed-role/{name}/"))
}

/// The groups and launch templates that parameters name.
pub(crate) fn groups_of(params: &Tree) -> Vec<String> {
    let mut names: Vec<String> = params.texts_of("AutoScalingGroupNames");
    names.extend(params.texts_of("LaunchTemplateNames"));
    names.extend(params.text_of("AutoScalingGroupName").map(str::to_owned));
    names.extend(params.text_of("LaunchTemplateName").map(str::to_owned));
    names.extend(
        params.items_of("Tags").iter().filter_map(|tag| tag.text_of("ResourceId")).map(str::to_owned),
    );
    names
}

/// The instances that parameters name.
pub(crate) fn instances_of(params: &Tree) -> Vec<String> {
    let mut ids: Vec<String> = params.texts_of("InstanceIds");
    ids.extend(params.text_of("InstanceId").map(str::to_owned));
    ids
}

/// The parameters as JSON, user data and tokens replaced by their length.
pub(crate) fn redacted(params: &Tree) -> serde_json::Value {
    fn walk(name: &str, tree: &Tree) -> serde_json::Value {
        match tree {
            Tree::Text(text) if ["UserData", "WebIdentityToken"].contains(&name) => {
                format!("<{} characters>", text.len()).into()
            }
            Tree::Text(text) => text.as_str().into(),
            Tree::List(items) => items.iter().map(|item| walk(name, item)).collect(),
            Tree::Map(members) => {
                members.iter().map(|(name, value)| (name.clone(), walk(name, value))).collect()
            }
        }
    }
    walk("", params)
}
