//! The endpoints that every role serves: health, and metrics. An endpoint that is off never ends.

use std::{future::pending, sync::Arc};

use anyhow::{Context as _, Result};
use capasg_cloud::Supervisor;
use kube::Client;
use tokio::net::TcpListener;

use crate::{
    diagnostics::{self, Access, KubeReviews},
    health,
    metrics::Exposed,
    tls::TlsParameters,
};

/// Serves `/healthz` and `/readyz`.
///
/// # Errors
/// Never: an endpoint that is served does not end.
pub async fn health(
    listener: Option<TcpListener>,
    ready: impl Fn() -> Option<String> + Clone + Send + Sync + 'static,
    supervisor: Supervisor,
) -> Result<()> {
    match listener {
        Some(listener) => {
            health::serve(listener, ready, supervisor).await;
            Ok(())
        }
        None => pending().await,
    }
}

/// Serves `/metrics`, to authorized clients unless `insecure`.
///
/// # Errors
/// If no certificate can be created.
pub async fn diagnostics(
    listener: Option<TcpListener>,
    insecure: bool,
    tls: TlsParameters,
    client: Client,
    metrics: Arc<dyn Exposed>,
    supervisor: Supervisor,
) -> Result<()> {
    match listener {
        Some(listener) if insecure => {
            diagnostics::open(listener, metrics).await;
            Ok(())
        }
        Some(listener) => {
            let access = Arc::new(Access::new(KubeReviews(client)));
            let served = diagnostics::guarded(listener, metrics, access, &tls, &supervisor).await;
            served.context("the metrics endpoint failed")
        }
        None => pending().await,
    }
}
