//! The kustomizations are plain: what they render needs no substitution, and is what clusterctl installs by default.

use std::fs;

use capasg_environment::Tools;

use crate::{IMAGE, PROVIDERS, VERSION, assert_same, assets, objects, release, root, succeeds};

/// The real Kustomize of kubectl.
pub fn kustomize(source: &str) -> String {
    let tools = Tools::ready(&|line| eprintln!("{line}")).unwrap();
    let mut command = std::process::Command::new(tools.program("kubectl"));
    succeeds(command.arg("kustomize").arg(root().join(source)))
}

#[test]
fn kustomize_renders_manifests_without_variables() {
    for provider in PROVIDERS {
        let rendered = kustomize(provider.source);
        assert!(!rendered.contains("${") && !rendered.contains("$$"), "{}", provider.source);
        let released = fs::read_to_string(assets().join(format!("{}.yaml", provider.label))).unwrap();
        let image = rendered.lines().find_map(|line| line.trim().strip_prefix("image: ")).unwrap();
        assert!(image.ends_with(":dev"), "{image}");
        let expected = rendered.replace(image, &format!("{IMAGE}:{VERSION}"));
        assert_same(&objects(&released), &objects(&expected));
    }
}

#[test]
fn the_components_with_default_variables_are_the_plain_manifests() {
    let tools = Tools::ready(&|line| eprintln!("{line}")).unwrap();
    let home = tempfile::tempdir().unwrap();
    for provider in PROVIDERS {
        let components = release().join(provider.label).join(VERSION).join(provider.components);
        assert!(fs::read_to_string(&components).unwrap().contains("${CAPASG_"), "{}", provider.label);
        // clusterctl replaces them, without a cluster.
        let mut clusterctl = std::process::Command::new(tools.program("clusterctl"));
        clusterctl.args(["generate", "yaml", "--from"]).arg(&components);
        clusterctl.env("HOME", home.path()).env("XDG_CONFIG_HOME", home.path());
        let rendered = succeeds(clusterctl.env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true"));
        let plain = fs::read_to_string(assets().join(format!("{}.yaml", provider.label))).unwrap();
        let mut rendered = objects(&rendered);
        for object in rendered.values_mut() {
            // The line of the role, without a role.
            let metadata = object["metadata"].as_object_mut().unwrap();
            if metadata.get("annotations").is_some_and(serde_json::Value::is_null) {
                metadata.remove("annotations");
            }
        }
        assert_same(&rendered, &objects(&plain));
    }
}
