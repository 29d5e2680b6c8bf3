//! Core starts while an `ExtensionConfig` names an extension that does not run, or with the feature gate disabled. Each needs
//! a management cluster of its own, so that this is a part of the long form.

use anyhow::{Result, ensure};
use capasg_e2e::{Rig, Setup, eventually, rule};
use capasg_environment::{Look, Management, ManagementOptions, free_port};

use super::say;

const CORE: &str = "cluster-api";

// Rules: R15
#[tokio::test]
#[ignore = "long form: starts a management cluster of its own"]
async fn core_does_not_start_without_a_registered_extension() -> Result<()> {
    Box::pin(rule("r-core-starts", Setup::bare().without_manager(), async |rig| {
        let management = start(rig, "extension-gone", "true").await?;
        let kubectl = management.api().kubectl();
        kubectl.feed(["create", "--filename=-"], &config(rig)?).await?;
        management.stop_upstream(CORE).await?;

        // It reports that it is ready, and exits when it has not discovered the handlers.
        let core = management.upstream_plan(CORE).await?.start()?;
        eventually("core exits", async || Ok(Look::when(!core.process().is_running(), "it runs"))).await?;
        let log = core.log()?;
        let last = log.lines().rev().find(|line| line.contains("warmup")).unwrap_or_default();
        say(&format!("core with the extension gone: {last}"))?;
        ensure!(!last.is_empty(), "it exited for another reason: {log}");

        // The ExtensionConfig can be deleted meanwhile.
        kubectl.run(["delete", "extensionconfig", "asg"]).await?;
        management.restart_upstream(CORE).await?;
        management.stop().await
    }))
    .await
}

// Rules: R15
#[tokio::test]
#[ignore = "long form: starts a management cluster of its own"]
async fn core_rejects_the_extension_config_with_the_gate_disabled() -> Result<()> {
    Box::pin(rule("r-gate", Setup::bare().without_manager(), async |rig| {
        // The components are installed in any case: they do not have the ExtensionConfig.
        let management = start(rig, "gate-disabled", "false").await?;
        let rejected = eventually("the webhook of core answers", async || {
            let config = config(rig)?;
            let created = management.api().kubectl().feed(["create", "--filename=-"], &config).await;
            let error = created.err().map(|error| format!("{error:#}")).unwrap_or_default();
            Ok(if error.contains("denied") { Look::Done(error) } else { Look::Not(error) })
        })
        .await?;
        say(&format!("with the gate disabled: {rejected}"))?;
        ensure!(rejected.contains("RuntimeSDK"), "{rejected}");
        management.stop().await
    }))
    .await
}

async fn start(rig: &Rig<'_>, name: &str, gate: &str) -> Result<Management> {
    let variables = [("EXP_RUNTIME_SDK".to_owned(), gate.to_owned())].into();
    let options = ManagementOptions { name: name.to_owned(), variables, ..ManagementOptions::default() };
    rig.scenario.environment.second_management(options).await
}

/// Of an extension that does not run.
fn config(rig: &Rig<'_>) -> Result<String> {
    Ok(rig.scenario.environment.extension_config(free_port()?)?.to_string())
}
