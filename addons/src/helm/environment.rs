//! The environment of Helm: nothing of the manager's own. Without the address of the management cluster's API server, Helm
//! cannot use the service account of the pod; without `PATH` and plugins, it runs no other program.

use std::path::{Path, PathBuf};

use super::files::{REGISTRY_CONFIGURATION, REPOSITORY_CONFIGURATION};

/// The garbage collector of Helm runs when its heap is five times what remained after the last run, in place of twice: a call
/// that installs takes a third less processor time, most of which is spent on the `OpenAPI` document of the API server.
const GARBAGE_COLLECTION: &str = "400";
/// From this size on, it runs as often as necessary: ten calls at once stay below the memory limit of the pod.
const MEMORY: &str = "128MiB";

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
        ("GOGC", PathBuf::from(GARBAGE_COLLECTION)),
        ("GOMEMLIMIT", PathBuf::from(MEMORY)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_paths_are_in_the_private_folder() {
        let folder = Path::new("/private/helm-1");
        for (name, value) in variables(folder) {
            let is_setting = ["HELM_NO_PLUGINS", "HELM_DRIVER", "GOGC", "GOMEMLIMIT"].contains(&name);
            assert!(is_setting != value.starts_with(folder), "{name}={}", value.display());
        }
    }
}
