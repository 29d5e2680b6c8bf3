//! The private folder of one operation: files that only the manager's user can read, deleted with the value.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// The beginning of the names of private folders.
const PREFIX: &str = "helm-";

/// A folder that is deleted when the value is dropped.
#[derive(Debug)]
pub struct PrivateFolder(TempDir);

impl PrivateFolder {
    /// Creates a folder below `root`, with these folders in it.
    ///
    /// # Errors
    /// If `root` does not exist, or is not writable.
    pub fn create(root: &Path, folders: &[&str]) -> io::Result<Self> {
        let own = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(PREFIX).permissions(own).tempdir_in(root)?;
        for name in folders {
            fs::DirBuilder::new().mode(0o700).create(folder.path().join(name))?;
        }
        Ok(Self(folder))
    }

    /// Writes a new file.
    ///
    /// # Errors
    /// If the file exists, or the disk is full.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(self.path(name))?;
        file.write_all(content)
    }

    /// Writes a file, in place of an existing one.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.write(name, content),
        }
    }

    /// The path of a file in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// The only file in one of the folders.
    ///
    /// # Errors
    /// If there is none, or there are several.
    pub fn only_file(&self, folder: &str) -> io::Result<PathBuf> {
        let paths: Vec<PathBuf> = fs::read_dir(self.path(folder))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        match <[PathBuf; 1]>::try_from(paths) {
            Ok([path]) => Ok(path),
            Err(paths) => Err(io::Error::other(format!("{} files instead of one", paths.len()))),
        }
    }
}

/// Deletes the private folders that an earlier process left in `root` when it was killed. To be called once, at the start.
///
/// # Errors
/// If `root` cannot be read, or a folder cannot be deleted.
pub fn delete_leftovers(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn only_the_user_of_the_manager_reads_folder_and_files() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::create(root.path(), &["cache"]).unwrap();
        folder.write("kubeconfig", b"secret").unwrap();
        assert_eq!(mode(folder.folder()), 0o700);
        assert_eq!(mode(&folder.path("cache")), 0o700);
        assert_eq!(mode(&folder.path("kubeconfig")), 0o600);
        assert!(folder.write("kubeconfig", b"other").is_err(), "an existing file is not followed");
        folder.replace("kubeconfig", b"other").unwrap();
        assert_eq!(mode(&folder.path("kubeconfig")), 0o600);
        assert_eq!(fs::read(folder.path("kubeconfig")).unwrap(), b"other");
        let path = folder.folder().to_owned();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn leftovers_of_a_killed_process_are_deleted() {
        let root = tempfile::tempdir().unwrap();
        let left = PrivateFolder::create(root.path(), &[]).unwrap();
        left.write("values.json", b"secret").unwrap();
        let path = left.folder().to_owned();
        std::mem::forget(left);
        fs::write(root.path().join("other"), "kept").unwrap();
        delete_leftovers(root.path()).unwrap();
        assert!(!path.exists() && root.path().join("other").exists());
    }

    #[test]
    fn the_only_file_of_a_folder_is_found() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::create(root.path(), &["downloads"]).unwrap();
        assert!(folder.only_file("downloads").is_err());
        folder.write("downloads/cilium-1.17.0.tgz", b"").unwrap();
        assert_eq!(folder.only_file("downloads").unwrap(), folder.path("downloads/cilium-1.17.0.tgz"));
        folder.write("downloads/other", b"").unwrap();
        assert!(folder.only_file("downloads").is_err());
    }
}
