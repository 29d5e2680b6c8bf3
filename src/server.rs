//! The HTTP server of all listeners, with bounds for clients that are slow, silent or many.

use std::{collections::VecDeque, pin::pin, time::Duration};

use axum::{Router, serve::Listener};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};
use tracing::debug;

/// The most that is buffered of what a connection receives, in bytes, and so the largest head of a request.
const BUFFERED: usize = 32 * 1024;

/// How long a connection that is to be closed may take for its last request: as long as core waits for a hook.
const LAST: Duration = Duration::from_secs(30);

/// What clients may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Open connections. One more closes the oldest one, which most likely is idle.
    pub connections: usize,
    /// The time until the head of a request has arrived, from the handshake or the previous answer on. Clients that keep
    /// connections open open another one.
    pub head: Duration,
    /// How long a connection is used; then it is closed after the request that it carries.
    pub age: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { connections: 256, head: Duration::from_secs(30), age: Duration::from_mins(2) }
    }
}

impl Bounds {
    /// The same with another number of connections.
    #[must_use]
    pub fn with_connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }
}

/// Serves HTTP/1.1 until the future is dropped.
pub async fn serve_http<L: Listener>(mut listener: L, router: Router, bounds: Bounds) {
    let mut open = BoundedTasks::new(bounds.connections);
    loop {
        let (stream, _) = listener.accept().await;
        let service = TowerToHyperService::new(router.clone());
        open.spawn(async move {
            let mut builder = Builder::new(TokioExecutor::new()).http1_only();
            builder.http1().timer(TokioTimer::new()).header_read_timeout(bounds.head).max_buf_size(BUFFERED);
            let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = sleep(bounds.age) => {
                    connection.as_mut().graceful_shutdown();
                    // A client that does not read its answer would keep it in memory.
                    timeout(LAST, connection).await.unwrap_or(Ok(()))
                }
            };
            if let Err(error) = ended {
                debug!(error, "a connection ended");
            }
        });
    }
}

/// Tasks of which only so many run: one more ends the oldest one. All end with this.
pub struct BoundedTasks {
    running: VecDeque<AbortHandle>,
    most: usize,
}

impl BoundedTasks {
    /// None yet.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { running: VecDeque::new(), most }
    }

    /// Starts a task.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.retain(|task| !task.is_finished());
        while self.running.len() >= self.most
            && let Some(oldest) = self.running.pop_front()
        {
            oldest.abort();
        }
        self.running.push_back(tokio::spawn(task).abort_handle());
    }
}

impl Drop for BoundedTasks {
    fn drop(&mut self) {
        for task in &self.running {
            task.abort();
        }
    }
}
