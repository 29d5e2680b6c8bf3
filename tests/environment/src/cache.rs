//! Where things that outlive a clone are kept, and the locks that let several builders share them.

use std::{
    env,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// The shared cache folder: `$CAPASG_CACHE`, else `$XDG_CACHE_HOME/capasg`, else `~/.cache/capasg`.
///
/// # Errors
/// When none of these variables nor `HOME` is set.
pub fn folder() -> Result<PathBuf> {
    if let Some(path) = set("CAPASG_CACHE") {
        return Ok(path);
    }
    if let Some(path) = set("XDG_CACHE_HOME") {
        return Ok(path.join("capasg"));
    }
    let home = set("HOME").context("set CAPASG_CACHE: there is no HOME to keep a cache in")?;
    Ok(home.join(".cache").join("capasg"))
}

fn set(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// An exclusive lock between processes; the kernel lets go of it when its holder ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock at `path`, waiting for as long as another process holds it.
    ///
    /// `waiting` is called once, before the wait, with what the holder wrote about itself.
    ///
    /// # Errors
    /// When the file cannot be made, or the file system knows no locks.
    pub fn take(path: &Path, holder: &str, waiting: impl FnOnce(&str)) -> Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        if file.try_lock().is_err() {
            waiting(fs::read_to_string(path).unwrap_or_default().trim());
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        file.set_len(0).and_then(|()| file.write_all(holder.as_bytes())).context("cannot sign the lock")?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_waits_and_learns_who_is_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks").join("one");
        let first = Lock::take(&path, "the first", |_| panic!("nobody holds it")).unwrap();

        let (told, hear) = std::sync::mpsc::channel();
        let other = path.clone();
        let second = std::thread::spawn(move || {
            Lock::take(&other, "the second", |holder| told.send(holder.to_owned()).unwrap()).unwrap()
        });
        assert_eq!(hear.recv().unwrap(), "the first");
        assert!(!second.is_finished());

        drop(first);
        let _held = second.join().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "the second");
    }
}
