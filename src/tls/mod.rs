//! TLS for what this process serves: metrics with a self-signed certificate, webhooks with one from a folder. Versions and
//! cipher suites are those of flags, for all of them.

mod authorities;
mod folder;
mod listener;
mod parameters;

use std::time::Duration;

use anyhow::{Context as _, Result};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

use tokio::time::{MissedTickBehavior, interval};

pub use self::{
    authorities::ClientAuthorities,
    folder::CertificateFolder,
    listener::TlsListener,
    parameters::{CipherSuite, MinVersion, TlsParameters},
};

/// How often files are read. The kubelet takes up to a minute to renew a mounted Secret, and an authority that renews has
/// weeks before the old certificate expires.
const LOOK: Duration = Duration::from_secs(10);

/// Calls a function at once and then at each interval, without end.
async fn on_each_look(look: impl Fn()) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        look();
    }
}

/// With a self-signed certificate: readers are authenticated by their tokens, and metrics are not worth a certificate
/// authority.
///
/// # Errors
/// If no certificate can be created.
pub fn own_certificate(parameters: &TlsParameters) -> Result<ServerConfig> {
    let made = rcgen::generate_simple_self_signed([String::from("localhost")])
        .context("cannot create a certificate")?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    parameters
        .builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .context("cannot use the certificate")
}
