//! What is published: complete, with checksums, the same from the same tree, and readable by the Cluster API Operator.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::Value;

use crate::{PROVIDERS, VERSION, assets, objects, read, release, succeeds, write_release};

fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let below = files_below(&path).into_iter();
            files.extend(below.map(|(file, content)| (format!("{name}/{file}"), content)));
        } else {
            files.insert(name, fs::read(path).unwrap());
        }
    }
    files
}

#[test]
fn two_releases_of_a_tree_are_the_same_bytes() {
    let (first, second) = (files_below(release()), files_below(write_release().path()));
    assert!(first.len() > 40, "{:?}", first.keys());
    assert!(first.keys().eq(second.keys()));
    for (name, content) in first {
        assert!(content == second[&name], "{name}");
    }
}

#[test]
fn every_published_file_has_a_checksum() {
    succeeds(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(assets()));
    let sums = fs::read_to_string(assets().join("SHA256SUMS")).unwrap();
    let listed: Vec<&str> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    let mut files = files_below(&assets());
    files.remove("SHA256SUMS").unwrap();
    assert!(files.keys().eq(listed.iter()), "{:?} {listed:?}", files.keys());

    let page = read("docs/users/releases.md");
    for name in files.keys().filter(|name| !name.starts_with("cluster")) {
        let name = name.replace(env!("CARGO_PKG_VERSION"), "<version>");
        assert!(page.contains(&format!("`{name}`")), "docs/users/releases.md does not name {name}");
    }
}

#[test]
fn what_clusterctl_reads_is_published() {
    for provider in PROVIDERS {
        let files = files_below(&release().join(provider.label).join(VERSION));
        assert!(files.contains_key(provider.components), "{:?}", files.keys());
        for (name, content) in files {
            assert!(fs::read(assets().join(&name)).unwrap() == content, "{name}");
        }
    }
}

#[test]
fn the_operator_fetches_the_components() {
    let kinds = ["InfrastructureProvider", "RuntimeExtensionProvider", "AddonProvider"];
    for (provider, kind) in PROVIDERS.into_iter().zip(kinds) {
        let manifest = |suffix: &str| {
            let name = format!("operator-{}{suffix}.yaml", provider.label);
            objects(&fs::read_to_string(assets().join(name)).unwrap())
        };
        let only = |objects: &BTreeMap<String, Value>| {
            let found: Vec<Value> =
                objects.values().filter(|object| object["kind"] == kind).cloned().collect();
            let [object] = &found[..] else { panic!("one {kind}") };
            object.clone()
        };
        let object = only(&manifest(""));
        assert_eq!(object["apiVersion"], "operator.cluster.x-k8s.io/v1alpha2");
        assert_eq!(object["metadata"]["namespace"], provider.namespace);
        assert_eq!(object["spec"]["version"], VERSION);
        // The name by which clusterctl knows the provider follows from its label.
        let name = object["metadata"]["name"].as_str().unwrap();
        assert!(provider.label.ends_with(&format!("-{name}")), "{name}");
        let url = object["spec"]["fetchConfig"]["url"].as_str().unwrap();
        assert!(url.ends_with(&format!("/releases/{VERSION}/{}", provider.components)), "{url}");

        let objects = manifest("-air-gapped");
        let (selector, source) =
            (only(&objects), objects.values().find(|object| object["kind"] == "ConfigMap").unwrap());
        let labels = source["metadata"]["labels"].as_object().unwrap();
        assert_eq!(labels["provider.cluster.x-k8s.io/version"], VERSION);
        let wanted = selector["spec"]["fetchConfig"]["selector"]["matchLabels"].as_object().unwrap();
        assert!(!wanted.is_empty());
        assert!(wanted.iter().all(|(label, value)| labels.get(label) == Some(value)), "{labels:?}");
        assert_eq!(source["metadata"]["namespace"], provider.namespace);
        let components = fs::read_to_string(assets().join(provider.components)).unwrap();
        assert_eq!(source["data"]["components"], components.as_str());
        assert_eq!(source["data"]["metadata"], read("metadata.yaml").as_str());
        // The limit of a ConfigMap.
        assert!(source.to_string().len() < 1 << 20);
    }
}
