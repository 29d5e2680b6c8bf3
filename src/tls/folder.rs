//! A certificate from a folder, as cert-manager's Secret is mounted: reloaded without a restart (rule N3).

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use rustls::{
    ConfigBuilder, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WantsServerCert},
    sign::CertifiedKey,
};
use sha2::{Digest as _, Sha256};
use tracing::{info, warn};

use super::{ClientAuthorities, TlsParameters, on_each_look};

/// The pair `tls.crt` and `tls.key` of a folder, as it was when the two last belonged together.
#[derive(Debug)]
pub struct CertificateFolder {
    folder: PathBuf,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    key: Option<Arc<CertifiedKey>>,
    /// The digest of what was last read, so that a bad pair is logged once.
    seen: Option<[u8; 32]>,
}

impl CertificateFolder {
    /// Reads what is in the folder now, if anything: what is missing may still be mounted.
    #[must_use]
    pub fn new(folder: PathBuf) -> Arc<Self> {
        let this = Arc::new(Self { folder, held: Mutex::default() });
        this.look();
        this
    }

    /// A server that presents the newest pair at each handshake, to any client.
    #[must_use]
    pub fn server(self: &Arc<Self>, parameters: &TlsParameters) -> ServerConfig {
        self.finish(parameters.builder().with_no_client_auth())
    }

    /// The same to clients whose certificate is signed by one of the authorities; others fail the handshake. A session cannot
    /// be resumed: that would skip the verification of a client whose authority was removed meanwhile.
    #[must_use]
    pub fn server_for_clients_of(
        self: &Arc<Self>,
        authorities: &Arc<ClientAuthorities>,
        parameters: &TlsParameters,
    ) -> ServerConfig {
        let verifier = Arc::<ClientAuthorities>::clone(authorities);
        let mut config = self.finish(parameters.builder().with_client_cert_verifier(verifier));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config
    }

    fn finish(self: &Arc<Self>, builder: ConfigBuilder<ServerConfig, WantsServerCert>) -> ServerConfig {
        let mut config = builder.with_cert_resolver(Arc::<Self>::clone(self));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }

    /// Whether a pair was loaded.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).key.is_some()
    }

    /// Keeps reading, for as long as the process runs.
    pub async fn follow(&self) {
        on_each_look(|| self.look()).await;
    }

    /// Reads the pair and uses it if it is new and belongs together; else the old one stays.
    fn look(&self) {
        let read = self.read();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = match &read {
            Ok((certificates, key)) => {
                Sha256::new().chain_update(certificates).chain_update(key).finalize().into()
            }
            Err(error) => Sha256::digest(format!("{error:#}")).into(),
        };
        if held.seen.replace(digest) == Some(digest) {
            return;
        }
        match read.and_then(|(certificates, key)| parse(&certificates, &key)) {
            Ok(key) => {
                info!(directory = %self.folder.display(), "loaded the serving certificate");
                held.key = Some(Arc::new(key));
            }
            Err(error) => {
                let error = format!("{error:#}");
                warn!(directory = %self.folder.display(), error, "failed to load the serving certificate");
            }
        }
    }

    fn read(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let file = |name: &str| {
            let path = self.folder.join(name);
            fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        Ok((file("tls.crt")?, file("tls.key")?))
    }
}

impl ResolvesServerCert for CertificateFolder {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).key.clone()
    }
}

/// A certificate with its chain and the private key that belongs to it.
fn parse(certificates: &[u8], key: &[u8]) -> Result<CertifiedKey> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .context("tls.crt is not PEM")?;
    anyhow::ensure!(!chain.is_empty(), "tls.crt holds no certificate");
    let key = PrivateKeyDer::from_pem_slice(key).context("tls.key holds no private key")?;
    let provider = CryptoProvider::get_default().context("no TLS provider is installed")?;
    CertifiedKey::from_der(chain, key, provider).context("tls.key does not belong to tls.crt")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn issue(folder: &Path, name: &str) -> Vec<u8> {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
        fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        made.cert.der().to_vec()
    }

    fn shown(folder: &CertificateFolder) -> Option<Vec<u8>> {
        let held = folder.held.lock().unwrap();
        held.key.as_ref().map(|key| key.cert[0].to_vec())
    }

    // Rules: N3
    #[test]
    fn a_renewed_pair_is_taken_and_a_bad_one_is_not() {
        // Another test may have installed it.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let place = tempfile::tempdir().unwrap();
        let folder = CertificateFolder::new(place.path().to_owned());
        assert_eq!(shown(&folder), None, "it may come later");

        let first = issue(place.path(), "first");
        folder.look();
        assert_eq!(shown(&folder), Some(first.clone()));

        // Half of a renewal: the key of another certificate.
        let other = rcgen::generate_simple_self_signed(["other".to_owned()]).unwrap();
        fs::write(place.path().join("tls.key"), other.signing_key.serialize_pem()).unwrap();
        folder.look();
        assert_eq!(shown(&folder), Some(first.clone()), "a pair that does not fit");
        fs::remove_file(place.path().join("tls.key")).unwrap();
        folder.look();
        assert_eq!(shown(&folder), Some(first.clone()), "half a pair");
        fs::write(place.path().join("tls.crt"), "nonsense").unwrap();
        fs::write(place.path().join("tls.key"), "nonsense").unwrap();
        folder.look();
        assert_eq!(shown(&folder), Some(first), "no pair at all");

        let second = issue(place.path(), "second");
        folder.look();
        assert_eq!(shown(&folder), Some(second));
    }
}
