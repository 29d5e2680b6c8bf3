//! One call of a hook: what handlers are given, and the consultation of gates and policies.

use std::{sync::Arc, time::Duration};

use capasg_cloud::Clock;
use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    blocks::{Block, Blocks, Cause},
    gates::{Blocker, Findings, Gate, Sources, Step, policies},
    lookups::Lookups,
    names::events,
    ports::{Journal, Kubernetes, Notice, Observer},
    protocol::{Cluster, ClusterKey, Hook, Response as _, RetryResponse, UpgradeSteps},
    settings::{OnBlockTimeout, Settings},
};

/// The longest message of an answer in bytes; core shows it in a condition.
const LONGEST_MESSAGE: usize = 1024;
/// How long a read of when a block began may take: the answer does not depend on it.
const SINCE_BUDGET: Duration = Duration::from_secs(2);

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
    /// What is known of AWS; `None` without access to it.
    pub lookups: Option<Lookups>,
}

/// What a handler is given besides its request.
pub struct Call {
    /// The hook.
    pub hook: Hook,
    /// The settings of the request.
    pub settings: Settings,
    /// What all calls share.
    pub services: Arc<Services>,
}

impl Call {
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
        let now = self.services.clock.now();
        let (hook, settings) = (self.hook, &self.settings);
        let step = Step { hook, cluster, key: &key, version, following, settings, now };
        let services = &self.services;
        let sources = Sources { kubernetes: &*services.kubernetes, lookups: services.lookups.as_ref() };
        let mut all = Findings::default();
        for gate in &self.services.gates {
            match gate.check(&step, sources).await {
                Ok(findings) => {
                    all.concerned |= findings.concerned;
                    all.verified |= findings.verified;
                    all.blockers.extend(findings.blockers);
                    all.requests.extend(findings.requests);
                    for (reason, message) in findings.notes {
                        self.publish(self.notice(&key, reason, message));
                    }
                }
                Err(error) => {
                    // Unknown is treated as concerned: an approval must not be passed because a read failed.
                    all.concerned = true;
                    all.blockers.push(Blocker { cause: Cause::NotReadable, message: error.to_string() });
                }
            }
        }
        match policies(&step, settings, all.concerned) {
            Ok(found) => all.blockers.extend(found),
            Err(message) => return RetryResponse::failure(message),
        }
        self.settle(&step, all).await
    }

    /// Drops what has blocked for too long, and answers.
    async fn settle(&self, step: &Step<'_>, mut found: Findings) -> RetryResponse {
        let concerned = found.concerned;
        let mut blockers: Vec<Blocker> = Vec::new();
        let mut causes = Vec::new();
        found.blockers.sort_by_key(|blocker| blocker.cause.is_last());
        for blocker in found.blockers {
            if blocker.cause.is_last() && !blockers.is_empty() {
                continue;
            }
            let block = step.block(blocker.cause);
            let since = self.since(&block, step.now).await;
            let waited = (step.now - since).max(TimeDelta::zero());
            causes.push(blocker.cause);
            if self.is_past_deadline(blocker.cause, waited) {
                let message =
                    format!("{}; {} continues, since its deadline has passed", blocker.message, step.hook);
                self.publish(self.notice(step.key, events::HOOK_TIMED_OUT, message).warning(true));
                self.services.observer.timed_out(step.hook);
                continue;
            }
            let long = waited >= delta(self.settings.escalate_after);
            let reason = if long { events::HOOK_BLOCKED_FOR_LONG } else { events::HOOK_BLOCKED };
            let message = format!("{}: {}", step.hook, blocker.message);
            self.publish(self.notice(step.key, reason, message).warning(long).of_block(block, since));
            blockers.push(blocker);
        }
        // A block that reached its deadline stays known, so that the deadline does not begin again.
        let ended = self.services.blocks.ended(step.key, step.hook, &causes);
        if blockers.is_empty() {
            if causes.is_empty() {
                self.report_end(step, ended, concerned);
                if found.verified {
                    self.report_success(step);
                }
            }
            return RetryResponse::success();
        }
        if blockers.iter().any(|blocker| blocker.cause.is_last()) {
            for request in found.requests {
                self.services.journal.request(request);
            }
        }
        let retry = blockers.iter().map(|blocker| blocker.cause.retry_seconds()).min().unwrap_or(1);
        let mut message = blockers.into_iter().map(|blocker| blocker.message).collect::<Vec<_>>().join("; ");
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        RetryResponse::block(message, retry)
    }

    /// Once a hook no longer blocks, users see that it does not. `known`: this replica reported a block; otherwise another
    /// replica may have, or this one before a restart. Each cause is one read of the publisher, so only those are read that
    /// the hook can have for this Cluster.
    fn report_end(&self, step: &Step<'_>, known: bool, concerned: bool) {
        let notice = self.notice(step.key, events::HOOK_UNBLOCKED, format!("{} no longer blocks", step.hook));
        if known {
            return self.publish(notice);
        }
        let asks_aws = self.services.lookups.is_some();
        let possible =
            |cause: &&Cause| (concerned || cause.is_of_any_cluster()) && (asks_aws || !cause.is_of_aws());
        let causes = Cause::of(step.hook).iter().filter(possible);
        let ends: Vec<Block> = causes.map(|cause| step.block(*cause)).collect();
        if !ends.is_empty() {
            self.publish(notice.ends(ends));
        }
    }

    /// After a step that was verified, users see that it was.
    fn report_success(&self, step: &Step<'_>) {
        let what = match step.hook {
            Hook::AfterControlPlaneUpgrade => "all nodes of the control plane",
            Hook::AfterWorkersUpgrade => "all nodes of ASGMachinePools",
            Hook::AfterClusterUpgrade => "all nodes of the control plane and of ASGMachinePools",
            _ => return,
        };
        let message = format!("{what} report {}", step.version);
        self.publish(self.notice(step.key, events::UPGRADE_VERIFIED, message));
    }

    async fn since(&self, block: &Block, now: DateTime<Utc>) -> DateTime<Utc> {
        if let Some(since) = self.services.blocks.repeated(block, now) {
            return since;
        }
        // Another replica, or this one before a restart, may have recorded it.
        let recorded =
            tokio::time::timeout(SINCE_BUDGET, self.services.kubernetes.blocked_since(block)).await;
        let recorded = recorded.ok().and_then(Result::ok).flatten();
        let since = recorded.filter(|since| *since <= now).unwrap_or(now);
        self.services.blocks.began(block.clone(), since, now);
        since
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

    /// Publishes an event.
    pub(crate) fn publish(&self, notice: Notice) {
        self.services.journal.publish(notice);
    }
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}
