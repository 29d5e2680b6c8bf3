//! A server over TLS on the loopback interface, which ends with the test.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{Router, serve::Listener};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_environment::Authority;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
    server::TlsStream,
};

use super::Outcome;

/// Its address and the authority of its certificate.
pub struct Server {
    pub url: String,
    pub authority: String,
}

impl Server {
    /// A kubeconfig for an API server.
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
pub async fn serve(routes: Router) -> Outcome<Server> {
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
    tokio::spawn(async move { axum::serve(tls, routes).await });
    Ok(Server { url, authority: authority.certificate().to_owned() })
}
