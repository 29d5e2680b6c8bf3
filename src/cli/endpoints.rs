//! The flags of the endpoints that every role of the binary serves: health and metrics.

use anyhow::Result;
use clap::{ArgAction, Args};
use tokio::net::TcpListener;

use super::Address;
use crate::tls::{CipherSuite, MinVersion, TlsParameters};

/// Flags of health and metrics.
#[derive(Debug, Args)]
pub struct EndpointArgs {
    /// Address of `/healthz` and `/readyz` (plain HTTP); `0` disables it.
    #[arg(long, value_name = "ADDRESS", default_value = ":9440")]
    pub health_addr: Address,

    /// Address of `/metrics` (HTTPS; requires a bearer token that is authorized to `get` the non-resource URL `/metrics`);
    /// `0` disables it.
    #[arg(long, value_name = "ADDRESS", default_value = ":8443")]
    pub diagnostics_address: Address,

    /// Serve `/metrics` in plain HTTP and without authentication.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", action = ArgAction::Set)]
    pub insecure_diagnostics: bool,

    #[command(flatten)]
    pub tls: TlsArgs,

    /// Serve metrics of single objects: of each pool (manager), of each release (add-on provider), and of each Cluster that
    /// a hook blocks (Runtime Extension). Their number grows with that of the objects.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true,
          default_missing_value = "true", action = ArgAction::Set)]
    pub object_metrics: bool,
}

/// Flags of TLS, for all that is served with it.
#[derive(Debug, Args)]
pub struct TlsArgs {
    /// Minimum TLS version of webhooks, Runtime Hooks and metrics.
    #[arg(long, value_name = "VERSION", default_value = "VersionTLS12")]
    pub tls_min_version: MinVersion,

    /// Cipher suites of webhooks, Runtime Hooks and metrics, separated by commas and named as in Go, such as
    /// `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`; by default all that are secure. Suites of TLS 1.2 do not limit those of TLS
    /// 1.3.
    #[arg(long, value_name = "SUITES", value_delimiter = ',')]
    pub tls_cipher_suites: Vec<CipherSuite>,
}

impl TlsArgs {
    /// What TLS listeners accept.
    ///
    /// # Errors
    /// If there is no cipher suite for the version.
    pub fn parameters(&self) -> Result<TlsParameters> {
        TlsParameters::new(self.tls_min_version, &self.tls_cipher_suites)
    }
}

impl EndpointArgs {
    /// Opens the listeners of health and of metrics; `None` for one that is off.
    ///
    /// # Errors
    /// If an address is in use or not of this host.
    pub async fn listen(&self) -> Result<(Option<TcpListener>, Option<TcpListener>)> {
        Ok((self.health_addr.listen().await?, self.diagnostics_address.listen().await?))
    }
}
