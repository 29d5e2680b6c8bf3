//! `capasg manager`: connects, serves health and metrics, and runs the controllers while this replica leads.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use capasg_api::names::tags;
use capasg_cloud::{
    Cadence, CloudFactory, Connection, Inventories, InventoryParts, Limits, Place, Supervisor, SystemClock,
};
use capasg_cloud_aws::AwsConnector;
use capasg_controllers::{
    Observers, Options,
    client::{Namespaces, Scope},
    kubernetes::Randomness,
};
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    cli::{EventQueues, ManagerArgs},
    endpoints, kubernetes,
    leadership::{self, MANAGER_LEASE, Seat},
    lifecycle,
    metrics::Metrics,
    readiness::{NEEDED, Readiness},
    signals, storage,
    tls::CertificateFolder,
    webhook::{self, KubeFacts},
};

/// The namespace of the manager in a release, for a process outside of a pod.
const OWN_NAMESPACE: &str = "capasg-system";

/// Runs until a signal, a lost lease or a failure that a restart may fix.
pub async fn run(args: &ManagerArgs) -> Result<()> {
    let stop = signals::shutdown().context("cannot watch for signals")?;
    info!(version = env!("CARGO_PKG_VERSION"), "starting");
    let config = kubernetes::config(args.kubeconfig.as_deref()).await?;
    let client = Client::try_from(config).context("cannot prepare the Kubernetes client")?;

    let (election, seat) = leadership::join(&args.leader_election, &client, MANAGER_LEASE)?;
    let metrics = Arc::new(Metrics::new(Arc::clone(&seat), args.endpoints.object_metrics.into()));
    let (readiness, supervisor) = (Arc::new(Readiness::new(&NEEDED)), Supervisor::default());
    let servers =
        serve(args, client.clone(), Arc::clone(&readiness), Arc::clone(&metrics), &supervisor).await?;
    let watch = {
        let (readiness, client) = (Arc::clone(&readiness), client.clone());
        let task = move || {
            let (readiness, client) = (Arc::clone(&readiness), client.clone());
            async move { readiness.watch(client).await }
        };
        // It is aborted, not asked to stop.
        tokio::spawn(supervisor.keep("readiness", &CancellationToken::new(), task))
    };

    let result = tokio::select! {
        result = lifecycle::lead(election, &stop, args.shutdown_timeout, |asked| {
            control(args, client, seat, metrics, readiness, supervisor, asked)
        }) => result,
        failed = servers => failed,
    };
    watch.abort();
    result
}

/// Runs the controllers once all kinds that they watch are served.
async fn control(
    args: &ManagerArgs,
    client: Client,
    seat: Arc<Seat>,
    metrics: Arc<Metrics>,
    readiness: Arc<Readiness>,
    supervisor: Supervisor,
    asked: CancellationToken,
) -> Result<()> {
    tokio::select! {
        () = asked.cancelled() => return Ok(()),
        () = readiness.ready() => {}
    }
    // Pools do not wait for it, and it continues after a restart.
    let migration = tokio::spawn(storage::migrate(client.clone()));
    // The inventories outlive the controllers: the last reconciles may still need them.
    let finished = CancellationToken::new();
    let inventories = Inventories::new(
        InventoryParts {
            factory: Arc::new(Aws { connector: AwsConnector::load().await, queues: args.event_queues()? }),
            guard: seat,
            observer: Arc::clone(&metrics.calls) as _,
            clock: Arc::new(SystemClock),
            limits: Limits::default(),
            cadence: Cadence::default(),
            template_tag: tags::OWNER_ID,
            supervisor: supervisor.clone(),
        },
        &finished,
    );
    let given = |value: &String| Some(value.clone()).filter(|value| !value.is_empty());
    let options = Options {
        namespaces: Namespaces {
            own: args.leader_election.election_namespace.clone().unwrap_or_else(|| OWN_NAMESPACE.to_owned()),
            aws_provider: args.aws_provider_namespace.clone(),
        },
        scope: Scope { namespace: given(&args.namespace), watch_filter: given(&args.watch_filter) },
        concurrency: args.concurrency,
        sync_period: args.sync_period,
        supervisor,
    };
    let observers = Observers {
        reconciles: Arc::clone(&metrics.reconciles) as _,
        pools: Arc::clone(&metrics.pools) as _,
    };
    let clock = Arc::new(SystemClock);
    capasg_controllers::run(
        client,
        Arc::clone(&inventories),
        clock,
        Arc::new(Random),
        options,
        observers,
        asked,
    )
    .await;
    migration.abort();
    finished.cancel();
    inventories.stopped().await;
    Ok(())
}

/// Every place. The queues of the flag are those of the process; another identity names its own.
struct Aws {
    connector: AwsConnector,
    queues: EventQueues,
}

impl CloudFactory for Aws {
    fn connect(&self, place: &Place) -> Connection {
        let Place { identity, region } = place;
        let connector = self.connector.with(identity, region);
        let queue = if identity.is_process() { self.queues.of(region) } else { None };
        let queue = identity.event_queue.as_ref().or(queue);
        let events = queue.map(|name| (connector.queues(region), name.clone()));
        Connection { cloud: connector.connect(region), events }
    }
}

/// The randomness of the operating system.
struct Random;

impl Randomness for Random {
    fn owner_id(&self) -> String {
        format!("{:016x}", rand::random::<u64>())
    }
}

/// Opens all endpoints now, so that a port in use fails the start; the future completes only if one of them fails.
async fn serve(
    args: &ManagerArgs,
    client: Client,
    readiness: Arc<Readiness>,
    metrics: Arc<Metrics>,
    supervisor: &Supervisor,
) -> Result<impl Future<Output = Result<()>> + use<>> {
    let (health, reading) = args.endpoints.listen().await?;
    let reviewing = args.webhook_address().listen().await?;
    let reviewing = reviewing.zip(args.webhook_cert_dir.clone().map(CertificateFolder::new));
    let insecure = args.endpoints.insecure_diagnostics;
    let tls = args.endpoints.tls.parameters()?;
    let of_metrics = tls.clone();
    let facts = KubeFacts::new(client.clone());
    let (probed, read, reviewed) = (supervisor.clone(), supervisor.clone(), supervisor.clone());
    let ready = move || readiness.problem();
    let health = endpoints::health(health, ready, probed);
    let diagnostics = endpoints::diagnostics(reading, insecure, of_metrics, client, metrics, read);
    let webhooks = async move {
        match reviewing {
            Some((listener, folder)) => {
                webhook::serve(listener, folder, &tls, facts, &reviewed).await.context("the webhooks failed")
            }
            None => std::future::pending().await,
        }
    };
    Ok(async move {
        tokio::select! {
            ended = health => ended,
            ended = diagnostics => ended,
            ended = webhooks => ended,
        }
    })
}
