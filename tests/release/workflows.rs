//! The workflows and the updates of dependencies: checked as far as possible without the services that run them.

use std::{fs, path::PathBuf, process::Command};

use serde_json::Value;

use crate::{read, root, succeeds};

fn workflows() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join(".github/workflows")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn actionlint_accepts_the_workflows() {
    let files = workflows();
    assert!(files.len() >= 2, "{files:?}");
    let module = root().join("tests/tools/actionlint");
    succeeds(Command::new("go").arg("-C").arg(module).args(["tool", "actionlint", "-no-color"]).args(files));
}

#[test]
fn actions_are_pinned_by_commit_and_permissions_are_named() {
    for file in workflows() {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines().filter_map(|line| line.trim_start_matches([' ', '-']).strip_prefix("uses: "))
        {
            if line.starts_with("./") {
                continue;
            }
            let (action, version) = line.split_once(" # v").unwrap_or_else(|| panic!("{line}"));
            let commit = action.split_once('@').unwrap().1;
            assert!(commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{line}");
            assert!(version.split('.').count() == 3, "{line}");
        }
        let workflow: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(workflow["permissions"], serde_json::json!({"contents": "read"}), "{}", file.display());
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            assert!(job["uses"].is_string() || job["runs-on"].is_string(), "{name}");
        }
    }
}

#[test]
fn the_release_workflow_waits_for_the_tests_and_pins_the_images_of_the_build() {
    let workflow: Value = serde_saphyr::from_str(&read(".github/workflows/release.yaml")).unwrap();
    let jobs = &workflow["jobs"];
    assert_eq!(jobs["test"]["uses"], "./.github/workflows/ci.yaml");
    let needs = |job: &str| jobs[job]["needs"].to_string();
    assert!(needs("image").contains("test") && needs("publish").contains("image"));
    let architectures = jobs["image"]["strategy"]["matrix"]["include"].as_array().unwrap();
    let architectures: Vec<&str> =
        architectures.iter().map(|one| one["architecture"].as_str().unwrap()).collect();
    assert_eq!(architectures, ["amd64", "arm64"]);
    let dockerfile = read("Dockerfile");
    let steps = jobs["image"]["steps"].to_string();
    for argument in dockerfile.lines().filter_map(|line| line.strip_prefix("ARG ")) {
        let name = argument.split('=').next().unwrap();
        assert!(steps.contains(&format!("{name}=${{{{ steps.base.outputs.{name} }}}}")), "{name}");
    }
    // Every image of the build is one of these arguments.
    for from in dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")) {
        assert!(from.starts_with("${") || from == "scratch", "{from}");
    }
}

#[test]
fn dependencies_of_every_kind_are_updated() {
    let config: Value = serde_json::from_str(&read("renovate.json")).unwrap();
    let managers: Vec<&str> =
        config["enabledManagers"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    for (manager, file) in [
        ("cargo", "Cargo.toml"),
        ("dockerfile", "Dockerfile"),
        ("github-actions", ".github/workflows/release.yaml"),
        ("gomod", "addons/go/go.mod"),
        ("pip_requirements", "scripts/tools/image/requirements.txt"),
    ] {
        assert!(managers.contains(&manager), "{manager}");
        assert!(root().join(file).is_file(), "{file}");
    }
}
