//! What operators say: identities, guards, namespaces and the Secrets of identities.

use std::{collections::BTreeMap, sync::Arc};

use capasg_api::{ASGGuard, ASGGuardSpec, ASGIdentity, guard::AdoptionRule, identity::NamespaceSelection};
use capasg_controllers::kubernetes::AccessKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::Value;

/// The name of the guard that allows everything.
const EVERYTHING: &str = "everything";

/// What operators say: objects without a namespace, and the Secrets of identities. They are read without a lag.
#[derive(Default)]
pub(crate) struct Operators {
    pub(crate) identities: BTreeMap<String, Arc<ASGIdentity>>,
    pub(crate) guards: BTreeMap<String, Arc<ASGGuard>>,
    pub(crate) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) keys: BTreeMap<String, AccessKey>,
    /// Specs by kind and name.
    pub(crate) others: BTreeMap<(String, String), Value>,
}

impl Operators {
    /// The guard by which an installation of an earlier release keeps working (docs/users/guards.md): everything is allowed.
    pub(super) fn of_an_earlier_release() -> Self {
        let exists = LabelSelectorRequirement {
            key: "kubernetes.io/metadata.name".to_owned(),
            operator: "Exists".to_owned(),
            values: None,
        };
        let every = LabelSelector { match_expressions: Some(vec![exists]), ..LabelSelector::default() };
        let spec = ASGGuardSpec {
            namespaces: NamespaceSelection { selector: Some(every), ..NamespaceSelection::default() },
            instance_profiles: Some(vec!["*".to_owned()]),
            adoption: Some(AdoptionRule::Allowed),
            ..ASGGuardSpec::default()
        };
        let guard = Arc::new(ASGGuard::new(EVERYTHING, spec));
        Self { guards: BTreeMap::from([(EVERYTHING.to_owned(), guard)]), ..Self::default() }
    }
}
