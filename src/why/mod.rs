//! `capasg why`: what a Cluster or a pool waits for. It only reads, with the permissions of the user.

mod console;
mod mask;
mod pool;
mod read;
mod text;
#[cfg(test)]
mod verdicts;

use anyhow::{Context as _, Result, bail};
use capasg_cloud_aws::AwsConnector;
use capasg_extensions::client::history;
use chrono::Utc;
use kube::Client;

use self::pool::PoolWhy;
use crate::{
    cli::{WhyArgs, WhyKind},
    kubernetes,
};

/// Prints what the object waits for, and the console output of an instance on request.
///
/// # Errors
/// If the object does not exist, the API server cannot be configured or rejects a read, or AWS does.
pub async fn run(args: &WhyArgs) -> Result<()> {
    let config = kubernetes::config(args.kubeconfig.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config).context("cannot prepare the Kubernetes client")?;
    let name = &args.target.name;
    let pool = match args.target.kind {
        Some(WhyKind::Cluster) => None,
        Some(WhyKind::Pool) => Some(read::pool(&client, &namespace, name).await?),
        Some(WhyKind::MachinePool) => Some(read::machine_pool(&client, &namespace, name).await?),
        None => read::resolve(&client, &namespace, name).await?,
    };
    let Some(pool) = pool else { return cluster(client, &namespace, args).await };
    print!("{pool}");
    match &args.console {
        Some(instance) => console(&pool, instance).await,
        None => Ok(()),
    }
}

async fn cluster(client: Client, namespace: &str, args: &WhyArgs) -> Result<()> {
    if args.console.is_some() {
        bail!("--console requires a pool: capasg why asgmachinepool/NAME --console INSTANCE");
    }
    let name = &args.target.name;
    let pool = read::has_pool(&client, namespace, name).await;
    let found = history(client, namespace, name, Utc::now()).await;
    let found =
        found.with_context(|| format!("cannot read what hooks of Cluster {namespace}/{name} answered"))?;
    print!("{found}");
    if args.target.kind.is_none() && pool {
        println!("\nThere is an ASGMachinePool of this name as well: capasg why asgmachinepool/{name}");
    }
    Ok(())
}

async fn console(pool: &PoolWhy, instance: &str) -> Result<()> {
    let Some(found) = pool.instances.iter().find(|one| one.id == *instance) else {
        bail!("{instance} is not an instance of ASGMachinePool {}/{}", pool.namespace, pool.name);
    };
    print!("\n{}", console::read(&AwsConnector::load().await, pool, &found.id).await?);
    Ok(())
}
