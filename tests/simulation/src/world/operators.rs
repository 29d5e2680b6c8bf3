//! What operators do: identities, guards, namespaces, the Secrets of identities; and what AWS says of credentials.

use std::{collections::BTreeMap, sync::Arc};

use capasg_api::{ASGGuard, ASGIdentity, ASGIdentityStatus};
use capasg_cloud::SecretText;
use capasg_controllers::{identity, kubernetes::AccessKey};
use serde_json::{Value, json};

use super::{Pool, World, pool::NAMESPACE};

impl World {
    /// Creates or changes an ASGIdentity that allows the namespace of the pools, unless the spec says otherwise.
    ///
    /// # Panics
    /// If it is no spec of an identity.
    pub fn identity(&self, name: &str, mut spec: Value) {
        if spec.get("allowedNamespaces").is_none() {
            spec["allowedNamespaces"] = json!({"names": [NAMESPACE]});
        }
        #[expect(clippy::expect_used, reason = "a test passes what is valid")]
        let spec = serde_json::from_value(spec).expect("a spec");
        self.api.operate(|all| {
            all.identities.insert(name.to_owned(), Arc::new(ASGIdentity::new(name, spec)));
        });
    }

    /// The status of an ASGIdentity.
    #[must_use]
    pub fn identity_status(&self, name: &str) -> Option<ASGIdentityStatus> {
        self.api.state().operators.identities.get(name)?.status.clone()
    }

    /// The controllers check the identities, as they do from time to time.
    pub async fn check_identities(&mut self) {
        for pool in identity::check(&self.context, None).await {
            self.wake(pool);
        }
    }

    /// Deletes an ASGIdentity.
    pub fn delete_identity(&self, name: &str) {
        self.api.operate(|all| {
            all.identities.remove(name);
        });
    }

    /// Creates or changes a guard of the namespace of the pools.
    ///
    /// # Panics
    /// If it is no spec of a guard.
    pub fn guard(&self, name: &str, mut spec: Value) {
        if spec.get("namespaces").is_none() {
            spec["namespaces"] = json!({"names": [NAMESPACE]});
        }
        #[expect(clippy::expect_used, reason = "a test passes what is valid")]
        let spec = serde_json::from_value(spec).expect("a spec");
        self.api.operate(|all| {
            all.guards.insert(name.to_owned(), Arc::new(ASGGuard::new(name, spec)));
        });
    }

    /// Deletes a guard.
    pub fn delete_guard(&self, name: &str) {
        self.api.operate(|all| {
            all.guards.remove(name);
        });
    }

    /// Sets the labels of the namespace of the pools.
    pub fn label_namespace(&self, labels: &[(&str, &str)]) {
        let labels: BTreeMap<String, String> =
            labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.api.operate(|all| {
            all.namespaces.insert(NAMESPACE.to_owned(), labels);
        });
    }

    /// Creates or changes a Secret with an access key of an account; nothing is woken by it.
    pub fn access_key(&self, secret: &str, account: &str, serial: u32) {
        let key = AccessKey {
            access_key_id: format!("AKIA{account}{serial:04}"),
            secret_access_key: SecretText::new(format!("secret-{serial}")),
            session_token: None,
        };
        self.api.state().operators.keys.insert(secret.to_owned(), key);
    }

    /// Creates or changes the spec of an identity of Cluster API Provider AWS.
    pub fn provider_identity(&self, kind: &str, name: &str, spec: Value) {
        self.api.state().operators.others.insert((kind.to_owned(), name.to_owned()), spec);
    }

    /// The group of a pool is in another account, by its identity.
    pub fn in_account(&self, pool: &Pool, account: &str) {
        if let Some(invariants) = &self.invariants {
            invariants.is_in(pool, account);
        }
    }

    /// AWS rejects the credentials of an identity with this code from now on, or no longer.
    pub fn reject_credentials(&self, identity: &str, code: Option<&str>) {
        self.factory.shared.reject(identity, code);
    }
}
