//! The environment of Helm: nothing of the manager's own. Without the address of the management cluster's API server, Helm
//! cannot use the service account of the pod; without `PATH` and plugins, it runs no other program.

use std::path::{Path, PathBuf};

use super::files::{REGISTRY_CONFIGURATION, REPOSITORY_CONFIGURATION};

/// The variables, for a private folder.
pub(super) fn variables(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let within = |name: &str| folder.join(name);
    vec![
        ("HOME", folder.to_owned()),
        ("TMPDIR", within("temporary")),
        ("HELM_CACHE_HOME", within("cache")),
        ("HELM_CONFIG_HOME", within("config")),
        ("HELM_DATA_HOME", within("data")),
        ("HELM_PLUGINS", within("plugins")),
        ("HELM_NO_PLUGINS", PathBuf::from("1")),
        ("HELM_DRIVER", PathBuf::from("secret")),
        ("HELM_REGISTRY_CONFIG", within(REGISTRY_CONFIGURATION)),
        ("HELM_REPOSITORY_CONFIG", within(REPOSITORY_CONFIGURATION)),
        ("HELM_REPOSITORY_CACHE", within("index")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_paths_are_in_the_private_folder() {
        let folder = Path::new("/private/helm-1");
        for (name, value) in variables(folder) {
            let is_setting = ["HELM_NO_PLUGINS", "HELM_DRIVER"].contains(&name);
            assert!(is_setting || value.starts_with(folder), "{name}={}", value.display());
            assert!(name == "HOME" || name == "TMPDIR" || name.starts_with("HELM_"), "{name}");
        }
    }
}
