//! What cert-manager and cluster networking would do for webhooks: certificates, and addresses that reach a process.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::{
    api::core::v1::Secret, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{pki::Authority, ports};

/// cert-manager puts the authority of the `<namespace>/<certificate>` named here into webhooks and conversions.
const INJECT: &str = "cert-manager.io/inject-ca-from";

/// The field manager of our writes.
const MANAGER: &str = "capasg-environment";

/// Stands in for cert-manager and for the Services in front of webhooks.
pub(crate) struct Webhooks {
    authority: Authority,
    folder: PathBuf,
    /// The port on 127.0.0.1 where the manager of a namespace serves its webhooks.
    ports: Mutex<BTreeMap<String, u16>>,
}

impl Webhooks {
    pub fn new(folder: PathBuf) -> Result<Self> {
        let authority = Authority::new("webhooks")?;
        Ok(Self { authority, folder, ports: Mutex::new(BTreeMap::new()) })
    }

    /// The webhook port of a namespace's manager, the same at every call.
    pub fn port(&self, namespace: &str) -> Result<u16> {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = ports.get(namespace) {
            return Ok(*port);
        }
        let port = ports::free()?;
        ports.insert(namespace.to_owned(), port);
        Ok(port)
    }

    /// The folder that holds what a Secret mounted into a manager's pod would hold.
    pub fn certificates(&self, namespace: &str, secret: &str) -> PathBuf {
        self.folder.join(namespace).join(secret)
    }

    /// Issues every `Certificate` and points every webhook and conversion at its process.
    ///
    /// To be called after each `clusterctl init` and `upgrade`, before managers start: an upgrade brings the
    /// services back, and a webhook that nobody answers refuses every write.
    pub async fn reconcile(&self, client: &Client) -> Result<()> {
        self.issue(client).await?;
        self.redirect::<k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration>(client)
            .await?;
        self.redirect::<k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration>(client)
            .await?;
        self.redirect_conversions(client).await
    }

    async fn issue(&self, client: &Client) -> Result<()> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cert-manager.io", "v1", "Certificate"));
        let certificates: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        for certificate in certificates.list(&ListParams::default()).await? {
            let namespace = certificate.namespace().context("a Certificate without namespace")?;
            let spec = &certificate.data["spec"];
            let secret = spec["secretName"].as_str().context("a Certificate without secretName")?;
            let names: Vec<String> = spec["dnsNames"]
                .as_array()
                .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
                .unwrap_or_default();
            let identity = self.authority.server(&names)?;
            let folder = self.certificates(&namespace, secret);
            std::fs::create_dir_all(&folder)?;
            identity.write(&folder, "tls")?;
            let document = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": {"name": secret},
                "stringData": {
                    "tls.crt": identity.certificate,
                    "tls.key": identity.key,
                    "ca.crt": self.authority.certificate(),
                },
            });
            let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
            secrets.patch(secret, &PatchParams::apply(MANAGER).force(), &Patch::Apply(document)).await?;
        }
        Ok(())
    }

    async fn redirect<K>(&self, client: &Client) -> Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let kind = ApiResource::erase::<K>(&());
        let configurations: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        for configuration in configurations.list(&ListParams::default()).await? {
            let Some(namespace) = injected_namespace(&configuration) else { continue };
            let mut webhooks = configuration.data["webhooks"].clone();
            for webhook in webhooks.as_array_mut().into_iter().flatten() {
                self.point(&mut webhook["clientConfig"], &namespace)?;
            }
            let patch = json!({"metadata": {"resourceVersion": configuration.resource_version()}, "webhooks": webhooks});
            let name = configuration.name_any();
            configurations.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        Ok(())
    }

    async fn redirect_conversions(&self, client: &Client) -> Result<()> {
        let kind = ApiResource::erase::<CustomResourceDefinition>(&());
        let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        for definition in definitions.list(&ListParams::default()).await? {
            let Some(namespace) = injected_namespace(&definition) else { continue };
            let mut webhook = definition.data["spec"]["conversion"]["webhook"]["clientConfig"].clone();
            if webhook.is_null() {
                continue;
            }
            self.point(&mut webhook, &namespace)?;
            // A merge patch leaves out what it does not name: the service must be taken away in so many words.
            webhook["service"] = Value::Null;
            let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": webhook}}}});
            definitions.patch(&definition.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        Ok(())
    }

    /// Replaces a service by the URL of the process behind it, and renews the authority.
    fn point(&self, config: &mut Value, namespace: &str) -> Result<()> {
        config["caBundle"] = json!(STANDARD.encode(self.authority.certificate()));
        if let Some(service) = config.get("service").filter(|service| !service.is_null()) {
            let path = service["path"].as_str().unwrap_or("/").to_owned();
            config["url"] = json!(format!("https://127.0.0.1:{}{path}", self.port(namespace)?));
            if let Some(config) = config.as_object_mut() {
                config.remove("service");
            }
        }
        Ok(())
    }
}

fn injected_namespace(object: &DynamicObject) -> Option<String> {
    let (namespace, _) = object.annotations().get(INJECT)?.split_once('/')?;
    Some(namespace.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_becomes_a_url_and_a_second_pass_renews_only_the_authority() {
        let folder = tempfile::tempdir().unwrap();
        let webhooks = Webhooks::new(folder.path().to_owned()).unwrap();
        let mut config =
            json!({"service": {"namespace": "a-system", "name": "webhook", "path": "/validate"}});
        webhooks.point(&mut config, "a-system").unwrap();
        let url = format!("https://127.0.0.1:{}/validate", webhooks.port("a-system").unwrap());
        assert_eq!(config["url"], json!(url));
        assert!(config.get("service").is_none());

        let again = Webhooks::new(folder.path().to_owned()).unwrap();
        let before = config["caBundle"].clone();
        again.point(&mut config, "a-system").unwrap();
        assert_eq!(config["url"], json!(url));
        assert_ne!(config["caBundle"], before);
    }
}
