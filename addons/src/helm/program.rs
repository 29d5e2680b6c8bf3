//! The program, and where its private folders are.

use std::{io, path::PathBuf, sync::Arc};

use super::{downloads::Downloads, private_folder, starts::Starts};
use crate::process::Launcher;

/// The program, and where its private folders are.
#[derive(Debug, Clone)]
pub struct Helm {
    pub(super) program: PathBuf,
    pub(super) root: PathBuf,
    pub(super) launcher: Launcher,
    pub(super) downloads: Arc<Downloads>,
    pub(super) starts: Starts,
}

impl Helm {
    /// `program` is `helm`, version 3; `root` an existing folder for private folders, on a volume that is not shared.
    ///
    /// # Errors
    /// If `root` cannot be read, or leftovers of an earlier process in it cannot be deleted.
    pub fn new(program: PathBuf, root: PathBuf, launcher: Launcher) -> io::Result<Self> {
        private_folder::delete_leftovers(&root)?;
        Ok(Self { program, root, launcher, downloads: Arc::default(), starts: Starts::default() })
    }
}
