//! Starting and ending the test's manager, and what it tells of itself.

use anyhow::{Context as _, Result, ensure};
use capasg_environment::loopback;

use crate::Rig;

impl Rig<'_> {
    /// Starts the manager and waits until it is ready.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn start_manager(&self) -> Result<()> {
        *self.manager.lock().await = Some(self.plan.start_ready().await?);
        Ok(())
    }

    /// Ends the manager as a failing machine does.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn kill_manager(&self) -> Result<()> {
        self.manager.lock().await.take().context("no manager runs")?.kill().await?;
        Ok(())
    }

    /// Ends the manager as Kubernetes does.
    ///
    /// # Errors
    /// When it does not run or ends with a failure.
    pub async fn stop_manager(&self) -> Result<()> {
        let status = self.manager.lock().await.take().context("no manager runs")?.stop().await?;
        ensure!(status.success(), "the manager ended with {status}");
        Ok(())
    }

    /// All that the test's managers have logged, those that ended included.
    #[must_use]
    pub fn manager_log(&self) -> String {
        let server = self.scenario.environment.management().api().name();
        let name = format!("{server}-capasg-{}", self.scenario.namespace);
        let bytes = std::fs::read(self.scenario.environment.run().log(&name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The namespace of the manager, with the Secrets of identities.
    #[must_use]
    pub fn manager_namespace(&self) -> &str {
        self.plan.namespace()
    }

    /// The user that our manager writes as.
    #[must_use]
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.plan.namespace(), self.plan.service_account())
    }

    /// The metrics of the running manager.
    ///
    /// # Errors
    /// When none runs.
    pub async fn metrics(&self) -> Result<String> {
        self.manager.lock().await.as_ref().context("no manager runs")?.metrics().await
    }

    /// What a health endpoint of the running manager answers.
    ///
    /// # Errors
    /// When none runs.
    pub async fn health(&self, path: &str) -> Result<loopback::Answer> {
        self.manager.lock().await.as_ref().context("no manager runs")?.health(path).await
    }
}
