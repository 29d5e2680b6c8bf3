//! One call of a hook: what handlers are given, and the consultation of gates and policies.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use capasg_cloud::Clock;
use chrono::TimeDelta;
use tokio::time::{Instant, timeout_at};

use crate::{
    blocks::{Blocks, Cause, Record},
    gates::{Blocker, Findings, Gate, Sources, Step, policies},
    lookups::Lookups,
    names::events,
    ports::{Journal, Kubernetes, Notice, Observer},
    protocol::{Cluster, ClusterKey, Hook, Response as _, RetryResponse, UpgradeSteps, is_short},
    settings::{OnBlockTimeout, Settings},
};

/// The longest message of an answer in bytes; core shows it in a condition.
const LONGEST_MESSAGE: usize = 1024;
/// How long the read of a record may take: the answer does not depend on it.
const LONGEST_RECORD: Duration = Duration::from_secs(2);

/// What all calls share.
pub struct Services {
    /// Reads objects.
    pub kubernetes: Arc<dyn Kubernetes>,
    /// Publishes events.
    pub journal: Arc<dyn Journal>,
    /// Counts.
    pub observer: Arc<dyn Observer>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What is consulted before and after steps.
    pub gates: Vec<Box<dyn Gate>>,
    /// The blocks of this replica.
    pub blocks: Blocks,
    /// Those of Clusters that could not be read: what requests claim of them ends no deadline of others.
    pub unread: Blocks,
    /// What is known of AWS; `None` without access to it.
    pub lookups: Option<Lookups>,
}

/// What a call may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// When the answer has to be ready.
    pub until: Instant,
    /// Whether too many calls are processed: gates are not consulted.
    pub busy: bool,
}

/// What a handler is given besides its request.
pub struct Call {
    /// The hook.
    pub hook: Hook,
    /// The settings of the request.
    pub settings: Settings,
    /// What it may take.
    pub limits: Limits,
    /// Whether the API server has the Cluster of the request. Otherwise nothing is written.
    pub is_confirmed: bool,
    /// What all calls share.
    pub services: Arc<Services>,
}

impl Limits {
    /// When gates have to have read everything: the rest is for the record and the answer.
    fn read_until(self) -> Instant {
        let now = Instant::now();
        now + self.until.saturating_duration_since(now) * 3 / 4
    }

    /// When a single read has to be done.
    pub(crate) fn record_until(self) -> Instant {
        let now = Instant::now();
        now + (self.until.saturating_duration_since(now) / 2).min(LONGEST_RECORD)
    }
}

impl Services {
    /// The record of a Cluster, and what its event holds, which may be older.
    async fn recorded(&self, cluster: &ClusterKey, limits: Limits) -> (Option<Record>, Option<Record>) {
        let read = timeout_at(limits.record_until(), self.kubernetes.record(cluster)).await;
        let stored = read.ok().and_then(Result::ok).flatten();
        (self.blocks.latest(cluster, stored.clone()), stored)
    }

    /// Remembers a record, and writes it unless its event, which holds `stored`, is current.
    fn remember(&self, cluster: &ClusterKey, record: Record, stored: Option<&Record>) {
        if record.is_due(stored) {
            self.journal.record(cluster, &record);
        }
        self.blocks.remember(cluster.clone(), record);
    }

    /// Records that a user skipped a hook.
    pub(crate) async fn skipped(&self, cluster: &ClusterKey, hook: Hook, limits: Limits) {
        let (record, stored) = self.recorded(cluster, limits).await;
        if let Some(record) = record {
            self.remember(cluster, record.skipped(hook, self.clock.now()), stored.as_ref());
        }
    }
}

impl Call {
    /// The record of the Cluster, and what its event holds.
    async fn recorded(&self, cluster: &ClusterKey) -> (Option<Record>, Option<Record>) {
        if self.is_confirmed {
            return self.services.recorded(cluster, self.limits).await;
        }
        (self.services.unread.latest(cluster, None), None)
    }

