//! The kubeadm bootstrap provider: one Secret per pool, rewritten with each token, which also goes into the config's
//! spec; a person's edit is rendered with the next token.

use std::collections::BTreeMap;

use capasg_cloud::Clock;
use capasg_controllers::ObjectKey;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    ResourceExt,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use super::Core;
use crate::api_server::Expect;

/// Stands in all bootstrap data, so that a leak of it is found.
pub const CANARY: &str = "canary-9f2c51d7e0-bootstrap-secret";

impl Core {
    /// Creates a `KubeadmConfig` and renders it for the first time.
    pub fn create_config(&self, key: &ObjectKey) {
        let kind = GroupVersionKind::gvk("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig");
        let mut config = DynamicObject::new(&key.name, &ApiResource::from_gvk(&kind));
        config.metadata.namespace = Some(key.namespace.clone());
        config.data = json!({ "spec": {
            "files": [{ "path": "/etc/secret", "content": CANARY }],
            "joinConfiguration": {
                "discovery": { "bootstrapToken": { "token": "" } },
                "nodeRegistration": { "kubeletExtraArgs": [{ "name": "v", "value": "2" }] },
            },
        }});
        {
            let mut api = self.api.state();
            let crate::api_server::State { ledger, configs, .. } = &mut *api;
            let _ = configs.create(ledger, config);
        }
        self.rotate_token(key);
    }

    /// Makes a new token, writes it into the config's spec and renders the Secret.
    pub fn rotate_token(&self, key: &ObjectKey) {
        let number = {
            let mut state = self.state();
            state.tokens += 1;
            state.tokens
        };
        let token = format!("{number:06x}.{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        {
            let (mut state, now) = (self.state(), self.clock.now());
            if let Some((before, _)) = state.newest.insert(key.clone(), (token.clone(), now)) {
                state.replaced.push((before, now));
            }
        }
        let authority = self.state().authorities.get(key).cloned();
        let mut api = self.api.state();
        let crate::api_server::State { ledger, configs, secrets, .. } = &mut *api;
        let _ = configs.update(ledger, key, Expect::default(), |config| {
            config.data["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["token"] = json!(token);
        });
        let Some(config) = configs.get(key) else { return };
        let mut value = render(&config.data["spec"], &token);
        value.extend(
            authority.map(|name| format!("# certificate authority {name}\n")).unwrap_or_default().bytes(),
        );
        let data = BTreeMap::from([("value".to_owned(), ByteString(value))]);
        if secrets.get(key).is_some() {
            let _ = secrets.update(ledger, key, Expect::default(), |secret| secret.data = Some(data));
        } else {
            let mut secret = Secret { data: Some(data), ..Secret::default() };
            secret.metadata.name = Some(config.name_any());
            secret.metadata.namespace = config.namespace();
            let _ = secrets.create(ledger, secret);
        }
    }

    /// Bootstrap data of any kind are in the Secret, as another provider or a person writes them.
    pub fn write_bootstrap_data(&self, key: &ObjectKey, value: Vec<u8>, format: Option<&str>) {
        let mut data = BTreeMap::from([("value".to_owned(), ByteString(value))]);
        data.extend(format.map(|format| ("format".to_owned(), ByteString(format.as_bytes().to_vec()))));
        let mut api = self.api.state();
        let crate::api_server::State { ledger, secrets, .. } = &mut *api;
        let _ = secrets.update(ledger, key, Expect::default(), |secret| secret.data = Some(data));
    }

    /// A field of the config's spec changes; nothing is rendered yet. The field `format` is the format of what is
    /// rendered.
    pub fn set_in_config(&self, key: &ObjectKey, field: &str, value: impl Into<Value>) {
        let value = value.into();
        let mut api = self.api.state();
        let crate::api_server::State { ledger, configs, .. } = &mut *api;
        let _ = configs.update(ledger, key, Expect::default(), |config| {
            config.data["spec"][field] = value;
        });
    }

    /// The certificate authority of the Cluster is rotated: the data that is rendered from now on trusts another one.
    pub fn change_authority(&self, key: &ObjectKey, name: &str) {
        self.state().authorities.insert(key.clone(), name.to_owned());
    }

    /// A person edits the config's spec; nothing is rendered yet.
    pub fn edit_config(&self, key: &ObjectKey, verbosity: &str) {
        let mut api = self.api.state();
        let crate::api_server::State { ledger, configs, .. } = &mut *api;
        let _ = configs.update(ledger, key, Expect::default(), |config| {
            config.data["spec"]["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"][0]["value"] =
                json!(verbosity);
        });
    }
}

fn render(spec: &Value, token: &str) -> Vec<u8> {
    if spec["format"] == "ignition" {
        return render_ignition(spec, token);
    }
    let secret = &spec["files"][0]["content"];
    let arguments = &spec["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"];
    format!(
        "#cloud-config\nwrite_files:\n- path: /etc/secret\n  content: {secret}\n- path: /run/join.yaml\n  \
         content: 'token: {token}, kubeletExtraArgs: {arguments}'\nruncmd:\n- kubeadm join\n"
    )
    .into_bytes()
}

/// As the kubeadm bootstrap provider renders Ignition: files are percent-encoded data URLs.
fn render_ignition(spec: &Value, token: &str) -> Vec<u8> {
    let file = |path: &str, content: &str| {
        let content: String = content
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    char::from(byte).to_string()
                }
                _ => format!("%{byte:02X}"),
            })
            .collect();
        json!({ "path": path, "contents": { "source": format!("data:,{content}") } })
    };
    let secret = spec["files"][0]["content"].as_str().unwrap_or_default();
    let arguments = &spec["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"];
    let join = format!("token: {token}\nkubeletExtraArgs: {arguments}\n");
    json!({
        "ignition": { "version": "2.3.0" },
        "storage": { "files": [file("/etc/secret", secret), file("/etc/kubeadm.yml", &join)] },
    })
    .to_string()
    .into_bytes()
}
