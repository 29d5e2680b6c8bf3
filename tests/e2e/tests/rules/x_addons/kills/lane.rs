//! One release that is installed, upgraded and uninstalled again and again, while a victim is killed.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Random, Rig};
use capasg_environment::{Manager, ManagerOptions, ManagerPlan};
use serde_json::json;

use super::{
    Death, OPERATIONS, Operation, Victim,
    helms::{Helms, call},
    release::{MANY, Release},
};

/// Until an operation begins.
const BEGIN: Duration = Duration::from_mins(4);
/// Between two processes of Helm of one operation.
const NEXT: Duration = Duration::from_secs(1);
/// How long children may live after their parent.
const ORPHANED: Duration = Duration::from_secs(15);
/// What follows the last process of Helm, as a share of the operation: its result is recorded.
const RECORDS: f64 = 1.2;

pub struct Lane<'a> {
    release: Release<'a>,
    victim: Victim,
    random: Random,
    plan: ManagerPlan,
    folder: PathBuf,
    helms: Helms,
    manager: Option<Manager>,
    /// What the release is requested with.
    greeting: usize,
    /// How long Helm works on each operation.
    took: [Duration; OPERATIONS.len()],
    /// How many revisions there were before each uninstallation.
    revisions: Vec<i64>,
    newest: i64,
}

impl<'a> Lane<'a> {
    /// Starts the add-on provider as its Deployment says, for one namespace. Without a Lease: its successor begins at once.
    pub async fn start(rig: &'a Rig<'a>, victim: Victim, random: Random) -> Result<Self> {
        let release = Release::new(rig, MANY).await?;
        let (environment, namespace) = (&rig.scenario.environment, &rig.scenario.namespace);
        let options = ManagerOptions {
            name: format!("addons-{namespace}"),
            args: vec![format!("--namespace={namespace}"), "--allow-http-repositories=true".to_owned()],
            ..ManagerOptions::default()
        };
        let folder = environment.addons_folder(environment.management(), &options.name);
        let plan = environment.plan_addons(environment.management(), options).await?;
        let helms = Helms::observe(environment.run().path(), vec![folder.clone()]);
        let manager = Some(plan.start_ready().await?);
        Ok(Self {
            release,
            victim,
            random,
            plan,
            folder,
            helms,
            manager,
            greeting: 0,
            took: [Duration::ZERO; OPERATIONS.len()],
            revisions: Vec::new(),
            newest: 0,
        })
    }

    /// After a round without deaths, in which the operations are measured, `moments` deaths in each of these operations.
    pub async fn live(&mut self, operations: &[Operation], moments: usize) -> Result<Vec<Death>> {
        for operation in OPERATIONS {
            self.carry_out(operation, None).await?;
        }
        let mut deaths: Vec<Death> = Vec::new();
        let count =
            |deaths: &[Death], operation| deaths.iter().filter(|death| death.operation == operation).count();
        // A moment may come after the end of the operation: then nothing dies, and another one is drawn.
        for _ in 0..moments * 2 + 3 {
            if operations.iter().all(|operation| count(&deaths, *operation) >= moments) {
                break;
            }
            for operation in OPERATIONS {
                let is_due = operations.contains(&operation) && count(&deaths, operation) < moments;
                let share = is_due.then(|| self.random.share());
                let context = || format!("{} in {operation} at {share:?} of it", self.victim);
                let context = context();
                deaths.extend(self.carry_out(operation, share).await.context(context)?);
            }
        }
        Ok(deaths)
    }

    /// Requests an operation, kills at this share of it, and waits until the release is as requested.
    async fn carry_out(&mut self, operation: Operation, share: Option<f64>) -> Result<Option<Death>> {
        self.greeting += usize::from(operation != Operation::Uninstall);
        let greeting = format!("greeting-{}", self.greeting);
        let version = if operation == Operation::Upgrade { "1.1.0" } else { "1.0.0" };
        match operation {
            Operation::Uninstall => self.release.delete().await?,
            _ => self.release.request(MANY.name, version, &greeting, &json!({})).await?,
        }
        // Between two samples of a busy machine, a short call begins and ends.
        let begun = tokio::select! {
            begun = self.helms.appears(&self.folder, BEGIN, |_| true) => begun.map(|_| Some(Instant::now()))?,
            done = self.is_done(operation, version, &greeting) => done.map(|_| None)?,
        };
        let mut death = None;
        if let Some((begun, share)) = begun.zip(share) {
            let whole = if self.victim == Victim::Manager { RECORDS } else { 1.0 };
            let delay = self.took[operation as usize].mul_f64(share * whole);
            // The random moment.
            tokio::time::sleep_until((begun + delay).into()).await;
            death = self.strike(operation).await?;
        }
        let newest = self.is_done(operation, version, &greeting).await?;
        if operation == Operation::Uninstall {
            self.revisions.push(newest);
        }
        self.newest = newest;
        if let Some((death, from)) = &mut death {
            death.converged = from.elapsed();
        } else if let Some(begun) = begun {
            let last = self.helms.last_seen().context("Helm was not seen")?;
            self.took[operation as usize] = last.saturating_duration_since(begun);
        }
        if operation != Operation::Uninstall {
            self.release.is_whole(self.newest).await?;
        }
        self.helms.were_alone()?;
        Ok(death.map(|(death, _)| death))
    }

    /// Waits until the release is as requested, and answers its newest revision, which is the last one of what is gone.
    async fn is_done(&self, operation: Operation, version: &str, greeting: &str) -> Result<i64> {
        match operation {
            Operation::Uninstall => self.release.is_gone().await.map(|()| self.newest),
            _ => self.release.is_deployed(version, greeting).await,
        }
    }

    /// Kills; nothing if Helm is to be killed, and does not run any longer.
    async fn strike(&mut self, operation: Operation) -> Result<Option<(Death, Instant)>> {
        let running = self.helms.running(&self.folder);
        let child = match (self.victim, running) {
            (Victim::Manager, running) => running,
            (_, Some(child)) => Some(child),
            (_, None) => match self.helms.appears(&self.folder, NEXT, |_| true).await {
                Ok(child) => Some(child),
                Err(_) => return Ok(None),
            },
        };
        let during = child.as_ref().map_or("no call", |child| call(child)).to_owned();
        let from = Instant::now();
        let mut orphaned = Duration::ZERO;
        if self.victim == Victim::Helm {
            if !child.context("no Helm")?.kill() {
                return Ok(None);
            }
        } else {
            let manager = self.manager.take().context("no manager runs")?;
            match self.victim {
                // A signal to the group reaches its children, too.
                Victim::Both => manager.process().kill().await?,
                _ => manager.process().kill_alone().await?,
            };
            orphaned = self.helms.end(&self.folder, from, ORPHANED).await?;
            self.manager = Some(self.plan.start_ready().await?);
        }
        let death = Death { operation, during, orphaned, converged: Duration::ZERO };
        Ok(Some((death, from)))
    }

    /// The audit log has the revisions that Helm has shown, and the manager ends gracefully.
    pub async fn end(mut self) -> Result<()> {
        let created = self.release.created().await?;
        ensure!(created == self.revisions, "created {created:?}, shown {:?}", self.revisions);
        let manager = self.manager.take().context("no manager runs")?;
        let log = manager.log()?;
        ensure!(!log.contains("orbidden") && !log.contains("panicked"), "{log}");
        let status = manager.stop().await?;
        ensure!(status.success(), "the add-on provider ended with {status}");
        self.helms.were_alone()
    }
}
