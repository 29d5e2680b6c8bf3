//! What `make release` writes beside the files of clusterctl, the workflow that publishes it, and the root of the image.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what these tests share fails as they do")]

mod assets;
mod certificates;
mod chart;
mod image;
mod namespaced;
mod network;
mod plain;
mod workflows;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use capasg_environment::add_on_programs;
use serde_json::Value;
use tempfile::TempDir;

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
const IMAGE: &str = "example.com:5000/mirror/capasg";

/// A provider of the release: its label, and its names in the tree and in the release.
struct Provider {
    label: &'static str,
    source: &'static str,
    components: &'static str,
    namespace: &'static str,
    chart: &'static str,
}

const PROVIDERS: [Provider; 3] = [
    Provider {
        label: "infrastructure-asg",
        source: "config/default",
        components: "infrastructure-components.yaml",
        namespace: "capasg-system",
        chart: "capasg",
    },
    Provider {
        label: "runtime-extension-asg",
        source: "config/extension",
        components: "runtime-extension-components.yaml",
        namespace: "capasg-extension-system",
        chart: "capasg-extension",
    },
    Provider {
        label: "addon-asg-helm",
        source: "config/addons",
        components: "addon-components.yaml",
        namespace: "capasg-addons-system",
        chart: "capasg-addons",
    },
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes a release as `make release` does.
fn write_release() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(root().join("scripts/release"));
    succeeds(command.arg(folder.path()).args([VERSION, &format!("{IMAGE}:{VERSION}")]));
    folder
}

/// A release that all tests read.
fn release() -> &'static Path {
    static RELEASE: OnceLock<TempDir> = OnceLock::new();
    RELEASE.get_or_init(write_release).path()
}

/// The folder of what is published.
fn assets() -> PathBuf {
    release().join("release").join(VERSION)
}

/// The Helm that the image has.
fn helm() -> &'static Path {
    static HELM: OnceLock<PathBuf> = OnceLock::new();
    HELM.get_or_init(|| add_on_programs(&|line| eprintln!("{line}")).unwrap().join("helm"))
}

fn run(program: impl AsRef<OsStr>, args: &[&str]) -> Output {
    Command::new(program).args(args).output().unwrap()
}

/// The standard output of a command that succeeds.
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Both outputs.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The objects of a manifest by kind and name: their order is not part of what is installed.
fn objects(text: &str) -> BTreeMap<String, Value> {
    let documents = serde_saphyr::from_multiple::<Value>(text).unwrap();
    let count = documents.len();
    let objects: BTreeMap<String, Value> = documents
        .into_iter()
        .map(|object| {
            let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            (format!("{}/{}", text("/kind"), text("/metadata/name")), object.clone())
        })
        .collect();
    assert_eq!(objects.len(), count, "each object has a name of its own");
    objects
}

/// Requires the same objects, and names those that differ.
fn assert_same(found: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>) {
    assert!(found.keys().eq(expected.keys()), "{:?} {:?}", found.keys(), expected.keys());
    for (name, object) in found {
        assert!(*object == expected[name], "{name}: {object} instead of {}", expected[name]);
    }
}
