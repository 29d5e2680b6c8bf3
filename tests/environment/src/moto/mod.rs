//! moto as a second implementation of AWS: one endpoint for all services, with the corrections of `tests/moto`.

mod calls;
mod instances;
mod venv;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::task::spawn_blocking;

pub use self::calls::{MotoCall, MotoSummary};
use crate::{
    cloud,
    command::Runner,
    kubelet::Instances,
    loopback, ports,
    process::{Process, Program},
    run_folder::RunFolder,
    say,
    wait::{Look, wait_until},
};

/// How long the server may take to answer: it imports several hundred modules, for minutes where other work has the processors.
const READY: Duration = Duration::from_mins(10);

/// How long all checks of the corrections may take: 15 s alone, and minutes where other work has the processors.
const CHECKS: Duration = Duration::from_mins(15);

/// What exists in the account before anything else: what a user prepares.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MotoSeed {
    /// Images of nodes.
    pub images: Vec<SeedImage>,
    /// SSM parameters by name.
    pub parameters: BTreeMap<String, String>,
    /// Names of key pairs.
    pub key_pairs: Vec<String>,
    /// Names of instance profiles.
    pub instance_profiles: Vec<String>,
}

/// An image that instances can be launched from.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SeedImage {
    /// For example `ami-0a1b2c3d`.
    pub id: String,
    /// For example `capa-ami-ubuntu-24.04-v1.36.3-1764000000`.
    pub name: String,
    /// `x86_64` or `arm64`; empty means `x86_64`.
    pub architecture: String,
    /// The Kubernetes version in the image, for example `v1.36.3`: the version that its kubelets report.
    pub version: Option<String>,
}

/// What is left in a Region, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct LeftInAws(pub BTreeMap<String, Vec<String>>);

impl LeftInAws {
    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for LeftInAws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(f, "nothing");
        }
        let kinds: Vec<String> =
            self.0.iter().map(|(kind, ids)| format!("{kind}: {}", ids.join(", "))).collect();
        write!(f, "{}", kinds.join("; "))
    }
}

/// A running moto. Every Region is a world of its own; the account is 123456789012.
pub struct Moto {
    port: u16,
    calls: PathBuf,
    process: Process,
}

impl Moto {
    /// Starts it on a free port of 127.0.0.1. The first time, its packages are installed into the cache.
    ///
    /// # Errors
    /// When Python or a package is missing, or the server does not answer within ten minutes.
    pub async fn start(run: &Arc<RunFolder>) -> Result<Self> {
        let python = spawn_blocking(|| venv::python(&say)).await??;
        let port = ports::free()?;
        let calls = run.path().join("logs/moto-calls.jsonl");
        let process = Program::new("moto", python)
            .args(["-m", "capasg_moto"])
            .flag("--port", port.to_string())
            .flag("--calls", &calls)
            .env("PYTHONPATH", venv::sources())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .start(run)?;
        wait_until(READY, "moto ready", || async {
            process.ensure_running()?;
            Ok(Look::when(loopback::get(port, "/_capasg/ready").await?.is_success(), "it answers no success"))
        })
        .await
        .map_err(|error| process.failure(&format!("is not ready: {error:#}")))?;
        Ok(Self { port, calls, process })
    }

    /// Shows that each correction works, and that moto without it fails, on servers of its own. Takes about 15 s.
    ///
    /// # Errors
    /// When one does not work or is no longer needed: then with their names.
    pub async fn check_corrections() -> Result<()> {
        let python = spawn_blocking(|| venv::python(&say)).await??;
        let checks = Runner::new(python)
            .env("PYTHONPATH", venv::sources())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .limit(CHECKS)
            .output(["-m", "capasg_moto.checks"], None)
            .await?;
        let wrong: Vec<&str> = checks.stdout.lines().filter(|line| !line.ends_with(": ok")).collect();
        ensure!(checks.success, "corrections of moto: {}{}", wrong.join("; "), checks.stderr.trim());
        Ok(())
    }

    /// What `AWS_ENDPOINT_URL` is set to, for every service.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The environment of a program that uses this AWS, and can reach no other.
    #[must_use]
    pub fn env(&self, region: &str) -> BTreeMap<String, String> {
        cloud::variables(&self.endpoint(), region)
    }

    /// The server's process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The file of the call log: JSON lines, in the order of the answers.
    #[must_use]
    pub fn calls_log(&self) -> &Path {
        &self.calls
    }

    /// All calls so far.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn calls(&self) -> Result<Vec<MotoCall>> {
        calls::read(&self.calls)
    }

    /// All calls so far, counted by client and action.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn summary(&self) -> Result<MotoSummary> {
        Ok(MotoSummary::of(&self.calls()?))
    }

    /// The corrections of moto that were used so far, with the number of uses; `tests/moto/README.md` describes each.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn corrections(&self) -> Result<BTreeMap<String, u64>> {
        self.read("/_capasg/corrections").await
    }

    /// Makes what a user prepares in the account. Images and parameters that exist are replaced.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn seed(&self, region: &str, seed: &MotoSeed) -> Result<()> {
        let path = format!("/_capasg/seed/{region}");
        let answer = loopback::post(self.port, &path, &serde_json::to_string(seed)?).await?;
        ensure!(answer.is_success(), "moto cannot be seeded: {}", answer.body);
        Ok(())
    }

    /// What exists in a Region beyond what every account has; terminated instances do not count.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn left(&self, region: &str) -> Result<LeftInAws> {
        self.read(&format!("/_capasg/left/{region}")).await
    }

    /// The running machines of a Region, for [`crate::Kubelets`], read several times a second on the calling runtime.
    #[must_use]
    pub fn instances(&self, region: &str) -> Arc<dyn Instances> {
        instances::watch(self.port, region)
    }

    async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let answer = loopback::get(self.port, path).await?;
        ensure!(answer.is_success(), "moto answered {path} with {}: {}", answer.status, answer.body);
        serde_json::from_str(&answer.body).with_context(|| format!("cannot read the answer to {path}"))
    }
}
