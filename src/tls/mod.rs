//! TLS for what this process serves: metrics with a certificate of its own making, webhooks with one from a folder.
//! TLS 1.2 and 1.3 are spoken, rustls knows no others.

mod folder;
mod listener;

use anyhow::{Context as _, Result};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

pub use self::{folder::CertificateFolder, listener::TlsListener};

/// With a certificate that this process makes for itself: readers are told apart by their tokens, and what they read is
/// no secret worth a certificate authority.
///
/// # Errors
/// When no certificate can be made.
pub fn own_certificate() -> Result<ServerConfig> {
    let made = rcgen::generate_simple_self_signed([String::from("localhost")])
        .context("cannot make a certificate")?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .context("cannot use the certificate")
}
