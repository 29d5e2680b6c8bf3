//! `capasg addons`: the Helm add-on provider. One replica leads, and runs the controllers of both kinds while no other
//! provider of these kinds does.

mod diff;

use std::{env, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context as _, Result, bail, ensure};
use capasg_addons::{
    caaph::Detector,
    controller::{Context, OperationObserver, Parts, Policy},
    helm::{Helm, PlainHttp},
    process::{EXEC_FAILED, Launcher, exec},
    runtime::{self, Limits, Options},
    values::Values,
};
use capasg_cloud::{Supervisor, WriteGuard};
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    cli::{AddonsArgs, ChartArgs, ExecChildArgs},
    endpoints, kubernetes,
    leadership::{self, ADDONS_LEASE},
    lifecycle,
    metrics::AddonMetrics,
    readiness::{Needed, Readiness},
    signals,
};

pub use diff::diff;

/// The role of [`exec_child`].
const EXEC_CHILD: &str = "exec-child";

/// The definitions that the controllers need, as [`crate::readiness::NEEDED`] for the manager.
const NEEDED: [Needed; 3] = [
    ("clusters.cluster.x-k8s.io", "v1beta2"),
    ("helmchartproxies.addons.cluster.x-k8s.io", "v1alpha1"),
    ("helmreleaseproxies.addons.cluster.x-k8s.io", "v1alpha1"),
];

/// Replaces this process by a child of the add-on provider. It returns only if that fails.
pub fn exec_child(args: ExecChildArgs) -> ExitCode {
    eprintln!("capasg: {}", exec(args.arguments));
    ExitCode::from(u8::try_from(EXEC_FAILED).unwrap_or(u8::MAX))
}

/// Runs until a signal, a lost Lease, another provider of the same kinds, or a failure that a restart may fix.
///
/// # Errors
/// If a program or the directory does not exist, the API server cannot be configured, an endpoint fails, or the controllers
/// end.
pub async fn run(args: &AddonsArgs) -> Result<()> {
    let stop = signals::shutdown().context("cannot watch for signals")?;
    info!(version = env!("CARGO_PKG_VERSION"), "starting");
    check(&args.charts)?;
    let config = kubernetes::config(args.kubeconfig.as_deref()).await?;
    let client = Client::try_from(config).context("cannot prepare the Kubernetes client")?;

    let (election, seat) = leadership::join(&args.leader_election, &client, ADDONS_LEASE)?;
    let metrics = Arc::new(AddonMetrics::new(Arc::clone(&seat), args.endpoints.object_metrics.into()));
    let (readiness, supervisor) = (Arc::new(Readiness::new(&NEEDED)), Supervisor::default());
    let other = Arc::new(Detector::new(leadership::own_namespace(&args.leader_election)));
    let (health, reading) = args.endpoints.listen().await?;
    let ready = {
        let (readiness, other) = (Arc::clone(&readiness), Arc::clone(&other));
        move || readiness.problem().or_else(|| other.problem())
    };
    let exposed = Arc::clone(&metrics);
    let (insecure, tls) = (args.endpoints.insecure_diagnostics, args.endpoints.tls.parameters()?);
    let never = CancellationToken::new();
    let watch_definitions = {
        let (readiness, client) = (Arc::clone(&readiness), client.clone());
        supervisor.keep("readiness", &never, move || {
            let (readiness, client) = (Arc::clone(&readiness), client.clone());
            async move { readiness.watch(client).await }
        })
    };
    let watch_leases = {
        let (other, client) = (Arc::clone(&other), client.clone());
        supervisor.keep("detection of another add-on provider", &never, move || {
            let (other, client) = (Arc::clone(&other), client.clone());
            async move { other.watch(client).await }
        })
    };
    let lead = lifecycle::lead(election, &stop, args.shutdown_timeout, |asked| async {
        tokio::select! {
            () = asked.cancelled() => return Ok(()),
            () = async { tokio::join!(readiness.ready(), other.absent()); } => {}
        }
        let operations: Arc<dyn OperationObserver> = Arc::clone(&metrics.operations) as _;
        let context = context(&args.charts, &args.work_dir, client.clone(), seat, operations)?;
        tokio::select! {
            () = runtime::run(context, options(args, &supervisor), Arc::clone(&metrics.reconciles) as _, asked) => Ok(()),
            // Children end with the future of the controllers, and with the process.
            () = other.present() => bail!("{}", other.problem().unwrap_or_default()),
        }
    });
    tokio::select! {
        result = lead => result,
        ended = endpoints::health(health, ready, supervisor.clone()) => ended,
        ended = endpoints::diagnostics(reading, insecure, tls, client.clone(), exposed, supervisor.clone()) => ended,
        () = watch_definitions => Ok(()),
        () = watch_leases => Ok(()),
    }
}

fn options(args: &AddonsArgs, supervisor: &Supervisor) -> Options {
    Options {
        namespace: Some(args.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        limits: Limits {
            of_kind: usize::from(args.concurrency),
            of_cluster: usize::from(args.cluster_concurrency),
            // The only namespace has all of them.
            of_namespace: if args.namespace.is_empty() {
                usize::from(args.concurrency).div_ceil(2)
            } else {
                usize::from(args.concurrency)
            },
        },
        sync_period: args.sync_period,
        supervisor: supervisor.clone(),
    }
}

/// Whether the programs exist.
fn check(args: &ChartArgs) -> Result<()> {
    for (flag, path) in [("--helm", &args.helm), ("--values-program", &args.values_program)] {
        ensure!(path.is_file(), "{flag}: there is no program {}", path.display());
    }
    Ok(())
}

/// Prepares Helm and the program for values.
fn context(
    args: &ChartArgs,
    work_dir: &Path,
    client: Client,
    guard: Arc<dyn WriteGuard>,
    observer: Arc<dyn OperationObserver>,
) -> Result<Context> {
    let own = env::current_exe().context("cannot find the own program")?;
    let launcher =
        Launcher::new(own, &[EXEC_CHILD]).context("cannot start the thread that starts processes")?;
    let helm = Helm::new(args.helm.clone(), work_dir.to_owned(), launcher.clone())
        .with_context(|| format!("--work-dir: cannot use {}", work_dir.display()))?;
    let plain_http = if args.allow_http_repositories { PlainHttp::Accepted } else { PlainHttp::Rejected };
    Ok(Context::new(Parts {
        client,
        helm,
        values: Values::new(args.values_program.clone(), launcher),
        policy: Policy { plain_http, foreign_secrets: args.allow_secrets_of_other_namespaces },
        guard,
        observer,
        identity: kubernetes::identity(),
    }))
}
