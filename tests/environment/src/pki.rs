//! Certificates and keys of the control plane: made for one run, kept in its folder.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

/// A certificate with its private key, both PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS #8.
    pub key: String,
}

impl Identity {
    /// Writes `<name>.crt` and `<name>.key` and answers their paths.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(PathBuf, PathBuf)> {
        let certificate = folder.join(format!("{name}.crt"));
        let key = folder.join(format!("{name}.key"));
        write_private(&certificate, &self.certificate)?;
        write_private(&key, &self.key)?;
        Ok((certificate, key))
    }
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// A certificate authority of one run.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new authority.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The authority of a Cluster that Cluster API made, from the Secret `<cluster>-ca`. Cluster API gives each the name
    /// `kubernetes`, as a printable string, so that its certificate is not parsed here.
    ///
    /// # Errors
    /// When the key is not PEM of a kind that can sign.
    pub fn of_cluster(certificate: &str, key: &str) -> Result<Self> {
        let key = KeyPair::from_pem(key).context("cannot read the authority's key")?;
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, DnValue::PrintableString("kubernetes".try_into()?));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self { certificate: certificate.to_owned(), issuer: Issuer::new(params, key) })
    }

    /// The authority's own certificate, PEM.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A server's certificate for these DNS names or addresses, and 127.0.0.1.
    ///
    /// The names are only subject alternative names: a common name may have 64 characters at most, and the names
    /// of services in long namespaces have more.
    ///
    /// # Errors
    /// When a name is no DNS name.
    pub fn server(&self, dns_names: &[String]) -> Result<Identity> {
        let mut params = CertificateParams::new(dns_names.to_vec())?;
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        params.distinguished_name = subject("server", None);
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client's certificate; Kubernetes reads `user` and `group` from its subject.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn client(&self, user: &str, group: &str) -> Result<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(user, Some(group));
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Identity> {
        let key = KeyPair::generate()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }
}

fn subject(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

/// A key pair for signing service account tokens, PEM: private, then public.
///
/// # Errors
/// When the key cannot be made.
pub fn signing_key() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_service_names_are_no_problem() {
        let authority = Authority::new("test").unwrap();
        let name = format!("{}.{}.svc.cluster.local", "a".repeat(63), "b".repeat(63));
        let identity = authority.server(&[name]).unwrap();
        assert!(identity.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(identity.key.starts_with("-----BEGIN PRIVATE KEY-----"));
    }

    #[test]
    fn private_files_are_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let identity = Authority::new("test").unwrap().client("admin", "system:masters").unwrap();
        let (_, key) = identity.write(folder.path(), "admin").unwrap();
        assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
