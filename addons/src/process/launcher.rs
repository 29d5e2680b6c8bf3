//! Starts children from one thread, as the parent-death signal requires.

use std::{ffi::OsString, io, path::PathBuf, process::Stdio, sync::mpsc, thread};

use tokio::{process::Child, runtime::Handle, sync::oneshot};

use super::{command::Command, file_access};

struct Start {
    command: tokio::process::Command,
    runtime: Handle,
    started: oneshot::Sender<io::Result<Child>>,
}

/// Starts children. When the last clone is dropped, its thread ends, and the kernel kills the children that still run.
#[derive(Debug, Clone)]
pub struct Launcher {
    exec_child: PathBuf,
    role: Vec<OsString>,
    requests: mpsc::Sender<Start>,
}

impl Launcher {
    /// Starts the thread. `exec_child` is the program that calls [`super::exec`] with the arguments after `role`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn new(exec_child: PathBuf, role: &[&str]) -> io::Result<Self> {
        if !file_access::is_enforced() {
            tracing::warn!("the kernel has no Landlock: Helm can read files of the manager");
        }
        let (requests, receiver) = mpsc::channel::<Start>();
        thread::Builder::new().name("launcher".to_owned()).spawn(move || {
            for Start { mut command, runtime, started } in receiver {
                let _runtime = runtime.enter();
                // A caller that does not wait any longer drops the child, which kills it.
                let _ = started.send(command.spawn());
            }
        })?;
        Ok(Self { exec_child, role: role.iter().map(OsString::from).collect(), requests })
    }

    /// Starts the command with pipes for its outputs.
    pub(super) async fn start(&self, child: &Command) -> io::Result<Child> {
        let mut command = tokio::process::Command::new(&self.exec_child);
        command
            .args(&self.role)
            .arg(std::process::id().to_string())
            .arg(&child.program)
            .args(&child.arguments)
            .env_clear()
            .envs(child.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&child.folder)
            .stdin(if child.input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let (started, answer) = oneshot::channel();
        let ended = || io::Error::other("the thread that starts processes has ended");
        self.requests.send(Start { command, runtime: Handle::current(), started }).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}
