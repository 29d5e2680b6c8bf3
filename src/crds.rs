//! `capasg crds`: the custom resource definitions, generated from the types that the controllers use.

use std::{fs, io::Write as _};

use anyhow::{Context as _, Result};

use crate::{cli::CrdsArgs, reference};

/// Prints the definitions, or writes one file each.
pub fn run(args: &CrdsArgs) -> Result<()> {
    let crds = if args.addons { capasg_addons::crd::crds() } else { capasg_api::crd::crds() };
    if args.reference {
        let text = reference::markdown(&crds);
        return std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print");
    }
    let files = capasg_api::crd::files_of(&crds)?;
    if let Some(folder) = &args.dir {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for (name, text) in files {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    for (_, text) in files {
        write!(out, "---\n{text}").context("cannot print")?;
    }
    Ok(())
}
