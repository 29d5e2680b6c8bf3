//! What `config/` ships for Prometheus, Grafana, Argo CD and Flux, and how the three roles run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what these tests share fails as they do")]

mod alerts;
mod availability;
mod flux;
mod health;
mod scraping;

use std::{fs, path::Path, process::Command, sync::OnceLock};

use capasg_environment::Tools;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

fn tools() -> &'static Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    TOOLS.get_or_init(|| Tools::ready(&|line| eprintln!("{line}")).unwrap())
}

/// The objects that plain Kustomize renders.
fn rendered(folder: &Path) -> Vec<Value> {
    let output = Command::new(tools().program("kubectl")).arg("kustomize").arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    documents(&String::from_utf8(output.stdout).unwrap())
}

/// What a kustomization of a user renders that has a component of `config/`, and these resources.
fn with_component(name: &str, resources: &[(&str, &str)]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let component = folder.path().join(name);
    fs::create_dir(&component).unwrap();
    for entry in fs::read_dir(root().join("config").join(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), component.join(entry.file_name())).unwrap();
    }
    let mut kustomization = format!("components: [{name}]\nresources:\n");
    for (file, text) in resources {
        fs::write(folder.path().join(file), text).unwrap();
        kustomization.push_str("- ");
        kustomization.push_str(file);
        kustomization.push('\n');
    }
    fs::write(folder.path().join("kustomization.yaml"), kustomization).unwrap();
    rendered(folder.path())
}

/// The objects of all roles, as they are in the tree; those of the manager as Kustomize renders them.
fn components() -> Vec<Value> {
    let manager = rendered(&root().join("config/manager"));
    let others =
        ["config/addons/addon-components.yaml", "config/extension/runtime-extension-components.yaml"];
    manager.into_iter().chain(others.iter().flat_map(|file| documents(&read(file)))).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// Whether an object has all these labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    let selector = selector.as_object().unwrap();
    !selector.is_empty() && selector.iter().all(|(name, value)| labels[name] == *value)
}
