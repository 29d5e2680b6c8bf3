//! Building one module into the cache: once, atomically, and with a word now and then on how long it takes.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::module::Module;
use crate::cache::Lock;

/// Where progress lines go.
pub type Say<'a> = &'a dyn Fn(&str);

/// How often a long build says that it is still alive.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// A module's folder while it is being built.
pub(super) struct Build<'a> {
    module: &'a Module,
    folder: PathBuf,
    say: Say<'a>,
}

/// Makes sure that the module is built and answers its folder in the cache.
///
/// `finish` adds what else belongs there; the folder gets its final name only after that.
pub(super) fn ensure(
    cache: &Path,
    module: &Module,
    say: Say<'_>,
    finish: impl FnOnce(&Build<'_>) -> Result<()>,
) -> Result<PathBuf> {
    let folder = cache.join(format!("{}-{}", module.name, module.key()?));
    if folder.is_dir() {
        return Ok(folder);
    }
    let _lock = Lock::take(
        &cache.join(format!("{}.lock", module.name)),
        &format!("process {}", std::process::id()),
        |holder| say(&format!("{}: waiting for another build ({holder})", module.name)),
    )?;
    if folder.is_dir() {
        return Ok(folder);
    }
    // What an interrupted build left; nobody else builds this module while we hold its lock.
    let partial = cache.join(format!("{}.partial", module.name));
    remove(&partial)?;
    fs::create_dir_all(partial.join("source"))?;
    fs::write(partial.join("source/go.mod"), module.go_mod)?;
    fs::write(partial.join("source/go.sum"), module.go_sum)?;
    if let Some(main) = module.main {
        fs::write(partial.join("source/main.go"), main)?;
    }
    let build = Build { module, folder: partial, say };
    for program in module.programs {
        build.program(program.name, program.package)?;
    }
    finish(&build)?;
    fs::rename(&build.folder, &folder)
        .with_context(|| format!("cannot move {} into place", folder.display()))?;
    Ok(folder)
}

impl Build<'_> {
    /// The folder, still under its passing name.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Says what goes on.
    pub fn say(&self, text: &str) {
        (self.say)(&format!("{}: {text}", self.module.name));
    }

    fn program(&self, name: &str, package: &str) -> Result<()> {
        let started = Instant::now();
        self.say(&format!("building {name} from {package}"));
        let mut command = self.go();
        command.args(["build", "-buildvcs=false", "-ldflags", &self.module.ldflags()?, "-o"]);
        command.arg(self.folder.join(name)).arg(package);
        self.watched(command, &format!("building {name}"))?;
        self.say(&format!("built {name} in {} s", started.elapsed().as_secs()));
        Ok(())
    }

    /// A go command in the module's folder. It changes no pin: go.mod and go.sum are read only.
    fn go(&self) -> Command {
        let mut command = Command::new("go");
        command.current_dir(self.folder.join("source"));
        command
    }

    /// Where the module cache holds a dependency's sources, downloading them if need be.
    pub fn source_of(&self, path: &str) -> Result<PathBuf> {
        #[derive(Deserialize)]
        struct Download {
            #[serde(rename = "Dir")]
            dir: PathBuf,
        }
        let mut command = self.go();
        command.args(["mod", "download", "-json", path]);
        let output = self.watched(command, &format!("downloading {path}"))?;
        let download: Download =
            serde_json::from_slice(&output).with_context(|| format!("cannot read where {path} was put"))?;
        Ok(download.dir)
    }

    /// Runs a command, saying now and then that it still runs, and answers its standard output.
    pub fn watched(&self, mut command: Command, what: &str) -> Result<Vec<u8>> {
        let (out, err) = (self.folder.join("out"), self.folder.join("err"));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?)
            .spawn()
            .with_context(|| not_found(command.get_program()))?;
        let started = Instant::now();
        let mut next = HEARTBEAT;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if started.elapsed() >= next {
                self.say(&format!("still {what}, {} s so far", started.elapsed().as_secs()));
                next += HEARTBEAT;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let (said, complaint) = (fs::read(&out)?, fs::read_to_string(&err).unwrap_or_default());
        fs::remove_file(&out)?;
        fs::remove_file(&err)?;
        if !status.success() {
            bail!("{what} failed ({status}): {}", complaint.trim());
        }
        Ok(said)
    }
}

fn not_found(program: &OsStr) -> String {
    if program == "go" {
        "cannot start go: install Go 1.26 or newer to build the control plane's programs".to_owned()
    } else {
        format!("cannot start {}", program.display())
    }
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