    fn remember(&self, cluster: &ClusterKey, record: Record, stored: Option<&Record>) {
        if self.is_confirmed {
            self.services.remember(cluster, record, stored);
        } else {
            self.services.unread.remember(cluster.clone(), record);
        }
    }

    /// Whether a step may begin, or counts as complete: consults every gate, then what users decided.
    pub async fn consult(
        &self,
        cluster: &Cluster,
        version: &str,
        following: UpgradeSteps<'_>,
    ) -> RetryResponse {
        let Some(key) = cluster.key() else {
            return RetryResponse::failure(
                "the request has no cluster with a name and a namespace".to_owned(),
            );
        };
        if !is_short(version) {
            return RetryResponse::failure("the version in the request is too long".to_owned());
        }
        let services = &self.services;
        let now = services.clock.now();
        let (hook, settings, is_confirmed) = (self.hook, &self.settings, self.is_confirmed);
        let step = Step { hook, cluster, key: &key, version, following, settings, is_confirmed, now };
        let until = self.limits.read_until();
        let mut all = Findings::default();
        for gate in &services.gates {
            let found = self.check(&**gate, &step, until).await;
            all.concerned |= found.concerned;
            all.blockers.extend(found.blockers);
            all.verified.extend(found.verified);
            all.requests.extend(found.requests);
            for (reason, message) in found.notes {
                self.publish(self.notice(&key, reason, message));
            }
        }
        // What is not read does not delay a hook that does not wait for it.
        let waits = Cause::of(hook).contains(&Cause::NotReadable);
        all.blockers.retain(|blocker| waits || blocker.cause != Cause::NotReadable);
        all.blockers.extend(policies(&step, settings, all.concerned));
        self.settle(&step, all).await
    }

    /// What a gate found.
    async fn check(&self, gate: &dyn Gate, step: &Step<'_>, until: Instant) -> Findings {
        let lookups = self.services.lookups.as_ref();
        if self.limits.busy {
            // Without access to AWS, nothing is checked before a Cluster is created.
            let checks_nothing = step.hook == Hook::BeforeClusterCreate && lookups.is_none();
            let busy = "the extension is processing too many requests";
            return if checks_nothing { Findings::default() } else { gate.unread(step, busy.to_owned()) };
        }
        let sources = Sources { kubernetes: &*self.services.kubernetes, lookups };
        match timeout_at(until, gate.check(step, sources)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => gate.unread(step, error.to_string()),
            Err(_) => gate.unread(step, "the objects of the Cluster were not read in time".to_owned()),
        }
    }

    /// Continues the record of the Cluster, drops what has blocked for too long, and answers.
    async fn settle(&self, step: &Step<'_>, all: Findings) -> RetryResponse {
        let services = &self.services;
        let mut found: BTreeMap<Cause, Vec<String>> = BTreeMap::new();
        for Blocker { cause, message } in all.blockers {
            let messages = found.entry(cause).or_default();
            if !messages.contains(&message) {
                messages.push(message);
            }
        }
        // A Cluster without objects of a gate is not recorded, except for its deletion.
        let may_have_record = all.concerned || step.hook == Hook::BeforeClusterDelete;
        if found.is_empty() && !may_have_record && !self.blocks().is_known(step.key) {
            return RetryResponse::success();
        }
        let found: BTreeMap<Cause, String> =
            found.into_iter().map(|(cause, messages)| (cause, shortened(messages.join("; ")))).collect();
        let (previous, stored) = self.recorded(step.key).await;
        let version = step.cluster.version().unwrap_or(step.version);
        let blocks = |cause, waited| !self.is_past_deadline(cause, waited);
        let record_of = |found| Record::after(previous.as_ref(), step.hook, version, step.now, found, blocks);
        let others = found.clone().into_iter().filter(|(cause, _)| !cause.is_last()).collect();
        let (mut record, mut causes) = (record_of(others), found.keys().copied().collect::<Vec<_>>());
        if record.is_blocking(step.hook) {
            causes.retain(|cause| !cause.is_last());
        } else {
            record = record_of(found);
        }
        self.report(step, previous.as_ref(), &record, &causes);
        if causes.is_empty() && !all.verified.is_empty() {
            let what = all.verified.join(" and of ");
            let message = format!("all nodes of {what} report {}", step.version);
            self.publish(self.notice(step.key, events::UPGRADE_VERIFIED, message));
        }
        if self.is_confirmed && record.blocks_of(step.hook).any(|(cause, _)| cause.is_last()) {
            for request in all.requests {
                services.journal.request(step.key, request);
            }
        }
        let response = self.answer(&record);
        if previous.is_some() || !record.causes.is_empty() {
            self.remember(step.key, record, stored.as_ref());
        }
        response
    }

