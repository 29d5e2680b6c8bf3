//! A server over TLS on the loopback interface, for what programs accept over TLS alone.

use std::{io, net::SocketAddr, sync::Arc};

use anyhow::Result;
use axum::{Router, serve::Listener};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
    server::TlsStream,
};

use crate::pki::Authority;

/// A running server. It ends with the runtime that it was started on, or with its task.
pub struct HttpsServer {
    /// Its address, `https://127.0.0.1:<port>`.
    pub url: String,
    /// The certificate of the authority that signed its own, PEM.
    pub authority: String,
    /// What serves it.
    pub task: JoinHandle<()>,
}

impl HttpsServer {
    /// A kubeconfig for an API server.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let text = json!({
            "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {
                "server": self.url, "certificate-authority-data": STANDARD.encode(&self.authority),
            }}],
            "users": [{"name": "a", "user": {"token": "t0ken"}}],
        });
        text.to_string()
    }
}

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, peer)) = self.listener.accept().await else { continue };
            // A client that does not trust the certificate ends the handshake.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Serves the routes.
///
/// # Errors
/// When no certificate can be made, or no port is free.
pub async fn serve_https(routes: Router) -> Result<HttpsServer> {
    let authority = Authority::new("test")?;
    let identity = authority.server(&[])?;
    let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("https://{}", listener.local_addr()?);
    let tls = Tls { listener, acceptor: TlsAcceptor::from(Arc::new(config)) };
    let task = tokio::spawn(async move {
        // It fails only once no connection can be accepted any more.
        let _ = axum::serve(tls, routes).await;
    });
    Ok(HttpsServer { url, authority: authority.certificate().to_owned(), task })
}
