//! What is in the test's region of the simulated AWS, and what was called there.

use anyhow::{Context as _, Result, ensure};
use capasg_api::ASGMachinePool;
use capasg_fake_aws::{GroupDump, InstanceDump, LogEntry, LogFilter, TemplateDump};

use crate::Rig;

impl Rig<'_> {
    /// All groups of the region.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupDump> {
        let dumps = self.scenario.simulator().dump(Some(&self.scenario.region));
        dumps.into_iter().flat_map(|dump| dump.groups).collect()
    }

    /// All launch templates of the region.
    #[must_use]
    pub fn templates(&self) -> Vec<TemplateDump> {
        let dumps = self.scenario.simulator().dump(Some(&self.scenario.region));
        dumps.into_iter().flat_map(|dump| dump.templates).collect()
    }

    /// The one group of the region.
    ///
    /// # Errors
    /// When there is none or more than one.
    pub fn group(&self) -> Result<GroupDump> {
        let mut groups = self.groups();
        ensure!(groups.len() == 1, "{} groups: {groups:?}", groups.len());
        groups.pop().context("no group")
    }

    /// The group of a pool.
    #[must_use]
    pub fn group_of(&self, pool: &ASGMachinePool) -> Option<GroupDump> {
        let arn = pool.spec.provider_id.as_deref()?;
        let dumps = self.scenario.simulator().dump(Some(&pool.spec.region));
        dumps.into_iter().flat_map(|dump| dump.groups).find(|group| group.arn == arn)
    }

    /// The running instances of the region, oldest first.
    #[must_use]
    pub fn instances(&self) -> Vec<InstanceDump> {
        let dumps = self.scenario.simulator().dump(Some(&self.scenario.region));
        let mut all: Vec<_> = dumps.into_iter().flat_map(|dump| dump.instances).collect();
        all.retain(|instance| instance.state == "running");
        all.sort_by(|a, b| (&a.launch_time, &a.id).cmp(&(&b.launch_time, &b.id)));
        all
    }

    /// Where the simulator's log stands, for [`Rig::calls_since`].
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.scenario.simulator().counts(&LogFilter::region(&self.scenario.region)).last_sequence
    }

    /// The calls to this test's region since a mark.
    #[must_use]
    pub fn calls_since(&self, mark: u64) -> Vec<LogEntry> {
        self.scenario.simulator().log(&LogFilter::region(&self.scenario.region).since(mark))
    }

    /// The mutations of this test's region since a mark.
    #[must_use]
    pub fn mutations_since(&self, mark: u64) -> Vec<LogEntry> {
        self.scenario.simulator().log(&LogFilter::region(&self.scenario.region).since(mark).mutations())
    }

    /// All calls of one operation to this test's region.
    #[must_use]
    pub fn calls_of(&self, action: &str) -> Vec<LogEntry> {
        self.scenario.simulator().log(&LogFilter::region(&self.scenario.region).action(action))
    }

    /// How many mutations the region has seen.
    #[must_use]
    pub fn mutations(&self) -> usize {
        self.mutations_since(0).len()
    }
}
