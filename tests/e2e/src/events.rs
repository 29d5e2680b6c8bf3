//! A queue of events in the test's region, filled by the rules that `capasg events --print` prints.

use anyhow::{Context as _, Result, ensure};
use capasg_environment::Look;
use capasg_fake_aws::{DEFAULT_ACCOUNT, Scope, Service, Settings as Times, Tree};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::{Rig, Setup, eventually};

/// The queue's name.
const QUEUE: &str = "capasg";
/// The call that reads groups.
const READ: &str = "DescribeAutoScalingGroups";
/// A group that changes is read every 5 s.
const QUIET: TimeDelta = TimeDelta::seconds(14);

impl Setup {
    /// With a manager that takes events, which is started when there is [a queue](Rig::listen).
    #[must_use]
    pub fn fed() -> Self {
        Self::default().without_manager().arg(&format!("--event-queue={QUEUE}"))
    }
}

impl Rig<'_> {
    /// This test's region of the simulated AWS.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::region(&self.scenario.region)
    }

    /// Makes the queue and what `capasg events --print` says that it needs, and starts the manager.
    ///
    /// # Errors
    /// When the manager's program prints something else than rules, or does not become ready.
    pub async fn listen(&self) -> Result<()> {
        let program = self.scenario.environment.settings().manager.clone().context("no manager")?;
        let (region, account) =
            (format!("--region={}", self.scenario.region), format!("--account={DEFAULT_ACCOUNT}"));
        let args = ["events", "--print", "--queue-name", QUEUE, "--format=cli", &region, &account];
        let output = tokio::process::Command::new(program).args(args).output().await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed: Value = serde_json::from_slice(&output.stdout)?;
        let simulator = self.scenario.simulator();
        simulator.put_queue(&self.scope(), QUEUE);
        let rules = printed["put-rule"].as_array().context("no rules")?;
        ensure!(rules.len() > 1, "{printed}");
        for rule in rules {
            let pattern = rule["EventPattern"].as_str().context("a rule without a pattern")?;
            simulator.put_rule(&self.scope(), QUEUE, serde_json::from_str(pattern)?);
        }
        self.start_manager().await
    }

    /// Changes how long things take in the region, and what becomes of events.
    pub fn set_times(&self, change: impl FnOnce(&mut Times)) {
        let (simulator, scope) = (self.scenario.simulator(), self.scope());
        let mut times = simulator.settings(Some(&scope));
        change(&mut times);
        simulator.set_settings(Some(&scope), &times);
    }

    /// Puts a message into the queue, as whoever may write to it can.
    ///
    /// # Errors
    /// When there is no queue.
    pub fn send(&self, body: &Value) -> Result<()> {
        let (simulator, scope) = (self.scenario.simulator(), self.scope());
        let url =
            simulator.call(&scope, Service::Sqs, "GetQueueUrl", Tree::new().with("QueueName", QUEUE))?;
        let url = url.text_of("QueueUrl").context("no URL")?.to_owned();
        let message = Tree::new().with("QueueUrl", url).with("MessageBody", body.to_string());
        simulator.call(&scope, Service::Sqs, "SendMessage", message)?;
        Ok(())
    }

    /// Waits until every message was deleted.
    ///
    /// # Errors
    /// When some are left at the deadline.
    pub async fn queue_is_empty(&self) -> Result<()> {
        eventually("all messages are deleted", async || {
            let left = self.scenario.simulator().messages(&self.scope());
            Ok(Look::when(left == 0, format!("{left} are left")))
        })
        .await
    }

    /// When the manager first began to read groups after a time.
    #[must_use]
    pub fn read_after(&self, since: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.calls_of(READ).iter().filter_map(|call| call.wall_time).filter(|at| *at > since).min()
    }

    /// Waits until nothing makes the manager read the group but its rounds.
    ///
    /// # Errors
    /// When it goes on reading.
    pub async fn stands_still(&self) -> Result<()> {
        eventually("no group changes", async || {
            let last = self.calls_of(READ).iter().filter_map(|call| call.wall_time).max();
            let quiet = last.is_some_and(|at| Utc::now() - at > QUIET);
            Ok(Look::when(quiet, format!("last read at {last:?}")))
        })
        .await
    }
}
