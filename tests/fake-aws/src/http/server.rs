//! The server: one task per connection, closed without a word where a reply is to be lost.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::Request,
    routing::{any, get},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

use super::{Pace, api, api::Lost, control_api, iam_api, pace::Pacer, shared::Shared};
use crate::Simulator;

/// A running HTTP front; it stops when it is dropped.
pub struct Server {
    addr: SocketAddr,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a simulator in real time on an address, usually `127.0.0.1:0`.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn start(simulator: Simulator, addr: SocketAddr) -> io::Result<Self> {
        Self::start_paced(simulator, addr, Pace::RealTime(1.0)).await
    }

    /// Serves a simulator whose virtual time moves at the given pace.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn start_paced(simulator: Simulator, addr: SocketAddr, pace: Pace) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared { simulator, pacer: Pacer::new(pace) });
        let router = Router::new()
            .nest("/_sim", control_api::router())
            .route("/v1/credentials", get(iam_api::pod_credentials))
            .fallback(any(api::handle))
            .with_state(shared);
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(listener, router, stop.clone()));
        Ok(Self { addr, stop, task: Some(task) })
    }

    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What `AWS_ENDPOINT_URL` is set to.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Stops listening and closes every connection.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // The task ends by the token; there is nothing to learn from how.
            let _ = task.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, router: Router, stop: CancellationToken) {
    let connections = TaskTracker::new();
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    continue;
                }
            },
        };
        connections.spawn(connection(stream, router.clone(), stop.clone()));
    }
    connections.close();
    connections.wait().await;
}

async fn connection(stream: TcpStream, router: Router, stop: CancellationToken) {
    // Small replies must not wait for acknowledgements of earlier ones.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let router = router.clone();
        async move {
            let response = match router.oneshot(request.map(Body::new)).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            // An error here makes hyper close the connection without an answer.
            if response.extensions().get::<Lost>().is_some() {
                return Err(io::Error::other("the reply is lost on purpose"));
            }
            Ok(response)
        }
    });
    tokio::select! {
        () = stop.cancelled() => {}
        result = http1::Builder::new().serve_connection(TokioIo::new(stream), service) => {
            if let Err(error) = result {
                tracing::debug!(%error, "a connection ended early");
            }
        }
    }
}
