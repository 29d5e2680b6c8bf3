//! A shell session of a user: commands one after the other, each with the variables that the ones before it exported.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    process::Command,
    time::{Instant, timeout},
};

/// What a command did.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Why it failed: its status, or that it took too long.
    pub failure: Option<String>,
    /// Its standard output and error, as a terminal shows them.
    pub output: String,
    /// How long it took.
    pub took: Duration,
}

/// The session.
#[derive(Debug)]
pub struct Session {
    folder: PathBuf,
    state: PathBuf,
    output: PathBuf,
    env: BTreeMap<String, String>,
}

/// A failed command, an unset variable and a failure within a pipeline end the command; exported variables are kept.
const SCRIPT: &str = r#"set -euo pipefail
state=$1
[ ! -f "$state" ] || . "$state"
eval "$2"
export -p >"$state"
"#;

impl Session {
    /// A session in `folder` with these variables, which keeps its own files in `run`.
    #[must_use]
    pub fn new(folder: &Path, run: &Path, env: BTreeMap<String, String>) -> Self {
        Self {
            folder: folder.to_owned(),
            state: run.join("road-variables"),
            output: run.join("road-output"),
            env,
        }
    }

    /// Runs a command for at most `within`; its process group is ended afterwards.
    ///
    /// # Errors
    /// When bash does not start, or its output cannot be read.
    pub async fn run(&self, command: &str, within: Duration) -> Result<Ran> {
        let output = File::create(&self.output)?;
        let begun = Instant::now();
        let mut bash = Command::new("bash")
            .args(["--norc", "-c", SCRIPT, "bash"])
            .arg(&self.state)
            .arg(command)
            .current_dir(&self.folder)
            .envs(&self.env)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start bash")?;
        let group = bash.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let failure = if let Ok(status) = timeout(within, bash.wait()).await {
            let status = status?;
            (!status.success()).then(|| status.to_string())
        } else {
            if let Some(group) = group {
                // It has not been waited for, so that the number is still that of the command.
                let _ = killpg(group, Signal::SIGKILL);
            }
            bash.wait().await?;
            Some(format!("not within {} minutes", within.as_secs() / 60))
        };
        let output = String::from_utf8_lossy(&std::fs::read(&self.output)?).into_owned();
        Ok(Ran { failure, output, took: begun.elapsed() })
    }

    /// The value of a variable that a command exported, or that was given.
    ///
    /// # Errors
    /// When no command exported it.
    pub async fn variable(&self, name: &str) -> Result<String> {
        let ran = self.run(&format!("printf %s \"${name}\""), Duration::from_mins(1)).await?;
        match ran.failure {
            None => Ok(ran.output),
            Some(failure) => anyhow::bail!("{name}: {failure}: {}", ran.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn variables_last_from_command_to_command() {
        let run = tempfile::tempdir().unwrap();
        let env = BTreeMap::from([("GIVEN".to_owned(), "it's".to_owned())]);
        let session = Session::new(run.path(), run.path(), env);
        assert!(session.run("export A=\"$GIVEN $(pwd)\"\n", SOON).await.unwrap().failure.is_none());
        let ran = session.run("cat > file <<EOF\n$A\nEOF\ncat file; echo why >&2\n", SOON).await.unwrap();
        assert_eq!(ran.output, format!("it's {}\nwhy\n", run.path().display()));
        assert_eq!(session.variable("GIVEN").await.unwrap(), "it's");
        assert!(session.variable("NONE").await.unwrap_err().to_string().contains("unbound"));
    }

    #[tokio::test]
    async fn failures_are_reported_also_in_a_pipeline() {
        let run = tempfile::tempdir().unwrap();
        let session = Session::new(run.path(), run.path(), BTreeMap::new());
        for (command, failure) in [
            ("false | cat\n", "exit status: 1"),
            ("echo $(exit 3)$MISSPELT\n", "exit status: 1"),
            ("sleep 100 & wait\n", "not within 0 minutes"),
        ] {
            let ran = session.run(command, Duration::from_millis(900)).await.unwrap();
            assert!(ran.failure.unwrap().contains(failure), "{command}");
        }
    }
}
