//! Processes that managers start, as `/proc` shows them.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// A process whose home is below a folder: a private folder that the manager made for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its process id.
    pub pid: i32,
    /// Its home.
    pub home: PathBuf,
    /// Its arguments, with the program.
    pub arguments: Vec<String>,
    /// When it started, in ticks since the machine did: another process with this id has another one.
    started: u64,
}

impl Child {
    /// All that run, and whose home is below `folder`.
    #[must_use]
    pub fn at_home_in(folder: &Path) -> Vec<Self> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| Self::read(pid, folder)).collect()
    }

    fn read(pid: i32, folder: &Path) -> Option<Self> {
        // One that has ended, but was not waited for, has neither.
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let home = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"HOME="))?;
        let home = PathBuf::from(OsStr::from_bytes(home));
        if !home.starts_with(folder) || home == folder {
            return None;
        }
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let arguments = line.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        let arguments = arguments.map(|part| String::from_utf8_lossy(part).into_owned()).collect();
        Some(Self { pid, home, arguments, started: started(pid)? })
    }

    /// Whether it still runs.
    #[must_use]
    pub fn runs(&self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// SIGKILL; false if it has ended before.
    #[must_use]
    pub fn kill(&self) -> bool {
        self.runs() && kill(Pid::from_raw(self.pid), Signal::SIGKILL).is_ok()
    }
}

/// When a process started, unless it has ended.
fn started(pid: i32) -> Option<u64> {
    let fields = process_stat(pid)?;
    if ["Z", "X"].contains(&fields.first()?.as_str()) { None } else { fields.get(19)?.parse().ok() }
}

/// The fields of `/proc/<pid>/stat` after the name of the program, the state first; none if there is no such process.
#[must_use]
pub fn process_stat(pid: i32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain parentheses and spaces.
    Some(stat.rsplit_once(") ")?.1.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Command, Stdio},
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn children_are_found_by_their_home_and_killed() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("private");
        fs::create_dir(&home).unwrap();
        let sleeps = |home: &Path| {
            let mut command = Command::new("sleep");
            command.arg("600").env_clear().env("HOME", home).stdin(Stdio::null()).spawn().unwrap()
        };
        let (mut child, mut other) = (sleeps(&home), sleeps(folder.path()));
        let begun = Instant::now();
        let found = loop {
            // Between fork and exec, it has the environment of this test.
            if let Some(found) = Child::at_home_in(folder.path()).pop() {
                break found;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "the child is not found");
        };
        assert_eq!((found.pid, &found.home), (i32::try_from(child.id()).unwrap(), &home));
        assert_eq!(found.arguments, ["sleep", "600"]);
        assert!(found.runs() && found.kill());
        child.wait().unwrap();
        assert!(!found.runs() && !found.kill());
        assert_eq!(Child::at_home_in(folder.path()), []);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
