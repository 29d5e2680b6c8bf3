//! Commands that run to their end: kubectl, clusterctl and go, with their output captured.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

/// How long a command may take unless told otherwise: it waits for a processor that others use.
const LIMIT: Duration = Duration::from_mins(5);
/// What kubectl says if a busy API server did not send its schemas or its certificate in time. Nothing is changed then.
const UNANSWERED: [&str; 2] = [
    "error validating data: unexpected error when reading response body",
    "Unable to connect to the server: net/http: TLS handshake timeout",
];

/// A command line with what stays the same from call to call: the program, its environment, its leading arguments.
#[derive(Debug, Clone)]
pub struct Runner {
    program: PathBuf,
    leading: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    limit: Duration,
}

/// What a command said.
#[derive(Debug, Clone)]
pub struct Output {
    /// Whether it ended with status 0.
    pub success: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Runner {
    /// A runner for `program`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), leading: Vec::new(), env: Vec::new(), limit: LIMIT }
    }

    /// Adds an argument that every call begins with.
    #[must_use]
    pub fn with(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.leading.push(arg.as_ref().to_owned());
        self
    }

    /// Sets an environment variable for every call.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// How long a call may take; 5 minutes by default.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs it and answers its standard output.
    ///
    /// # Errors
    /// When it does not start, takes too long, or ends with another status than 0: then with what it said.
    pub async fn run<I: IntoIterator<Item: AsRef<OsStr>>>(&self, args: I) -> Result<String> {
        self.succeed(args, None).await
    }

    /// Runs it with `input` as its standard input, as in `kubectl apply -f -`.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub async fn feed<I: IntoIterator<Item: AsRef<OsStr>>>(&self, args: I, input: &str) -> Result<String> {
        self.succeed(args, Some(input)).await
    }

    async fn succeed<I: IntoIterator<Item: AsRef<OsStr>>>(
        &self,
        args: I,
        input: Option<&str>,
    ) -> Result<String> {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let mut output = self.output(&args, input).await?;
        if UNANSWERED.iter().any(|said| output.stderr.contains(said)) {
            output = self.output(&args, input).await?;
        }
        if !output.success {
            let line = args.join(OsStr::new(" "));
            let said = [output.stderr.trim(), output.stdout.trim()].join("\n");
            bail!("{} {} failed: {}", self.short_name(), line.display(), said.trim());
        }
        Ok(output.stdout)
    }

    /// Runs it and answers all it said, whether it succeeded or not.
    ///
    /// # Errors
    /// When it does not start or takes too long.
    pub async fn output<I: IntoIterator<Item: AsRef<OsStr>>>(
        &self,
        args: I,
        input: Option<&str>,
    ) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.leading)
            .args(args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", self.program.display()))?;
        let pipe = child.stdin.take();
        let feed = async {
            if let (Some(mut pipe), Some(input)) = (pipe, input) {
                // A command that ends before it has read everything says itself what was wrong.
                let _ = pipe.write_all(input.as_bytes()).await;
            }
        };
        let ended = timeout(self.limit, async { tokio::join!(feed, child.wait_with_output()).1 })
            .await
            .with_context(|| format!("{} took more than {:?}", self.short_name(), self.limit))??;
        Ok(Output {
            success: ended.status.success(),
            stdout: String::from_utf8_lossy(&ended.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&ended.stderr).into_owned(),
        })
    }

    fn short_name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failure_tells_what_the_command_said() {
        let error =
            Runner::new("sh").with("-c").run(["echo out; echo no such thing >&2; exit 3"]).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no such thing") && text.contains("out"), "{text}");
    }

    #[tokio::test]
    async fn input_and_environment_arrive() {
        let runner = Runner::new("sh").with("-c").env("GREETING", "hello");
        assert_eq!(runner.feed(["printf '%s ' $GREETING; cat"], "world").await.unwrap(), "hello world");
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_ended() {
        let runner = Runner::new("sh").limit(Duration::from_millis(50));
        let error = runner.run(["-c", "sleep 100"]).await.unwrap_err();
        assert!(error.to_string().contains("took more than 50ms"), "{error}");
    }
}
