//! `/readyz`: whether the API server serves every kind that the controllers watch, and if not, which is missing.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use capasg_api::errors;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use tokio::{sync::Notify, time::sleep};
use tracing::{info, warn};

/// How often a missing definition is read.
const WHILE_MISSING: Duration = Duration::from_secs(2);
/// How often all are read again once they are served: one may be deleted, or stop serving a version.
const ONCE_THERE: Duration = Duration::from_mins(1);

/// A definition by its name, and the version of it that is used.
pub type Needed = (&'static str, &'static str);

/// The definitions that the controllers of the manager need: core's in the version of the contract which our definitions
/// speak (N6).
pub const NEEDED: [Needed; 7] = [
    ("clusters.cluster.x-k8s.io", "v1beta2"),
    ("machinepools.cluster.x-k8s.io", "v1beta2"),
    ("machines.cluster.x-k8s.io", "v1beta2"),
    ("asgmachinepools.infrastructure.cluster.x-k8s.io", "v1alpha1"),
    ("asgmachines.infrastructure.cluster.x-k8s.io", "v1alpha1"),
    ("asgidentities.infrastructure.cluster.x-k8s.io", "v1alpha1"),
    ("asgguards.infrastructure.cluster.x-k8s.io", "v1alpha1"),
];

/// What is missing, kept up to date by [`Readiness::watch`].
#[derive(Debug)]
pub struct Readiness {
    needed: &'static [Needed],
    /// `None` until the first read.
    missing: Mutex<Option<BTreeMap<&'static str, String>>>,
    changed: Notify,
}

impl Readiness {
    /// Nothing is known of these definitions yet.
    #[must_use]
    pub fn new(needed: &'static [Needed]) -> Self {
        Self { needed, missing: Mutex::default(), changed: Notify::new() }
    }

    /// Why the process is not ready; `None` when it is.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match &*self.missing.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Some("the CRDs have not been read yet".to_owned()),
            Some(missing) if missing.is_empty() => None,
            Some(missing) => {
                let problems: Vec<String> =
                    missing.iter().map(|(name, why)| format!("{name}: {why}")).collect();
                Some(problems.join("\n"))
            }
        }
    }

    /// Waits until all required CRDs are served (rule N5: clusterctl may install core after this provider).
    pub async fn ready(&self) {
        loop {
            let changed = self.changed.notified();
            if self.problem().is_none() {
                return;
            }
            changed.await;
        }
    }

    /// Keeps reading, for as long as the process runs.
    pub async fn watch(&self, client: Client) {
        let definitions: Api<CustomResourceDefinition> = Api::all(client);
        loop {
            let mut missing = BTreeMap::new();
            for &(name, version) in self.needed {
                match definitions.get_opt(name).await {
                    Ok(definition) => {
                        if let Some(problem) = problem_of(definition.as_ref(), version) {
                            missing.insert(name, problem);
                        }
                    }
                    Err(error) => {
                        missing.insert(name, format!("cannot be read: {}", errors::of_request(&error)));
                    }
                }
            }
            let pause = if missing.is_empty() { ONCE_THERE } else { WHILE_MISSING };
            self.set(missing);
            sleep(pause).await;
        }
    }

    fn set(&self, missing: BTreeMap<&'static str, String>) {
        let mut known = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() != Some(&missing) {
            if missing.is_empty() {
                info!("all required CRDs are served");
            } else {
                warn!(?missing, "required CRDs are missing or not served");
            }
        }
        *known = Some(missing);
        drop(known);
        self.changed.notify_waiters();
    }
}

