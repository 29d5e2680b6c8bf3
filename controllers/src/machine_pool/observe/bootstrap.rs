//! The bootstrap data of a pool: its hashes, and the data itself if a launch template version is to be created.

use capasg_api::capi::MachinePool;
use serde_json::Value;

use crate::ObjectKey;
use crate::kubernetes::{KubeError, Kubernetes};
use crate::machine_pool::model::stamp::{hash, hash_bytes};
use crate::machine_pool::model::{BootstrapDigest, BootstrapProblem, Format, Oversized, USER_DATA_LIMIT};
use crate::machine_pool::observe::tokens::mask_tokens;
use crate::machine_pool::observe::user_data::{GZIP, encode};

/// Bootstrap data, as far as they were read.
#[derive(Clone)]
pub struct Bootstrap {
    /// Their hashes.
    pub digest: BootstrapDigest,
    /// The user data, if they were read now.
    pub data: Option<Vec<u8>>,
}

impl Bootstrap {
    /// Why an image of this platform cannot use the data.
    #[must_use]
    pub fn problem(&self, is_windows: bool) -> Option<&BootstrapProblem> {
        self.digest.on_windows.as_ref().filter(|_| is_windows)
    }

    /// Reads the bootstrap data of `owner`, unless the cache shows that `known` is current and the data itself is not
    /// required.
    ///
    /// # Errors
    /// A [`BootstrapProblem`], which a condition reports.
    pub async fn observe(
        kubernetes: &dyn Kubernetes,
        owner: &MachinePool,
        namespace: &str,
        known: Option<&BootstrapDigest>,
        with_data: bool,
    ) -> Result<Self, BootstrapProblem> {
        let name = owner.data_secret_name().ok_or_else(|| {
            let field = "spec.template.spec.bootstrap.dataSecretName";
            BootstrapProblem::Waiting(format!("waiting for {field} of the MachinePool to be set"))
        })?;
        let secret = ObjectKey::new(namespace, name);
        if let Some(known) = known.filter(|known| !with_data && known.secret == name)
            && kubernetes.secret_version(&secret).as_deref() == Some(known.version.as_str())
        {
            return Ok(Self { digest: known.clone(), data: None });
        }
        let read = kubernetes.bootstrap_data(&secret).await.map_err(|e| failed(&e))?;
        let Some(read) = read else {
            return Err(BootstrapProblem::Waiting(format!("Secret {name} does not exist yet")));
        };
        if read.value.is_empty() {
            let message = format!("Secret {name} has no bootstrap data: key `value` is missing or empty");
            return Err(BootstrapProblem::Waiting(message));
        }
        let Origin { spec, data, rotates } = origin(kubernetes, owner, namespace, name, &read.value).await?;
        let format = Format::of(&read.value, read.format.as_deref());
        let digest = BootstrapDigest {
            secret: name.to_owned(),
            version: read.resource_version,
            content: hash_bytes(&read.value),
            data,
            rotates,
            spec,
            on_windows: on_windows(&read.value, &format, || source(owner, name)),
        };
        let encoded = encode(read.value, &format)
            .map_err(|size| BootstrapProblem::TooLarge { size, source: source(owner, name) })?;
        Ok(Self { digest, data: with_data.then_some(encoded) })
    }
}

/// Why this data cannot be used on Windows, where nothing decompresses it.
fn on_windows(data: &[u8], format: &Format, source: impl FnOnce() -> String) -> Option<BootstrapProblem> {
    if data.starts_with(&GZIP) {
        return Some(BootstrapProblem::Compressed { source: source() });
    }
    let raw = data.len();
    (raw > USER_DATA_LIMIT).then(|| BootstrapProblem::TooLarge {
        size: Oversized { raw, compressed: None, format: format.clone(), is_windows: true },
        source: source(),
    })
}

/// What a user edits to shorten bootstrap data.
fn source(owner: &MachinePool, secret: &str) -> String {
    match owner.bootstrap_config() {
        Some(config) if config.kind == "KubeadmConfig" => {
            format!("spec.files of KubeadmConfig {}", config.name)
        }
        Some(config) => format!("the data that {} {} generates", config.kind, config.name),
        None => format!("the data in key `value` of Secret {secret}"),
    }
}

fn failed(error: &KubeError) -> BootstrapProblem {
    BootstrapProblem::Failed(error.to_string())
}

