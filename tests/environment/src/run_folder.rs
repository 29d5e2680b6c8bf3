//! The folder of one run, and the janitor that ends its processes and removes it whatever happens to us.

use std::{
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result};

/// The janitor reads what to look after from a pipe whose other end only we hold. When we end, by whatever cause
/// (a return from main, a panic, Ctrl-C, SIGKILL), the pipe closes and the janitor cleans up. It ignores the
/// signals a terminal sends, since those are meant for us.
const JANITOR: &str = r#"
trap '' INT TERM HUP QUIT
folder=$1
keep=
groups=" "
while read -r verb value; do
  case $verb in
    watch) groups="$groups$value " ;;
    forget) groups=${groups%% "$value" *}" "${groups#* "$value" } ;;
    keep) keep=1 ;;
  esac
done
for group in $groups; do kill -s TERM -- "-$group" 2>/dev/null; done
tries=0
while [ $tries -lt 50 ]; do
  alive=
  for group in $groups; do kill -s 0 -- "-$group" 2>/dev/null && alive=1; done
  [ -z "$alive" ] && break
  sleep 0.1
  tries=$((tries + 1))
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
[ -n "$keep" ] || rm -rf -- "$folder"
"#;

/// A folder for the files, sockets and logs of one run.
///
/// When it is dropped, and also when this process dies without dropping it, every process started in it is ended
/// (SIGTERM, after 5 s SIGKILL) and the folder is removed.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    janitor: Mutex<Option<(Child, ChildStdin)>>,
}

impl RunFolder {
    /// Makes the folder under the system's folder for temporary files and starts its janitor.
    ///
    /// # Errors
    /// When the folder cannot be made, or no `sh` starts.
    pub fn new() -> Result<Self> {
        let path =
            tempfile::Builder::new().prefix("capasg-").tempdir().context("cannot make a run folder")?.keep();
        for folder in ["logs", "certificates", "kubeconfigs"] {
            std::fs::create_dir(path.join(folder))?;
        }
        let mut janitor = Command::new("sh")
            .args(["-c", JANITOR, "capasg-janitor"])
            .arg(&path)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start sh")?;
        let pipe = janitor.stdin.take().context("the janitor has no standard input")?;
        Ok(Self { path, janitor: Mutex::new(Some((janitor, pipe))) })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a process of this name logs to.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }

    /// Keeps the folder when the run ends; processes are ended all the same.
    pub fn keep(&self) {
        self.tell("keep");
    }

    /// Puts a process group under the janitor's care.
    pub(crate) fn watch(&self, group: i32) {
        self.tell(&format!("watch {group}"));
    }

    /// Takes an ended process group out of it: its number may soon be somebody else's.
    pub(crate) fn forget(&self, group: i32) {
        self.tell(&format!("forget {group}"));
    }

    fn tell(&self, line: &str) {
        let mut janitor = self.janitor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pipe)) = janitor.as_mut() {
            // The janitor can only be gone if somebody killed it; then the processes are ended by their own drop.
            let _ = pipe.write_all(format!("{line}\n").as_bytes());
        }
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let janitor = self.janitor.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut child, pipe)) = janitor {
            drop(pipe);
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::{
        process::Program,
        wait::{Look, wait_until},
    };

    fn exists(path: &Path) -> bool {
        path.exists()
    }

    #[tokio::test]
    async fn dropping_the_folder_ends_its_processes_and_removes_it() {
        let run = Arc::new(RunFolder::new().unwrap());
        let path = run.path().to_owned();
        let obedient = Program::new("obedient", "sleep").arg("1000").start(&run).unwrap();
        let deaf = "trap '' TERM; echo deaf; while :; do sleep 1000; done";
        let deaf = Program::new("deaf", "sh").args(["-c", deaf]).start(&run).unwrap();
        wait_until(Duration::from_secs(10), "the trap is set", || async {
            Ok(Look::when(std::fs::read_to_string(deaf.log())?.contains("deaf"), "not yet"))
        })
        .await
        .unwrap();

        // The processes must not be ended by their own drop, and hold no reference to the folder.
        drop(run);
        assert!(!exists(&path));
        assert!(obedient.exited().await.unwrap().to_string().contains("SIGTERM"));
        assert!(deaf.exited().await.unwrap().to_string().contains("SIGKILL"));
    }

    #[tokio::test]
    async fn a_process_that_ended_is_forgotten() {
        let run = Arc::new(RunFolder::new().unwrap());
        let one = Program::new("one", "true").start(&run).unwrap();
        assert!(one.exited().await.unwrap().success());
        assert!(!one.is_running());
        assert!(one.ensure_running().unwrap_err().to_string().contains("exit status: 0"));
        // A signal to it goes nowhere, above all not to a stranger with the same number.
        one.signal(nix::sys::signal::Signal::SIGKILL);
    }

    #[tokio::test]
    async fn a_kept_folder_stays() {
        let run = RunFolder::new().unwrap();
        let path = run.path().to_owned();
        run.keep();
        drop(run);
        assert!(exists(&path));
        std::fs::remove_dir_all(path).unwrap();
    }

    /// What the owner below says when its process runs.
    const UP: &str = "owner is up:";

    #[test]
    #[ignore = "the part of the owner in the test below, in a process of its own"]
    fn owner() {
        let run = Arc::new(RunFolder::new().unwrap());
        let process = Program::new("orphan", "sleep").arg("1000").start(&run).unwrap();
        eprintln!("\n{UP} {} {}", run.path().display(), process.pid());
        std::thread::sleep(Duration::from_secs(1000));
    }

    #[tokio::test]
    async fn nothing_is_left_when_the_owner_is_killed() {
        let run = Arc::new(RunFolder::new().unwrap());
        let owner = Program::new("owner", std::env::current_exe().unwrap())
            .args(["--exact", "run_folder::tests::owner", "--ignored", "--nocapture"])
            .start(&run)
            .unwrap();
        let (folder, orphan) = wait_until(Duration::from_secs(10), "the owner is up", || async {
            let log = std::fs::read_to_string(owner.log())?;
            let line = log.lines().find_map(|line| line.strip_prefix(UP)?.trim().split_once(' '));
            Ok(Look::from_option(
                line.map(|(folder, pid)| (PathBuf::from(folder), pid.to_owned())),
                log.clone(),
            ))
        })
        .await
        .unwrap();
        owner.kill().await.unwrap();
        wait_until(Duration::from_secs(20), "the janitor is done", || async {
            Ok(Look::when(!folder.exists(), "the folder is there"))
        })
        .await
        .unwrap();
        let orphan = nix::unistd::Pid::from_raw(orphan.parse().unwrap());
        // It may be a zombie for a moment, until process 1 takes note.
        wait_until(Duration::from_secs(10), "the process is gone", || async {
            Ok(Look::when(nix::sys::signal::kill(orphan, None).is_err(), "it is there"))
        })
        .await
        .unwrap();
    }
}
