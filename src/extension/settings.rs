//! `capasg extension check-settings`: the settings of an `ExtensionConfig` or a `ClusterClass`, before they are applied.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Context as _, Result};
use capasg_extensions::{
    protocol::Hook,
    settings::{NAMES, OF_TOPOLOGIES, Settings},
};
use serde_json::Value;

use crate::{cli::CheckSettingsArgs, input};

/// Prints what is invalid; the exit code is 1 if anything is.
///
/// # Errors
/// If a file cannot be read, or is not YAML.
pub fn check_settings(args: &CheckSettingsArgs) -> Result<ExitCode> {
    let (mut checked, mut problems) = (0, Vec::new());
    for path in &args.files {
        let text = input::text(path)?;
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("{} is not YAML", path.display()))?;
        for set in objects.iter().flat_map(sets_of) {
            checked += 1;
            let found = set.problems().into_iter();
            problems.extend(found.map(|problem| format!("{}: {}: {problem}", path.display(), set.place)));
        }
    }
    for problem in &problems {
        println!("{problem}");
    }
    if checked == 0 {
        println!(
            "there are no settings: neither an ExtensionConfig nor a ClusterClass with a patch of this extension"
        );
    } else if problems.is_empty() {
        let (noun, verb) = if checked == 1 { ("set", "is") } else { ("sets", "are") };
        println!("{checked} {noun} of settings {verb} valid");
    }
    Ok(if checked > 0 && problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The settings in one place of an object.
struct Set {
    place: String,
    settings: Value,
    /// Whether they are of a patch, which core passes to the hooks of topologies alone.
    of_patch: bool,
}

impl Set {
    fn new(place: String, object: &Value, of_patch: bool) -> Self {
        let settings = object.get("settings").cloned().unwrap_or_default();
        Self { place, settings, of_patch }
    }

    fn problems(&self) -> Vec<String> {
        if self.settings.is_null() {
            return Vec::new();
        }
        let Ok(settings) = serde_json::from_value::<BTreeMap<String, String>>(self.settings.clone()) else {
            return vec!["settings must be a map of strings; quote numbers and booleans".to_owned()];
        };
        // One at a time, so that all problems are found. No setting depends on another one.
        let problem = |(name, value): (String, String)| {
            let without_effect = self.of_patch && NAMES.contains(&&*name) && !OF_TOPOLOGIES.contains(&&*name);
            if without_effect {
                return Some(format!(
                    "setting {name}: has no effect in a patch; set it in the ExtensionConfig"
                ));
            }
            Settings::parse(&BTreeMap::from([(name, value)])).err().map(|error| error.to_string())
        };
        settings.into_iter().filter_map(problem).collect()
    }
}

/// Each set of settings of an object, or of the objects in a list as kubectl prints it.
fn sets_of(object: &Value) -> Vec<Set> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let items = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match object.get("kind").and_then(Value::as_str) {
        Some("ExtensionConfig") => vec![Set::new(format!("ExtensionConfig {name}"), spec, false)],
        Some("ClusterClass") => {
            let external = items("/spec/patches").filter_map(|patch| Some((patch, patch.get("external")?)));
            let ours = external.filter(|(_, external)| is_ours(external));
            let set = |(patch, external): (&Value, &Value)| {
                let patch = patch.get("name").and_then(Value::as_str).unwrap_or_default();
                Set::new(format!("ClusterClass {name}, patch {patch}"), external, true)
            };
            ours.map(set).collect()
        }
        Some("List" | "ExtensionConfigList" | "ClusterClassList") => {
            items("/items").flat_map(sets_of).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether an external patch refers to a handler of this extension, as `<handler>.<name of the ExtensionConfig>`. The settings
/// of another extension are its own.
fn is_ours(external: &Value) -> bool {
    // The latter two are the names of the fields in v1beta1.
    let fields = [
        ("discoverVariablesExtension", Hook::DiscoverVariables),
        ("generatePatchesExtension", Hook::GeneratePatches),
        ("validateTopologyExtension", Hook::ValidateTopology),
        ("generateExtension", Hook::GeneratePatches),
        ("validateExtension", Hook::ValidateTopology),
    ];
    fields.into_iter().any(|(field, hook)| {
        let handler = external.get(field).and_then(Value::as_str);
        handler.and_then(|handler| handler.split_once('.')).is_some_and(|(name, _)| name == hook.handler())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The place of each set, with its problems.
    fn checked(object: &Value) -> Vec<(String, Vec<String>)> {
        sets_of(object).into_iter().map(|set| (set.place.clone(), set.problems())).collect()
    }

    fn config(settings: &Value) -> Value {
        json!({"kind": "ExtensionConfig", "metadata": {"name": "asg"}, "spec": {"settings": settings}})
    }

    #[test]
    fn every_invalid_setting_of_an_extension_config_is_found() {
        let [(place, problems)] = &checked(&config(&json!({"a": "b", "onBlockTimeout": "Open"})))[..] else {
            panic!("one")
        };
        assert_eq!(place, "ExtensionConfig asg");
        assert!(problems[0].starts_with("setting a: is unknown"), "{problems:?}");
        assert_eq!(problems[1], "setting onBlockTimeout: must be Continue or Block");
        let boolean = checked(&config(&json!({"requireApproval": true})));
        assert!(boolean[0].1[0].contains("quote numbers and booleans"));
        for valid in [json!({"requireApproval": "true"}), Value::Null] {
            assert_eq!(checked(&config(&valid)), [("ExtensionConfig asg".to_owned(), Vec::new())]);
        }
    }

    #[test]
    fn settings_of_patches_are_those_of_this_extension_that_have_an_effect_there() {
        let class = json!({"kind": "ClusterClass", "metadata": {"name": "prod"}, "spec": {"patches": [
            {"name": "inline", "definitions": []},
            {"name": "pools", "external": {
                "generatePatchesExtension": "generate-patches.asg",
                "settings": {"requireApproval": "true", "imageParameter": "/a/{zone}"},
            }},
            {"name": "v1beta1", "external": {"validateExtension": "validate-topology.asg"}},
            {"name": "other", "external": {"generatePatchesExtension": "patch.other", "settings": {"a": "b"}}},
        ]}});
        let found = checked(&class);
        let [(pools, problems), (older, none)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (pools.as_str(), older.as_str()),
            ("ClusterClass prod, patch pools", "ClusterClass prod, patch v1beta1")
        );
        assert!(problems[0].starts_with("setting imageParameter: must be the name of an SSM parameter"));
        assert_eq!(
            problems[1],
            "setting requireApproval: has no effect in a patch; set it in the ExtensionConfig"
        );
        assert!(none.is_empty());
    }

    #[test]
    fn lists_of_kubectl_are_read() {
        let list = json!({"kind": "List", "items": [config(&json!({})), {"kind": "Cluster"}]});
        assert_eq!(checked(&list).len(), 1);
        assert!(checked(&json!({"kind": "Cluster"})).is_empty() && checked(&json!([])).is_empty());
    }
}
