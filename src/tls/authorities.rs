//! The certificate authorities of clients, from a PEM file: reloaded without a restart.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime, pem::PemObject as _},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use sha2::{Digest as _, Sha256};
use tracing::{info, warn};

use super::on_each_look;

/// Accepts clients with a certificate of one of the authorities, as the file last had them.
#[derive(Debug)]
pub struct ClientAuthorities {
    file: PathBuf,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    verifier: Arc<dyn ClientCertVerifier>,
    /// The digest of what was last read, so that a bad file is logged once.
    seen: [u8; 32],
}

impl ClientAuthorities {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, or has no certificate.
    pub fn new(file: PathBuf) -> Result<Arc<Self>> {
        let named = || format!("cannot use the certificate authorities in {}", file.display());
        let text = fs::read(&file).with_context(named)?;
        let verifier = parse(&text).with_context(named)?;
        let seen = Sha256::digest(&text).into();
        Ok(Arc::new(Self { file, held: Mutex::new(Held { verifier, seen }) }))
    }

    /// Keeps reading, for as long as the process runs.
    pub async fn follow(&self) {
        on_each_look(|| self.look()).await;
    }

    /// Reads the file and uses it if it is new and has certificates; otherwise the old authorities stay.
    fn look(&self) {
        let read = fs::read(&self.file).context("the file cannot be read");
        let digest = match &read {
            Ok(text) => Sha256::digest(text).into(),
            Err(error) => Sha256::digest(format!("{error:#}")).into(),
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut held.seen, digest) == digest {
            return;
        }
        match read.and_then(|text| parse(&text)) {
            Ok(verifier) => {
                info!(file = %self.file.display(), "loaded the certificate authorities of clients");
                held.verifier = verifier;
            }
            Err(error) => {
                let error = format!("{error:#}");
                warn!(file = %self.file.display(), error, "failed to load the certificate authorities of clients");
            }
        }
    }

    fn current(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.held.lock().unwrap_or_else(PoisonError::into_inner).verifier)
    }
}

fn parse(text: &[u8]) -> Result<Arc<dyn ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text) {
        let certificate = certificate.context("the file is not PEM")?;
        roots.add(certificate).context("a certificate cannot be read")?;
    }
    WebPkiClientVerifier::builder(Arc::new(roots)).build().context("the file holds no usable certificate")
}

impl ClientCertVerifier for ClientAuthorities {
    /// None, since the authorities can change: a client then presents the certificate that it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.current().verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current().supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    use super::*;

    /// An authority as PEM, and a certificate that it signed.
    fn authority() -> (String, CertificateDer<'static>) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let (issuer, key) = (Issuer::new(params, key), KeyPair::generate().unwrap());
        let client = CertificateParams::new(["core".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        (pem, client.der().clone())
    }

    // Rules: R5
    #[test]
    fn new_authorities_are_taken_and_a_bad_file_is_not() {
        // Another test may have installed it.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("ca.crt");
        let ((old, of_old), (new, of_new)) = (authority(), authority());
        fs::write(&file, &old).unwrap();
        let authorities = ClientAuthorities::new(file.clone()).unwrap();
        let accepts = |client: &CertificateDer<'_>| {
            authorities.verify_client_cert(client, &[], UnixTime::now()).is_ok()
        };
        assert!(accepts(&of_old) && !accepts(&of_new));
        for bad in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"] {
            fs::write(&file, bad).unwrap();
            authorities.look();
            assert!(accepts(&of_old), "{bad:?} replaces nothing");
        }
        fs::remove_file(&file).unwrap();
        authorities.look();
        assert!(accepts(&of_old), "a file that is being replaced");
        // While authorities are exchanged, both are in the file.
        fs::write(&file, format!("{old}{new}")).unwrap();
        authorities.look();
        assert!(accepts(&of_old) && accepts(&of_new));
        fs::write(&file, &new).unwrap();
        authorities.look();
        assert!(!accepts(&of_old) && accepts(&of_new));
        assert!(authorities.root_hint_subjects().is_empty() && authorities.client_auth_mandatory());
    }
}
