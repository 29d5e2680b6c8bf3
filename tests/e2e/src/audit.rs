//! What was written to the API servers, from their audit logs.

use anyhow::Result;
use capasg_environment::Write;

use crate::{Rig, shared_workload_api};

impl Rig<'_> {
    /// The writes of the management cluster's API server to this test's namespace, oldest first.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub fn writes(&self) -> Result<Vec<Write>> {
        let all = self.scenario.environment.management().api().writes()?;
        Ok(all.into_iter().filter(|write| write.namespace == self.scenario.namespace).collect())
    }

    /// The writes of the API server behind the stub control planes, oldest first.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub async fn workload_writes(&self) -> Result<Vec<Write>> {
        shared_workload_api(&self.scenario.environment).await?.writes()
    }
}
