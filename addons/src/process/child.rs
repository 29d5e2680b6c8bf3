//! One run of a program: with a time limit, bounded outputs, and an end on request before the kill.

use std::{io, os::unix::process::ExitStatusExt as _, time::Duration};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::Child,
    task::JoinHandle,
    time::timeout,
};

use super::{command::Command, launcher::Launcher};

/// The exit code of `exec-child` if the program could not be executed.
pub const EXEC_FAILED: i32 = 125;
/// How many bytes of the standard output are read. The largest expected one is a release with its manifest.
const MOST_OUTPUT: u64 = 32 << 20;
/// How many of the last bytes of the standard error are kept.
const MOST_ERRORS: usize = 64 << 10;
/// How long a program that ended may keep its outputs open, in a process that it started.
const OPEN: Duration = Duration::from_secs(5);

/// What a program that ended by itself printed.
#[derive(Debug)]
pub struct Output {
    /// Whether it exited with 0.
    pub is_success: bool,
    /// Its standard output.
    pub output: Vec<u8>,
    /// The end of its standard error.
    pub errors: String,
}

/// Why a program did not end by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// Its outputs or its end could not be read.
    #[error("cannot read the outputs of {program}: {source}")]
    Read {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// It was stopped.
    #[error("{program} did not end within {} s and was stopped", limit.as_secs())]
    TimedOut {
        /// The program.
        program: String,
        /// The limit.
        limit: Duration,
    },
    /// A signal of another process or of the kernel ended it, for example for lack of memory.
    #[error("signal {signal} ended {program}; signal 9 may mean that the memory limit of the pod is too low")]
    Signal {
        /// The program.
        program: String,
        /// The number of the signal.
        signal: i32,
    },
    /// It printed too much.
    #[error("{program} printed more than {MOST_OUTPUT} bytes")]
    TooMuch {
        /// The program.
        program: String,
    },
}

impl Command {
    /// Runs the program until it ends. Dropping the future kills it.
    ///
    /// # Errors
    /// If the program does not end by itself, or prints too much.
    pub async fn run(&self, launcher: &Launcher) -> Result<Output, RunError> {
        let start = |source| RunError::Start { program: self.name(), source };
        let read = |source| RunError::Read { program: self.name(), source };
        let mut child = launcher.start(self).await.map_err(start)?;
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), self.input.clone()) {
            tokio::spawn(async move {
                // A program that ends before it has read everything reports itself what is wrong.
                let _ = pipe.write_all(&input).await;
            });
        }
        let output = tokio::spawn(head(child.stdout.take()));
        let errors = tokio::spawn(tail(child.stderr.take()));
        let Ok(status) = timeout(self.limit, child.wait()).await else {
            stop(&mut child, self.grace).await.map_err(read)?;
            return Err(RunError::TimedOut { program: self.name(), limit: self.limit });
        };
        let status = status.map_err(read)?;
        let (output, is_complete) = joined(output).await.map_err(read)?;
        let errors = joined(errors).await.map_err(read)?;
        let errors = String::from_utf8_lossy(&errors).into_owned();
        if let Some(signal) = status.signal() {
            return Err(RunError::Signal { program: self.name(), signal });
        }
        if status.code() == Some(EXEC_FAILED) {
            return Err(start(io::Error::other(errors.trim().to_owned())));
        }
        if !is_complete {
            return Err(RunError::TooMuch { program: self.name() });
        }
        Ok(Output { is_success: status.success(), output, errors })
    }

    fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The beginning of an output, and whether that is all of it. The rest is read as well, so that the program does not block.
async fn head(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<(Vec<u8>, bool)> {
    let mut kept = Vec::new();
    let Some(mut pipe) = pipe else { return Ok((kept, true)) };
    (&mut pipe).take(MOST_OUTPUT).read_to_end(&mut kept).await?;
    let more = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok((kept, more == 0))
}

/// The end of an output.
async fn tail(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut pipe) = pipe else { return Ok(kept) };
    let mut part = vec![0; MOST_ERRORS];
    loop {
        let length = pipe.read(&mut part).await?;
        if length == 0 {
            return Ok(kept);
        }
        kept.extend_from_slice(&part[..length]);
        kept.drain(..kept.len().saturating_sub(MOST_ERRORS));
    }
}

/// The result of a task that reads. The pipes close with the program, unless it has started another one that still runs.
async fn joined<T>(task: JoinHandle<io::Result<T>>) -> io::Result<T> {
    timeout(OPEN, task).await?.map_err(io::Error::other)?
}

/// Requests the end, so that Helm records the failure in the release, and kills after a while.
async fn stop(child: &mut Child, grace: Duration) -> io::Result<()> {
    // The process was not waited for yet, so that the ID is still its own.
    if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
        kill(Pid::from_raw(id), Signal::SIGTERM)?;
    }
    if timeout(grace, child.wait()).await.is_err() {
        child.kill().await?;
    }
    Ok(())
}
