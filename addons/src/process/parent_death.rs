//! Replaces the process by a program that the kernel kills when its parent ends, with access to few files.

use std::{ffi::OsString, io, os::unix::process::CommandExt as _, path::Path, process::Command};

use landlock::RulesetError;
use nix::{
    errno::Errno,
    sys::{
        prctl,
        resource::{Resource, setrlimit},
        signal::Signal,
    },
    unistd::getppid,
};

use super::file_access;

/// How many bytes of memory a program can have. Helm reads what the API server of a workload cluster responds and what a chart
/// has into memory: beyond this it ends, and not the container with the manager and every other release.
const MOST_MEMORY: u64 = 512 << 20;

/// Why the program does not run.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The arguments are not those that a [`super::Launcher`] passes.
    #[error("expected the process ID of the parent and a program; only the manager calls this")]
    Arguments,
    /// The kernel rejected the request.
    #[error("cannot request the parent-death signal: {0}")]
    Request(#[source] Errno),
    /// The parent ended before the request.
    #[error("the parent has ended")]
    Orphan,
    /// The kernel rejected the limit of memory.
    #[error("cannot limit the memory: {0}")]
    Memory(#[source] Errno),
    /// The kernel rejected the limit of the files that the program can use.
    #[error("cannot limit the access to files: {0}")]
    Limit(#[from] RulesetError),
    /// The program cannot be executed.
    #[error("cannot execute {program}: {source}")]
    Exec {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
}

/// Executes a program in place of this process. `arguments` are the process ID of the parent, the program and its arguments.
/// The program can use its working folder, and no other files of the manager. It returns only if that fails.
pub fn exec(arguments: impl IntoIterator<Item = OsString>) -> ExecError {
    exec_with_tools(arguments, &[])
}

/// As [`exec`], for a program that executes other ones, such as a script in place of Helm: it can also read and execute what is
/// below the paths of `tools`.
pub fn exec_with_tools(arguments: impl IntoIterator<Item = OsString>, tools: &[&Path]) -> ExecError {
    let mut arguments = arguments.into_iter();
    let parent = arguments.next().and_then(|text| text.to_str()?.parse::<i32>().ok());
    let (Some(parent), Some(program)) = (parent, arguments.next()) else { return ExecError::Arguments };
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGKILL) {
        return ExecError::Request(error);
    }
    // A parent that ended before the request sends no signal.
    if getppid().as_raw() != parent {
        return ExecError::Orphan;
    }
    if let Err(error) = setrlimit(Resource::RLIMIT_DATA, MOST_MEMORY, MOST_MEMORY) {
        return ExecError::Memory(error);
    }
    if let Err(error) = file_access::limit(Path::new(&program), tools) {
        return error.into();
    }
    let source = Command::new(&program).args(arguments).exec();
    ExecError::Exec { program: program.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_another_caller_are_rejected() {
        for arguments in [&[][..], &["1"], &["sh", "sh"], &["", "sh"]] {
            let error = exec(arguments.iter().map(OsString::from));
            assert!(matches!(error, ExecError::Arguments), "{arguments:?}: {error}");
        }
    }
}
