//! Kubeconfig files: what programs of other languages and people reach an API server with.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::pki::{Identity, write_private};

/// How to reach an API server and as whom.
#[derive(Clone)]
pub struct Access {
    /// The name of cluster, user and context in the file.
    pub name: String,
    /// The server's URL.
    pub server: String,
    /// The certificate of the authority that signed the server's certificate, PEM.
    pub authority: String,
    /// The client's certificate and key.
    pub identity: Identity,
    /// The user to act as, for example `system:serviceaccount:<namespace>:<name>`.
    pub impersonate: Option<String>,
}

impl Access {
    /// The same server, acting as a service account.
    ///
    /// The API server adds the groups of service accounts by itself, so the rights are exactly those of a pod that
    /// runs under that account.
    #[must_use]
    pub fn as_service_account(&self, namespace: &str, name: &str) -> Self {
        Self { impersonate: Some(format!("system:serviceaccount:{namespace}:{name}")), ..self.clone() }
    }

    fn document(&self) -> Value {
        let mut user = json!({
            "client-certificate-data": STANDARD.encode(&self.identity.certificate),
            "client-key-data": STANDARD.encode(&self.identity.key),
        });
        if let Some(impersonate) = &self.impersonate {
            user["as"] = json!(impersonate);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": {
                "server": self.server,
                "certificate-authority-data": STANDARD.encode(&self.authority),
            }}],
            "users": [{"name": self.name, "user": user}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": self.name}}],
            "current-context": self.name,
        })
    }

    /// The file's text.
    ///
    /// # Errors
    /// When it cannot be written as YAML.
    pub fn kubeconfig(&self) -> Result<String> {
        serde_saphyr::to_string(&self.document()).context("cannot write a kubeconfig")
    }

    /// Writes the file, readable by its owner only.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<PathBuf> {
        write_private(path, &self.kubeconfig()?)?;
        Ok(path.to_owned())
    }

    /// A client of its own.
    ///
    /// A client belongs to the runtime that it was made on: make one per test rather than share one.
    ///
    /// # Errors
    /// When the certificates cannot be used.
    pub async fn client(&self) -> Result<Client> {
        client_of(&self.kubeconfig()?).await
    }
}

/// A client for the text of a kubeconfig file.
///
/// # Errors
/// When the text is no kubeconfig or its certificates cannot be used.
pub async fn client_of(kubeconfig: &str) -> Result<Client> {
    crate::install_crypto_provider();
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).context("cannot read a kubeconfig")?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Client::try_from(config).context("cannot make a client")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::Authority;

    #[test]
    fn a_service_account_is_impersonated() {
        let authority = Authority::new("test").unwrap();
        let access = Access {
            name: "one".to_owned(),
            server: "https://127.0.0.1:1".to_owned(),
            authority: authority.certificate().to_owned(),
            identity: authority.client("admin", "system:masters").unwrap(),
            impersonate: None,
        };
        let text = access.as_service_account("capasg-system", "capasg-manager").kubeconfig().unwrap();
        let read = Kubeconfig::from_yaml(&text).unwrap();
        let user = read.auth_infos[0].auth_info.as_ref().unwrap();
        assert_eq!(user.impersonate.as_deref(), Some("system:serviceaccount:capasg-system:capasg-manager"));
        assert_eq!(read.current_context.as_deref(), Some("one"));
    }
}
