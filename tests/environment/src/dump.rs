//! What is left to read after a failure: objects, events and logs, in one folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::{command::Runner, process::tail, run_folder::RunFolder};

/// How many lines of each log are kept.
const LINES: usize = 2_000;

/// Where dumps go: `$CAPASG_DUMPS`, else `out/dumps` of this clone, which git ignores.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::var_os("CAPASG_DUMPS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../out/dumps"), PathBuf::from)
}

/// Writes all Cluster API objects, nodes, pods and events of these API servers, and the end of every log of the run,
/// into `<folder>/<name>`, replacing what was there. Secrets are left out.
///
/// # Errors
/// When the folder cannot be written. A server that does not answer is no error: its file then says so.
pub(crate) async fn write(run: &RunFolder, servers: &[(String, Runner)], name: &str) -> Result<PathBuf> {
    let target = folder().join(name);
    if target.exists() {
        fs::remove_dir_all(&target).with_context(|| format!("cannot replace {}", target.display()))?;
    }
    for (server, kubectl) in servers {
        let folder = target.join(server);
        fs::create_dir_all(&folder)?;
        let kinds = kinds(kubectl).await.unwrap_or_default();
        for kind in &kinds {
            let objects = said(kubectl, &["get", kind, "--all-namespaces", "--output=yaml"]).await;
            if !objects.contains("\nitems: []") {
                fs::write(folder.join(format!("{kind}.yaml")), objects)?;
            }
        }
        let events = ["get", "events", "--all-namespaces", "--sort-by=.lastTimestamp", "--output=wide"];
        fs::write(folder.join("events.txt"), said(kubectl, &events).await)?;
    }
    let logs = target.join("logs");
    fs::create_dir_all(&logs)?;
    for entry in fs::read_dir(run.path().join("logs"))? {
        let path = entry?.path();
        if let Some(name) = path.file_name() {
            fs::write(logs.join(name), tail(&path, LINES))?;
        }
    }
    Ok(target.canonicalize()?)
}

/// What is worth keeping: everything of Cluster API and its providers, and what a cluster runs.
async fn kinds(kubectl: &Runner) -> Result<Vec<String>> {
    let all = kubectl.run(["api-resources", "--verbs=list", "--output=name"]).await?;
    let wanted = |kind: &str| kind.ends_with(".x-k8s.io") || matches!(kind, "nodes" | "pods" | "namespaces");
    Ok(all.lines().filter(|kind| wanted(kind)).map(str::to_owned).collect())
}

async fn said(kubectl: &Runner, args: &[&str]) -> String {
    match kubectl.output(args, None).await {
        Ok(output) => output.stdout + &output.stderr,
        Err(error) => format!("{error:#}\n"),
    }
}
