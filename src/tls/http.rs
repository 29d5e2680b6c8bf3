//! HTTP on TLS connections, with bounds for clients that are slow, silent or many.

use std::{collections::VecDeque, time::Duration};

use axum::{Router, serve::Listener as _};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::task::AbortHandle;
use tracing::debug;

use super::TlsListener;

/// What clients may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Open connections. One more closes the oldest one, which most likely is idle.
    pub connections: usize,
    /// The time until the head of a request has arrived, from the handshake or the previous answer on. Clients that keep
    /// connections open open another one.
    pub head: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { connections: 256, head: Duration::from_secs(30) }
    }
}

/// Serves HTTP/1.1 until the future is dropped.
pub async fn serve_http(mut listener: TlsListener, router: Router, bounds: Bounds) {
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let (stream, peer) = listener.accept().await;
        open.retain(|connection| !connection.is_finished());
        while open.len() >= bounds.connections
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let service = TowerToHyperService::new(router.clone());
        let connection = tokio::spawn(async move {
            let mut builder = Builder::new(TokioExecutor::new()).http1_only();
            builder.http1().timer(TokioTimer::new()).header_read_timeout(bounds.head);
            if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                debug!(error, %peer, "a connection ended");
            }
        });
        open.push_back(connection.abort_handle());
    }
}
