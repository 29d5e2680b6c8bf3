//! The store under the API servers.

use std::{sync::Arc, time::Duration};

use anyhow::Result;

use crate::{
    loopback, ports,
    process::{Process, Program},
    run_folder::RunFolder,
    tools::Tools,
    wait::{Look, wait_until},
};

/// A running etcd. Several API servers can share it, each under a prefix of its own.
#[derive(Debug)]
pub struct Etcd {
    url: String,
    process: Process,
}

impl Etcd {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// When it does not start or is not healthy within 30 s.
    pub async fn start(tools: &Tools, run: &Arc<RunFolder>) -> Result<Self> {
        let (clients, peers) = (ports::free()?, ports::free()?);
        let url = format!("http://127.0.0.1:{clients}");
        let peer = format!("http://127.0.0.1:{peers}");
        let process = Program::new("etcd", tools.program("etcd"))
            .flag("--data-dir", run.path().join("etcd"))
            .flag("--listen-client-urls", &url)
            .flag("--advertise-client-urls", &url)
            .flag("--listen-peer-urls", &peer)
            .flag("--initial-advertise-peer-urls", &peer)
            .flag("--initial-cluster", format!("default={peer}"))
            // The data does not outlive the run, so it need not survive a power cut.
            .arg("--unsafe-no-fsync")
            // A request times out after 5 s and two of these: the machine may stand still for seconds.
            .flag("--heartbeat-interval", "400")
            .flag("--election-timeout", "4000")
            .flag("--log-level", "warn")
            .start(run)?;
        wait_until(Duration::from_mins(2), "etcd healthy", || async {
            process.ensure_running()?;
            Ok(Look::when(loopback::get(clients, "/health").await?.is_success(), "it says that it is not"))
        })
        .await
        .map_err(|error| process.failure(&format!("did not become healthy: {error:#}")))?;
        Ok(Self { url, process })
    }

    /// Where clients reach it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }
}
