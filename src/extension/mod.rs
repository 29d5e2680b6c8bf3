//! `capasg extension`: serves the Runtime Hooks. Every replica answers, without a Lease.

mod access;
mod aws;
mod server;
mod settings;
#[cfg(test)]
pub(crate) mod tests;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use capasg_cloud::{Supervisor, SystemClock};
use capasg_cloud_aws::AwsConnector;
use capasg_controllers::client::Namespaces;
use capasg_extensions::{
    Extension, Services,
    blocks::Blocks,
    client::{KubeJournal, KubeReader},
    gates::{Addons, Pools},
    lookups::{InventoryReader, Lookups},
};
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::access::PoolAccess;
pub use self::settings::check_settings;
use crate::{
    cli::{Address, ExtensionArgs},
    endpoints, kubernetes,
    metrics::{CallMetrics, ExtensionMetrics, HookMetrics},
    signals,
    tls::{CertificateFolder, ClientAuthorities},
};

/// After SIGTERM hooks are served for this long, so that no connection is opened to a replica that has stopped: the endpoints
/// of the Service are updated meanwhile.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs until a signal, or until an endpoint fails.
///
/// # Errors
/// If a flag is invalid, the API server cannot be configured, or an endpoint fails.
pub async fn run(args: &ExtensionArgs) -> Result<()> {
    let advertised = args.advertised();
    let stop = signals::shutdown().context("cannot watch for signals")?;
    info!(version = env!("CARGO_PKG_VERSION"), hooks = ?advertised, "starting");
    let config = kubernetes::config(args.kubeconfig.as_deref()).await?;
    let client = Client::try_from(config).context("cannot prepare the Kubernetes client")?;

    let (journal, publisher) = KubeJournal::new(&client, &kubernetes::identity());
    let (hooks, calls) = (Arc::new(HookMetrics::default()), Arc::new(CallMetrics::default()));
    let supervisor = Supervisor::default();
    let publisher = Arc::new(publisher);
    let publish = move || {
        let publisher = Arc::clone(&publisher);
        async move { publisher.run().await }
    };
    let publishing = tokio::spawn(supervisor.keep("publisher of events", &stop, publish));
    let inventories = match args.aws_api_share {
        share if share > 0.0 => {
            let connector = AwsConnector::load().await;
            Some(aws::inventories(connector, share, Arc::clone(&calls) as _, supervisor.clone()))
        }
        _ => None,
    };
    let lookups = inventories.clone().map(|all| {
        let namespaces = Namespaces {
            own: args.manager_namespace.clone(),
            aws_provider: args.aws_provider_namespace.clone(),
        };
        let access = PoolAccess::new(client.clone(), namespaces);
        Lookups::new(Arc::new(InventoryReader(all)), Arc::new(access))
    });
    let services = Services {
        kubernetes: Arc::new(KubeReader(client.clone())),
        journal: Arc::new(journal),
        observer: Arc::clone(&hooks) as _,
        clock: Arc::new(SystemClock),
        gates: vec![Box::new(Pools), Box::new(Addons)],
        blocks: Blocks::default(),
        unread: Blocks::default(),
        lookups: lookups.clone(),
    };
    let extension = Arc::new(Extension::new(services, &advertised));
    let objects = args.endpoints.object_metrics.into();
    let metrics = Arc::new(ExtensionMetrics::new(&hooks, &calls, Arc::clone(&extension), objects));

    let (health, reading) = args.endpoints.listen().await?;
    let address = Address::On { host: String::new(), port: args.webhook_port };
    let called = address.listen().await?.context("--webhook-port must not be 0")?;

    let folder = CertificateFolder::new(args.webhook_cert_dir.clone());
    let authorities =
        args.client_authorities().map(Path::to_owned).map(ClientAuthorities::new).transpose()?;
    if authorities.is_none() {
        warn!("--client-ca-file is none: every client that reaches the port of the hooks is answered");
    }
    let parameters = args.endpoints.tls.parameters()?;
    let tls = match &authorities {
        Some(authorities) => folder.server_for_clients_of(authorities, &parameters),
        None => folder.server(&parameters),
    };
    let renewed = async {
        match &authorities {
            Some(authorities) => authorities.follow().await,
            None => std::future::pending().await,
        }
    };
    let ready = readiness(&folder, &stop);
    let result = tokio::select! {
        ended = server::serve(called, tls, extension, &supervisor) => ended,
        ended = endpoints::health(health, ready, supervisor.clone()) => ended,
        ended = endpoints::diagnostics(reading, args.endpoints.insecure_diagnostics, parameters, client, metrics, supervisor.clone()) => ended,
        () = folder.follow() => Ok(()),
        () = renewed => Ok(()),
        () = aws::keep(inventories, lookups) => Ok(()),
        () = async { stop.cancelled().await; tokio::time::sleep(DRAIN).await } => Ok(()),
    };
    publishing.abort();
    result
}

/// A replica without a certificate, or that stops, gets no calls.
fn readiness(
    folder: &Arc<CertificateFolder>,
    stop: &CancellationToken,
) -> impl Fn() -> Option<String> + Clone + Send + Sync + 'static {
    let (folder, stop) = (Arc::clone(folder), stop.clone());
    move || {
        if stop.is_cancelled() {
            return Some("the extension is stopping".to_owned());
        }
        (!folder.is_loaded()).then(|| "the serving certificate is not loaded".to_owned())
    }
}
