//! TLS for a listener: connections are handed on after their handshake.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use axum::serve::Listener;
use capasg_cloud::Supervisor;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::AbortHandle,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::server::BoundedTasks;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes at the same time. One more ends the oldest one, so that silent clients do not keep others out.
const HANDSHAKES: usize = 128;

/// Accepts connections and hands on those whose handshake succeeded; slow clients do not delay others.
pub struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
    accepting: AbortHandle,
}

impl TlsListener {
    /// Takes over `listener`. Connections are accepted by a task that `supervisor` keeps running.
    ///
    /// # Errors
    /// If the listener has no address.
    pub fn new(listener: TcpListener, config: ServerConfig, supervisor: &Supervisor) -> Result<Self> {
        let address = listener.local_addr().context("the listener has no address")?;
        let (hand_on, ready) = mpsc::channel(HANDSHAKES);
        let (listener, acceptor) = (Arc::new(listener), TlsAcceptor::from(Arc::new(config)));
        let task = move || accept(Arc::clone(&listener), acceptor.clone(), hand_on.clone());
        let kept = supervisor.keep(&format!("TLS listener on {address}"), &CancellationToken::new(), task);
        Ok(Self { ready, address, accepting: tokio::spawn(kept).abort_handle() })
    }
}

impl Drop for TlsListener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The accepting task stops only with this listener.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}

async fn accept(
    listener: Arc<TcpListener>,
    acceptor: TlsAcceptor,
    hand_on: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let mut handshakes = BoundedTasks::new(HANDSHAKES);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(connection) => connection,
            Err(error) => {
                // Out of file descriptors, most likely: trying again at once would not help.
                debug!(%error, "failed to accept a connection");
                sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let (acceptor, hand_on) = (acceptor.clone(), hand_on.clone());
        handshakes.spawn(async move {
            match timeout(HANDSHAKE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    // The receiver was dropped: the process exits.
                    let _ = hand_on.send((stream, peer)).await;
                }
                Ok(Err(error)) => debug!(%error, %peer, "a TLS handshake failed"),
                Err(_) => debug!(%peer, "a TLS handshake took too long"),
            }
        });
    }
}
