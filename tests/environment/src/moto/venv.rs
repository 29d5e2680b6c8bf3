//! The Python environment of moto: pinned packages with hashes, installed once into the cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::{
    cache::{self, Lock},
    tools::Say,
};

const REQUIREMENTS: &str = include_str!("../../../moto/requirements.txt");

/// The folder with the package `capasg_moto`.
pub(super) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../moto")
}

/// The interpreter of the environment.
pub(super) fn python(say: Say<'_>) -> Result<PathBuf> {
    let version = output(Command::new("python3").arg("--version"))
        .context("moto needs Python 3.11 or newer with its module venv")?;
    let mut hash = Sha256::new();
    hash.update(REQUIREMENTS);
    hash.update(version);
    let digest: Vec<String> = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let cache = cache::folder()?;
    let folder = cache.join(format!("moto-{}", digest.concat()));
    let (python, complete) = (folder.join("bin/python"), folder.join("complete"));
    if complete.is_file() {
        return Ok(python);
    }
    let _lock = Lock::take(&cache.join("moto.lock"), &format!("process {}", std::process::id()), |holder| {
        say(&format!("moto: waiting for another installation ({holder})"));
    })?;
    if complete.is_file() {
        return Ok(python);
    }
    say("moto: installing its packages");
    // An environment cannot be moved, so an interrupted one is replaced in place.
    output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS)?;
    output(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"])
            .args(["--only-binary", ":all:", "--requirement"])
            .arg(&requirements),
    )
    .context("cannot install moto")?;
    fs::write(&complete, "")?;
    Ok(python)
}

fn output(command: &mut Command) -> Result<String> {
    let output =
        command.output().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {}", command.get_program().display(), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
