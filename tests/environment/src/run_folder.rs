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
for group in $groups; do kill -TERM -- "-$group" 2>/dev/null; done
tries=0
while [ $tries -lt 50 ]; do
  alive=
  for group in $groups; do kill -0 -- "-$group" 2>/dev/null && alive=1; done
  [ -z "$alive" ] && break
  sleep 0.1
  tries=$((tries + 1))
done
for group in $groups; do kill -KILL -- "-$group" 2>/dev/null; done
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
