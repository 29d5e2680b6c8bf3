//! `capasg crds`: the custom resource definitions, generated from the types that the controllers use.

use std::{fs, io::Write as _, path::Path};

use anyhow::{Context as _, Result};

use crate::{cli::CrdsArgs, reference};

/// Prints the definitions, or writes one file each.
pub fn run(args: &CrdsArgs) -> Result<()> {
    let crds = if args.addons { capasg_addons::crd::crds() } else { capasg_api::crd::crds() };
    if let (true, Some(folder)) = (args.reference, &args.dir) {
        let index = if args.addons { "addons-api.md" } else { "api.md" };
        return write(folder, reference::pages(&crds, index));
    }
    let files = capasg_api::crd::files_of(&crds)?;
    if let Some(folder) = &args.dir {
        return write(folder, files);
    }
    let mut out = std::io::stdout().lock();
    for (_, text) in files {
        write!(out, "---\n{text}").context("cannot print")?;
    }
    Ok(())
}

fn write(folder: &Path, files: impl IntoIterator<Item = (String, String)>) -> Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