    fn answer(&self, record: &Record) -> RetryResponse {
        let Some(retry) = record.blocks_of(self.hook).map(|(cause, _)| cause.retry_seconds()).min() else {
            return RetryResponse::success();
        };
        let messages: Vec<&str> =
            record.blocks_of(self.hook).map(|(_, block)| block.message.as_str()).collect();
        RetryResponse::block(shortened(messages.join("; ")), retry)
    }

    /// Publishes what blocks, what has blocked for too long, and the end of a block.
    fn report(&self, step: &Step<'_>, previous: Option<&Record>, record: &Record, found: &[Cause]) {
        let blocked = |cause: Cause| {
            previous.is_some_and(|previous| previous.blocks_of(step.hook).any(|(known, _)| known == cause))
        };
        for (cause, block) in record.causes.iter().filter(|(cause, _)| found.contains(cause)) {
            if !block.blocks {
                let message =
                    format!("{}; {} continues, since its deadline has passed", block.message, step.hook);
                let notice = self.notice(step.key, events::HOOK_TIMED_OUT, message).warning(true);
                self.publish(notice.of_change(blocked(*cause)));
                self.services.observer.timed_out(step.hook);
                continue;
            }
            let long = step.now - block.since >= delta(self.settings.escalate_after);
            let reason = if long { events::HOOK_BLOCKED_FOR_LONG } else { events::HOOK_BLOCKED };
            let message = format!("{}: {}", step.hook, block.message);
            let notice = self.notice(step.key, reason, message).warning(long);
            self.publish(notice.of_change(!blocked(*cause)));
        }
        if found.is_empty() && previous.is_some_and(|previous| previous.is_blocking(step.hook)) {
            let step_of =
                if step.version.is_empty() { String::new() } else { format!(" ({})", step.version) };
            let message = format!("{} no longer blocks{step_of}", step.hook);
            self.publish(self.notice(step.key, events::HOOK_UNBLOCKED, message).of_change(true));
        }
    }

    fn is_past_deadline(&self, cause: Cause, waited: TimeDelta) -> bool {
        if cause.is_of_user() || self.settings.on_block_timeout == OnBlockTimeout::Block {
            return false;
        }
        let limit = match cause {
            Cause::PoolNotReady => self.settings.degraded_pool_timeout,
            _ => self.settings.block_timeout,
        };
        waited >= delta(limit)
    }

    /// An event of this hook about a Cluster.
    pub(crate) fn notice(&self, cluster: &ClusterKey, reason: &'static str, message: String) -> Notice {
        Notice::new(cluster.clone(), self.hook, reason, message)
    }

    /// Publishes an event, unless nothing confirms that the Cluster exists.
    pub(crate) fn publish(&self, notice: Notice) {
        if self.is_confirmed {
            self.services.journal.publish(notice);
        }
    }

    fn blocks(&self) -> &Blocks {
        if self.is_confirmed { &self.services.blocks } else { &self.services.unread }
    }
}

/// A text that is not longer than an answer may have.
pub(crate) fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
    message
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}
