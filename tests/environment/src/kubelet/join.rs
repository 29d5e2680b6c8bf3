//! Whether an instance may join: it must have been told of this cluster, with a token that still serves.

use std::io::Read as _;

use anyhow::Result;
use chrono::Utc;
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::ListParams};

use super::instance::Instance;
use crate::workload::tokens;

/// What an instance must bring along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Join {
    /// A kubeadm join configuration for this cluster's endpoint, with a bootstrap token that the cluster knows and
    /// that has not expired: as kubeadm itself wants it.
    #[default]
    BootstrapToken,
    /// User data that contain this text; for bootstrap data that a test wrote.
    Marker(String),
}

pub(super) enum Verdict {
    Admitted,
    /// Told of this cluster, but it cannot join now; kubeadm too would try again.
    Refused(String),
    /// Told of another cluster, or of none.
    Foreign,
}

impl Join {
    pub(super) async fn admits(
        &self,
        client: &Client,
        endpoint: &str,
        instance: &Instance,
    ) -> Result<Verdict> {
        let text = unpack(&instance.user_data);
        let token = match self {
            Self::Marker(marker) if text.contains(marker) => return Ok(Verdict::Admitted),
            Self::Marker(_) => return Ok(Verdict::Foreign),
            Self::BootstrapToken if value_of(&text, "apiServerEndpoint") != Some(endpoint) => {
                return Ok(Verdict::Foreign);
            }
            Self::BootstrapToken => value_of(&text, "token").unwrap_or_default(),
        };
        let Some(name) = tokens::secret_name(token) else {
            return Ok(Verdict::Refused("the user data hold no bootstrap token".to_owned()));
        };
        let secrets: Api<Secret> = Api::namespaced(client.clone(), tokens::NAMESPACE);
        let all = secrets.list(&ListParams::default()).await?;
        let Some(secret) = all.iter().find(|secret| secret.metadata.name.as_ref() == Some(&name)) else {
            return Ok(Verdict::Refused(format!("the cluster has no {name}")));
        };
        Ok(match tokens::is_valid(secret, token, Utc::now()) {
            Ok(()) => Verdict::Admitted,
            Err(why) => Verdict::Refused(format!("{name}: {why}")),
        })
    }
}

/// What cloud-init sees: user data may be compressed.
fn unpack(user_data: &[u8]) -> String {
    let mut text = String::new();
    if user_data.starts_with(&[0x1f, 0x8b]) && GzDecoder::new(user_data).read_to_string(&mut text).is_ok() {
        return text;
    }
    String::from_utf8_lossy(user_data).into_owned()
}

/// The value of the first line `<key>: <value>`, however deep it is indented.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let value = line.trim_start().strip_prefix(key)?.strip_prefix(':')?;
        Some(value.trim().trim_matches('"')).filter(|value| !value.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const CLOUD_INIT: &str = "## template: jinja\n#cloud-config\nwrite_files:\n- path: /run/kubeadm/join.yaml\n  \
        content: |\n    discovery:\n      bootstrapToken:\n        apiServerEndpoint: 127.0.0.1:20000\n        \
        token: abcdef.0123456789abcdef\n";

    #[test]
    fn the_join_configuration_is_found_in_cloud_init() {
        assert_eq!(value_of(CLOUD_INIT, "apiServerEndpoint"), Some("127.0.0.1:20000"));
        assert_eq!(value_of(CLOUD_INIT, "token"), Some("abcdef.0123456789abcdef"));
        assert_eq!(value_of(CLOUD_INIT, "discovery"), None);
    }

    #[test]
    fn compressed_user_data_are_unpacked() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(CLOUD_INIT.as_bytes()).unwrap();
        assert_eq!(unpack(&encoder.finish().unwrap()), CLOUD_INIT);
        assert_eq!(unpack(CLOUD_INIT.as_bytes()), CLOUD_INIT);
    }
}
