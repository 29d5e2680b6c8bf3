//! The connection to the management cluster, and the name of this replica.

use std::{env, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Without a byte from the API server for this long, a connection counts as broken. A watch ends before, and the API
/// server answers any other request within a minute (`--request-timeout`).
const READ_TIMEOUT: Duration = Duration::from_secs(90);

/// How to connect: by a kubeconfig, or as the environment says.
///
/// # Errors
/// If there is neither a kubeconfig nor a service account, or it cannot be used.
pub async fn config(kubeconfig: Option<&Path>) -> Result<Config> {
    let config = match kubeconfig {
        Some(path) => {
            let file =
                Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("cannot use {}", path.display()))
        }
        None => Config::infer().await.context(
            "cannot load a kubeconfig or the service account of the pod (set --kubeconfig or KUBECONFIG)",
        ),
    };
    config.map(with_read_timeout)
}

/// Counted from the last write, so that the time that a connection was idle before a request does not count.
fn with_read_timeout(mut config: Config) -> Config {
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    config
}

/// Tells replicas apart, and a process from its predecessor in the same pod.
#[must_use]
pub fn identity() -> String {
    let name =
        ["POD_NAME", "HOSTNAME"].iter().find_map(|name| env::var(name).ok().filter(|name| !name.is_empty()));
    format!("{}_{:016x}", name.as_deref().unwrap_or("capasg"), rand::random::<u64>())
}

#[cfg(test)]
mod tests {
    use capasg_controllers::client::WATCH_TIMEOUT;
    use kube::Client;
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_silent_api_server_is_given_up_and_a_healthy_watch_is_not() {
        let config = with_read_timeout(Config::new("https://localhost".parse().unwrap()));
        assert_eq!(config.read_timeout, Some(READ_TIMEOUT));
        assert!(config.reset_reader_on_write);
        // The API server ends a watch by then, and may be late.
        assert!(READ_TIMEOUT >= WATCH_TIMEOUT + Duration::from_secs(20));
        assert!(READ_TIMEOUT > Duration::from_mins(1), "the API server's own limit");
    }

    /// The connection is established, and nothing comes back.
    #[tokio::test]
    async fn a_request_without_a_response_fails_after_the_read_timeout() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let mut config = with_read_timeout(Config::new(address.parse().unwrap()));
        assert!(config.read_timeout.is_some());
        config.read_timeout = Some(Duration::from_millis(50));
        let client = Client::try_from(config).unwrap();
        let (connection, answer) = tokio::join!(listener.accept(), client.apiserver_version());
        assert!(connection.is_ok() && answer.is_err());
    }

    #[test]
    fn identities_differ() {
        assert_ne!(identity(), identity());
    }
}
