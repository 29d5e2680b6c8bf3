//! Versions and cipher suites that clients may use, named as Go names them.

use std::{str::FromStr, sync::Arc};

use anyhow::{Context as _, Result};
use rustls::{
    ConfigBuilder, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, WantsVerifier,
    crypto::{CryptoProvider, aws_lc_rs},
    version::{TLS12, TLS13},
};
use thiserror::Error;

/// The oldest version that clients may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum MinVersion {
    /// TLS 1.2.
    #[default]
    #[value(name = "VersionTLS12")]
    Tls12,
    /// TLS 1.3.
    #[value(name = "VersionTLS13")]
    Tls13,
}

/// A cipher suite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CipherSuite(SupportedCipherSuite);

/// A name that no cipher suite has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not one of the cipher suites {names}", names = names().join(", "))]
pub struct UnknownSuite(String);

/// Go's older names of two suites.
const OLDER: [(&str, &str); 2] = [
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
];

impl FromStr for CipherSuite {
    type Err = UnknownSuite;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let name = name.trim();
        let current = OLDER.iter().find(|(older, _)| *older == name).map_or(name, |(_, current)| current);
        let found = aws_lc_rs::ALL_CIPHER_SUITES.iter().find(|suite| name_of(**suite) == current);
        found.map(|suite| Self(*suite)).ok_or_else(|| UnknownSuite(name.to_owned()))
    }
}

/// The name in the registry of IANA, which Go uses.
fn name_of(suite: SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
}

fn names() -> Vec<String> {
    aws_lc_rs::ALL_CIPHER_SUITES.iter().map(|suite| name_of(*suite)).collect()
}

/// What all TLS listeners of a process accept.
#[derive(Clone)]
pub struct TlsParameters(ConfigBuilder<ServerConfig, WantsVerifier>);

impl TlsParameters {
    /// From a version and suites; none are all. As in Go, suites of TLS 1.2 do not limit those of TLS 1.3; those of TLS 1.3 do
    /// if there are any.
    ///
    /// # Errors
    /// If no suite is left for the version.
    pub fn new(min_version: MinVersion, suites: &[CipherSuite]) -> Result<Self> {
        let installed = CryptoProvider::get_default().map(|provider| CryptoProvider::clone(provider));
        let mut provider = installed.unwrap_or_else(aws_lc_rs::default_provider);
        for version in [&TLS12, &TLS13] {
            let is_of = |suite: SupportedCipherSuite| suite.version() == version;
            let chosen = suites.iter().any(|CipherSuite(suite)| is_of(*suite));
            if chosen || (version == &TLS12 && !suites.is_empty()) {
                let is_chosen = |suite: &SupportedCipherSuite| suites.contains(&CipherSuite(*suite));
                provider.cipher_suites.retain(|suite| !is_of(*suite) || is_chosen(suite));
            }
        }
        let versions: &[&SupportedProtocolVersion] = match min_version {
            MinVersion::Tls12 if provider.cipher_suites.iter().any(|suite| suite.version() == &TLS12) => {
                &[&TLS12, &TLS13]
            }
            _ => &[&TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(provider));
        let builder = builder.with_protocol_versions(versions);
        Ok(Self(builder.context("--tls-cipher-suites has no suite for --tls-min-version")?))
    }

    pub(super) fn builder(&self) -> ConfigBuilder<ServerConfig, WantsVerifier> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites(names: &[&str]) -> Result<Vec<CipherSuite>, UnknownSuite> {
        names.iter().map(|name| name.parse()).collect()
    }

    // Rules: N1
    #[test]
    fn suites_have_the_names_of_go_and_others_are_refused() {
        for name in names() {
            assert!(name.parse::<CipherSuite>().is_ok(), "{name}");
        }
        let of_go = [
            "TLS_AES_128_GCM_SHA256",
            "TLS_AES_256_GCM_SHA384",
            "TLS_CHACHA20_POLY1305_SHA256",
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
        ];
        assert_eq!(suites(&of_go).unwrap().len(), of_go.len());
        for unknown in ["TLS_RSA_WITH_AES_128_CBC_SHA", "tls_aes_128_gcm_sha256", ""] {
            let error = suites(&[unknown]).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{unknown}` is not one of the cipher suites TLS_")),
                "{error}"
            );
        }
    }
}