/// The hashes that distinguish an edit by a user from a token rotation (H2). A Secret that a user provides has no spec,
/// so that only its name counts.
async fn origin(
    kubernetes: &dyn Kubernetes,
    owner: &MachinePool,
    namespace: &str,
    secret: &str,
    data: &[u8],
) -> Result<Origin, BootstrapProblem> {
    let Some(config) = owner.bootstrap_config() else {
        let name = hash(&secret);
        return Ok(Origin { spec: name.clone(), data: name, rotates: false });
    };
    let key = ObjectKey::new(namespace, &config.name);
    let spec = kubernetes
        .referenced_spec(&config.api_group, &config.kind, &key)
        .await
        .map_err(|e| failed(&e))?
        .ok_or_else(|| {
            BootstrapProblem::Waiting(format!("{} {} does not exist", config.kind, config.name))
        })?;
    let token = BootstrapToken::of(&spec);
    let masked = mask_tokens(data, token.as_ref().and_then(|token| token.0.as_deref()));
    // With discovery by file, kubeadm's bootstrap provider creates no token.
    let rotates = config.kind != "KubeadmConfig" || token.is_some() || masked != data;
    Ok(Origin { spec: hash(&without_discovery(spec)), data: hash_bytes(&masked), rotates })
}

/// The source of bootstrap data.
struct Origin {
    spec: String,
    data: String,
    rotates: bool,
}

/// The discovery by bootstrap token that the spec of a `KubeadmConfig` names, with the token once it is created.
#[derive(Debug, PartialEq, Eq)]
struct BootstrapToken(Option<String>);

impl BootstrapToken {
    /// `None` with discovery by file, and for other kinds.
    fn of(spec: &Value) -> Option<Self> {
        let discovery = spec.pointer("/joinConfiguration/discovery")?;
        let is_set = |field: &str| discovery.get(field).is_some_and(|value| !value.is_null());
        let token = || discovery.pointer("/bootstrapToken/token")?.as_str().map(str::to_owned);
        (is_set("bootstrapToken") && !is_set("file")).then(|| Self(token()))
    }
}

/// The kubeadm bootstrap provider writes each rotated token into the spec's discovery section.
fn without_discovery(mut spec: Value) -> Value {
    if let Some(join) = spec.get_mut("joinConfiguration").and_then(Value::as_object_mut) {
        join.remove("discovery");
    }
    spec
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(data: &[u8]) -> Bootstrap {
        let on_windows = on_windows(data, &Format::CloudConfig, || "the data".to_owned());
        Bootstrap { digest: BootstrapDigest { on_windows, ..BootstrapDigest::default() }, data: None }
    }

    #[test]
    fn h6_data_that_a_user_compressed_are_refused_on_windows_only() {
        let read = read(&GZIP);
        assert!(read.problem(false).is_none());
        let problem = read.problem(true).unwrap();
        let message = crate::machine_pool::observe::prerequisites::for_bootstrap(problem).message;
        assert!(
            message.ends_with("does not support compressed user data. Store the data uncompressed."),
            "{message}"
        );
    }

    #[test]
    fn h6_data_that_must_be_compressed_are_refused_on_windows_only() {
        for (raw, refused) in
            [(USER_DATA_LIMIT, false), (USER_DATA_LIMIT + 1, true), (3 * USER_DATA_LIMIT, true)]
        {
            let read = read(&vec![b'a'; raw]);
            assert_eq!(read.problem(true).is_some(), refused, "{raw}");
            assert!(read.problem(false).is_none(), "{raw}");
            if let Some(problem) = read.problem(true) {
                let message = crate::machine_pool::observe::prerequisites::for_bootstrap(problem).message;
                assert!(message.ends_with(
                    "AWS accepts at most 16384, and Windows does not support compressed user data. Reduce the data."
                ), "{message}");
            }
        }
    }

    #[test]
    fn p37_a_rotation_in_the_spec_is_no_change() {
        let spec = |token: &str| {
            json!({"joinConfiguration": {"discovery": {"bootstrapToken": {"token": token}},
                "nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "2"}]}}})
        };
        assert_eq!(hash(&without_discovery(spec("a"))), hash(&without_discovery(spec("b"))));
        let mut edited = spec("a");
        edited["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"][0]["value"] = json!("4");
        assert_ne!(hash(&without_discovery(spec("a"))), hash(&without_discovery(edited)));
    }

    #[test]
    fn the_token_comes_from_the_discovery_of_the_kubeadm_config() {
        let of =
            |discovery: Value| BootstrapToken::of(&json!({"joinConfiguration": {"discovery": discovery}}));
        let token = BootstrapToken(Some("abcdef.0123456789abcdef".to_owned()));
        assert_eq!(of(json!({"bootstrapToken": {"token": "abcdef.0123456789abcdef"}})), Some(token));
        assert_eq!(
            of(json!({"bootstrapToken": {"unsafeSkipCAVerification": true}})),
            Some(BootstrapToken(None))
        );
        assert_eq!(of(json!({"file": {"kubeConfigPath": "/etc/join.conf"}})), None);
        assert_eq!(of(json!({"bootstrapToken": null})), None);
        assert_eq!(BootstrapToken::of(&json!({"clusterConfiguration": {}})), None);
    }
}
