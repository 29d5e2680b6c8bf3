//! What is run.

use std::{ffi::OsString, path::PathBuf, time::Duration};

/// What is run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder that it runs in, and the only one that it can change. In `/`, it can change none.
    pub folder: PathBuf,
    /// Its standard input. Defaults to an empty one.
    pub input: Option<Vec<u8>>,
    /// After which time it receives SIGTERM.
    pub limit: Duration,
    /// How long it has to end after SIGTERM. Then it receives SIGKILL.
    pub grace: Duration,
}