/// Why a definition cannot be used yet.
fn problem_of(definition: Option<&CustomResourceDefinition>, version: &str) -> Option<String> {
    let Some(definition) = definition else { return Some("is not installed".to_owned()) };
    if !definition.spec.versions.iter().any(|served| served.name == version && served.served) {
        return Some(format!("does not serve version {version}"));
    }
    let established = definition
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Established" && condition.status == "True");
    (!established).then(|| "is not established yet".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(version: &str, served: bool, established: Option<&str>) -> CustomResourceDefinition {
        let conditions: Vec<serde_json::Value> = established
            .iter()
            .map(|status| serde_json::json!({"type": "Established", "status": status}))
            .collect();
        serde_json::from_value(serde_json::json!({
            "metadata": {},
            "spec": {
                "group": "cluster.x-k8s.io",
                "names": {"kind": "Cluster", "plural": "clusters"},
                "scope": "Namespaced",
                "versions": [{"name": version, "served": served, "storage": true}],
            },
            "status": {"conditions": conditions, "acceptedNames": {"kind": "", "plural": ""}, "storedVersions": []},
        }))
        .unwrap()
    }

    // Rules: N5
    #[test]
    fn says_what_is_wrong_with_a_definition() {
        assert_eq!(problem_of(None, "v1beta2").as_deref(), Some("is not installed"));
        for (unfit, expected) in [
            (definition("v1beta1", true, Some("True")), "does not serve version v1beta2"),
            (definition("v1beta2", false, Some("True")), "does not serve version v1beta2"),
            (definition("v1beta2", true, Some("False")), "is not established yet"),
            (definition("v1beta2", true, None), "is not established yet"),
        ] {
            assert_eq!(problem_of(Some(&unfit), "v1beta2").as_deref(), Some(expected));
        }
        assert_eq!(problem_of(Some(&definition("v1beta2", true, Some("True"))), "v1beta2"), None);
    }

    // Rules: N5
    #[tokio::test]
    async fn ready_names_the_definition_and_wakes_up_once_it_is_there() {
        let readiness = Readiness::new(&NEEDED);
        assert!(readiness.problem().unwrap().contains("not been read"));
        readiness.set(BTreeMap::from([("machines.cluster.x-k8s.io", "is not installed".to_owned())]));
        assert_eq!(readiness.problem().as_deref(), Some("machines.cluster.x-k8s.io: is not installed"));
        let (mut ready, mut installed) = (Box::pin(readiness.ready()), false);
        loop {
            tokio::select! {
                biased;
                () = &mut ready => break,
                () = tokio::task::yield_now() => {
                    assert!(!installed, "must have woken up");
                    readiness.set(BTreeMap::new());
                    installed = true;
                }
            }
        }
        assert!(installed, "must have waited");
    }

    // Rules: N6
    #[test]
    fn core_is_read_in_the_version_of_the_contract_that_our_definitions_speak() {
        use capasg_api::{
            capi::{Cluster, Machine, MachinePool},
            names::labels::CONTRACT,
        };
        use kube::Resource;

        let contract = CONTRACT.rsplit('/').next().unwrap();
        let read = [
            <Cluster as Resource>::version(&()),
            <Machine as Resource>::version(&()),
            <MachinePool as Resource>::version(&()),
        ];
        assert!(read.iter().all(|version| version == contract), "{read:?}");
        let core: Vec<_> = NEEDED.iter().filter(|(name, _)| name.ends_with(".cluster.x-k8s.io")).collect();
        let core: Vec<_> = core.into_iter().filter(|(name, _)| !name.contains("infrastructure")).collect();
        assert_eq!(core.len(), 3);
        assert!(core.iter().all(|(_, version)| *version == contract));
        for definition in capasg_api::crd::crds() {
            assert!(definition.metadata.labels.unwrap().contains_key(CONTRACT));
        }
    }

    #[test]
    fn the_needed_versions_are_those_of_our_definitions() {
        let definitions = capasg_api::crd::crds();
        let ours: Vec<_> = NEEDED.iter().filter(|(name, _)| name.ends_with(capasg_api::GROUP)).collect();
        assert_eq!(ours.len(), 4, "templates are core's to read");
        for (name, version) in ours {
            let definition =
                definitions.iter().find(|one| one.metadata.name.as_deref() == Some(name)).unwrap();
            assert!(definition.spec.versions.iter().any(|served| served.name == *version), "{name}");
        }
    }
}
