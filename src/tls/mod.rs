//! TLS for what this process serves: metrics with a self-signed certificate, webhooks with one from a folder. TLS 1.2 and
//! 1.3, as rustls has no others.

mod folder;
mod listener;

use anyhow::{Context as _, Result};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

pub use self::{folder::CertificateFolder, listener::TlsListener};

/// With a self-signed certificate: readers are authenticated by their tokens, and metrics are not worth a certificate
/// authority.
///
/// # Errors
/// If no certificate can be created.
pub fn own_certificate() -> Result<ServerConfig> {
    let made = rcgen::generate_simple_self_signed([String::from("localhost")])
        .context("cannot create a certificate")?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .context("cannot use the certificate")
}
