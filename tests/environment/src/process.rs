//! Programs of the control plane: each in a process group of its own, with its output in a log file.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use nix::{
    sys::{
        signal::{Signal, kill, killpg},
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};
use tokio::sync::watch;

use crate::run_folder::RunFolder;

/// How many lines of a log an error shows.
const TAIL: usize = 15;

/// With Go's defaults a third of what the API server costs is garbage collection: many small objects that live briefly.
/// Up to a bound, memory is cheaper here.
const GO_MEMORY: [(&str, &str); 2] = [("GOGC", "800"), ("GOMEMLIMIT", "3GiB")];

/// What to run.
#[derive(Debug, Clone)]
pub struct Program {
    name: String,
    path: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

impl Program {
    /// The program at `path`; `name` names its log file and its place in errors.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), path: path.into(), args: Vec::new(), env: Vec::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds `<flag>=<value>`.
    #[must_use]
    pub fn flag(self, flag: &str, value: impl AsRef<OsStr>) -> Self {
        let mut arg = OsString::from(flag);
        arg.push("=");
        arg.push(value);
        self.arg(arg)
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable of its environment. Nothing else is passed on but `PATH`, `HOME` and `TMPDIR`.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts it. A later start under the same name writes on in the same log file.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(&self, run: &Arc<RunFolder>) -> Result<Process> {
        let log = run.log(&self.name);
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("cannot open {}", log.display()))?;
        let inherited =
            ["PATH", "HOME", "TMPDIR"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let child = Command::new(&self.path)
            .args(&self.args)
            .current_dir(run.path())
            .env_clear()
            .envs(inherited)
            .envs(GO_MEMORY)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {} ({})", self.name, self.path.display()))?;
        Process::watched(self.name.clone(), log, child, run)
    }
}

/// A running program. Dropping it kills its process group.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    group: Pid,
    /// Whether it has been reaped: from then on its number may be somebody else's, and no signal goes there.
    reaped: Arc<Mutex<bool>>,
    exit: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    fn watched(name: String, log: PathBuf, mut child: Child, run: &Arc<RunFolder>) -> Result<Self> {
        let group = Pid::from_raw(i32::try_from(child.id()).context("a process id beyond 31 bits")?);
        run.watch(group.as_raw());
        let reaped = Arc::new(Mutex::new(false));
        let (tell, exit) = watch::channel(None);
        let mark = Arc::clone(&reaped);
        let janitor = Arc::downgrade(run);
        std::thread::Builder::new().name(format!("wait-{name}")).spawn(move || {
            // Waits without reaping, so that the number stays ours until the mark is set.
            while waitid(Id::Pid(group), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)
                .is_err_and(|error| error == nix::errno::Errno::EINTR)
            {}
            let mut reaped = mark.lock().unwrap_or_else(PoisonError::into_inner);
            let status = child.wait();
            *reaped = true;
            drop(reaped);
            if let Some(run) = janitor.upgrade() {
                run.forget(group.as_raw());
            }
            tell.send_replace(status.ok());
        })?;
        Ok(Self { name, log, group, reaped, exit })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id, which is also its group's.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.group.as_raw()
    }

    /// Its log file.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !*self.reaped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error with the end of its log if it no longer runs.
    ///
    /// # Errors
    /// When it has ended.
    pub fn ensure_running(&self) -> Result<()> {
        if self.is_running() { Ok(()) } else { Err(self.failure("ended")) }
    }

    /// An error that shows the end of its log.
    #[must_use]
    pub fn failure(&self, what: &str) -> anyhow::Error {
        let status = self.exit.borrow().map_or_else(String::new, |status| format!(" ({status})"));
        anyhow!("{} {what}{status}; its log ends with:\n{}", self.name, tail(&self.log, TAIL))
    }

    /// Sends a signal to the process group, if it still runs.
    pub fn signal(&self, signal: Signal) {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*reaped {
            // The group exists at least as a zombie while it is not reaped; a failure means that it just ended.
            let _ = killpg(self.group, signal);
        }
    }

    /// SIGKILL to the process alone: what it started gets no signal from here.
    ///
    /// # Errors
    /// When the end status cannot be learnt.
    pub async fn kill_alone(&self) -> Result<ExitStatus> {
        {
            let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
            if !*reaped {
                let _ = kill(self.group, Signal::SIGKILL);
            }
        }
        self.exited().await
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When the end status cannot be learnt.
    pub async fn exited(&self) -> Result<ExitStatus> {
        let mut exit = self.exit.clone();
        let status = *exit.wait_for(Option::is_some).await.context("the waiting thread is gone")?;
        status.with_context(|| format!("the end status of {} is unknown", self.name))
    }

    /// SIGTERM, and SIGKILL if it has not ended within `grace`. Answers how it ended.
    ///
    /// # Errors
    /// When the end status cannot be learnt.
    pub async fn stop(&self, grace: Duration) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM);
        match tokio::time::timeout(grace, self.exited()).await {
            Ok(status) => status,
            Err(_) => self.kill().await,
        }
    }

    /// SIGKILL, as when the machine fails.
    ///
    /// # Errors
    /// When the end status cannot be learnt.
    pub async fn kill(&self) -> Result<ExitStatus> {
        self.signal(Signal::SIGKILL);
        self.exited().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// The last `lines` lines of a file, or why they cannot be read.
#[must_use]
pub fn tail(path: &Path, lines: usize) -> String {
    match std::fs::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let all: Vec<&str> = text.lines().collect();
            all[all.len().saturating_sub(lines)..].join("\n")
        }
        Err(error) => format!("(cannot read {}: {error})", path.display()),
    }
}
