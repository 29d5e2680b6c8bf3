//! `capasg extension check-settings`: the settings of an `ExtensionConfig` or a `ClusterClass`, before they are applied.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, stdin},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use capasg_extensions::settings::Settings;
use serde_json::Value;

use crate::cli::CheckSettingsArgs;

/// Prints what is invalid; the exit code is 1 if anything is.
///
/// # Errors
/// If a file cannot be read, or is not YAML.
pub fn check_settings(args: &CheckSettingsArgs) -> Result<ExitCode> {
    let (mut checked, mut problems) = (0, Vec::new());
    for path in &args.files {
        let text = read(path)?;
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("{} is not YAML", path.display()))?;
        for object in &objects {
            for (place, settings) in settings_of(object) {
                checked += 1;
                let problem = problem_of(&settings);
                problems.extend(problem.map(|problem| format!("{}: {place}: {problem}", path.display())));
            }
        }
    }
    for problem in &problems {
        println!("{problem}");
    }
    if checked == 0 {
        println!("there are no settings: neither an ExtensionConfig nor an external patch of a ClusterClass");
    } else if problems.is_empty() {
        let (noun, verb) = if checked == 1 { ("set", "is") } else { ("sets", "are") };
        println!("{checked} {noun} of settings {verb} valid");
    }
    Ok(if checked > 0 && problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        stdin().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Each set of settings of an object, with its place.
fn settings_of(object: &Value) -> Vec<(String, Value)> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let at = |value: &Value, pointer: &str| value.pointer(pointer).cloned().unwrap_or(Value::Null);
    match object.get("kind").and_then(Value::as_str) {
        Some("ExtensionConfig") => vec![(format!("ExtensionConfig {name}"), at(object, "/spec/settings"))],
        Some("ClusterClass") => {
            let patches = object.pointer("/spec/patches").and_then(Value::as_array);
            let external = patches.into_iter().flatten().filter(|patch| patch.get("external").is_some());
            let place = |patch: &Value| {
                let patch = patch.get("name").and_then(Value::as_str).unwrap_or_default();
                format!("ClusterClass {name}, patch {patch}")
            };
            external.map(|patch| (place(patch), at(patch, "/external/settings"))).collect()
        }
        _ => Vec::new(),
    }
}

fn problem_of(settings: &Value) -> Option<String> {
    if settings.is_null() {
        return None;
    }
    match serde_json::from_value::<BTreeMap<String, String>>(settings.clone()) {
        Ok(settings) => Settings::parse(&settings).err().map(|error| error.to_string()),
        Err(_) => Some("settings must be a map of strings; quote numbers and booleans".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_found_and_checked_in_both_kinds() {
        let config =
            json!({"kind": "ExtensionConfig", "metadata": {"name": "asg"}, "spec": {"settings": {"a": "b"}}});
        let [(place, settings)] = &settings_of(&config)[..] else { panic!("one") };
        assert_eq!(place, "ExtensionConfig asg");
        assert!(problem_of(settings).unwrap().starts_with("setting a: is unknown"));
        let class = json!({"kind": "ClusterClass", "metadata": {"name": "prod"}, "spec": {"patches": [
            {"name": "inline", "definitions": []},
            {"name": "pools", "external": {"settings": {"requireApproval": true}}},
            {"name": "none", "external": {}},
        ]}});
        let found = settings_of(&class);
        assert_eq!(
            found.iter().map(|(place, _)| place.as_str()).collect::<Vec<_>>(),
            ["ClusterClass prod, patch pools", "ClusterClass prod, patch none"]
        );
        assert!(problem_of(&found[0].1).unwrap().contains("quote numbers and booleans"));
        assert_eq!(problem_of(&found[1].1), None);
        assert_eq!(problem_of(&json!({"requireApproval": "true"})), None);
        assert!(settings_of(&json!({"kind": "Cluster"})).is_empty());
    }
}
