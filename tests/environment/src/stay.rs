//! Staying up: what is where, until Ctrl-C.

use anyhow::{Context as _, Result};
use capasg_environment::{Environment, ManagerOptions, Settings};

/// Starts everything, our manager included if there is one, and waits.
pub async fn env() -> Result<()> {
    let environment = tokio::select! {
        started = Environment::start(Settings::from_env()) => started?,
        interrupted = tokio::signal::ctrl_c() => return interrupted.context("no Ctrl-C can be waited for"),
    };
    environment.management().start_in_memory().await?;
    let manager = if environment.settings().release.is_some() {
        Some(
            environment
                .plan_manager(ManagerOptions { webhooks: true, ..ManagerOptions::default() })
                .await?
                .start_ready()
                .await?,
        )
    } else {
        eprintln!("our provider is not installed: there is no release, `make release` writes one");
        None
    };
    until_interrupted(&environment).await?;
    if let Some(manager) = manager {
        manager.stop().await?;
    }
    environment.stop().await
}

/// Tells what is where, and waits for Ctrl-C.
pub async fn until_interrupted(environment: &Environment) -> Result<()> {
    println!("{}", directions(environment));
    tokio::signal::ctrl_c().await.context("no Ctrl-C can be waited for")?;
    eprintln!("\nending everything");
    Ok(())
}

fn directions(environment: &Environment) -> String {
    let management = environment.management();
    format!(
        "
Everything is up. In another terminal:

  export PATH={tools}:$PATH
  export KUBECONFIG={kubeconfig}
  kubectl get cluster-api --all-namespaces
  clusterctl --config {config} describe cluster <name> --namespace <namespace>

Kubeconfigs  {run}/kubeconfigs
Logs         {run}/logs
AWS          {endpoint}
             (simulated; for aws: export AWS_ENDPOINT_URL={endpoint} AWS_REGION=eu-west-1
             AWS_ACCESS_KEY_ID=simulated AWS_SECRET_ACCESS_KEY=simulated; {endpoint}/_sim/state shows all)

Ctrl-C ends all processes and removes the folder.",
        tools = environment.tools().folder().display(),
        kubeconfig = management.api().kubeconfig().display(),
        config = management.clusterctl().config().display(),
        run = environment.run().path().display(),
        endpoint = environment.cloud().endpoint(),
    )
}
