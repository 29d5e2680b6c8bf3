//! Bootstrap tokens: hurrying a rotation, and what nodes and tests read of them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use super::objects::dynamic;
use crate::wait::{Look, wait_until};

/// Where bootstrap tokens live.
pub(crate) const NAMESPACE: &str = "kube-system";

/// The annotation whose change wakes the bootstrap provider.
const NUDGE: &str = "environment.capasg.dev/nudged";

/// How long the provider may take to answer the nudge.
const ROTATED: Duration = Duration::from_mins(1);

/// The name of a token's Secret; the token itself has the form `<id>.<secret>`.
pub(crate) fn secret_name(token: &str) -> Option<String> {
    let (id, secret) = token.split_once('.')?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    (id.len() == 6 && secret.len() == 16 && plain(id) && plain(secret))
        .then(|| format!("bootstrap-token-{id}"))
}

/// Whether the Secret is that of `token` and has not expired.
pub(crate) fn is_valid(secret: &Secret, token: &str, now: DateTime<Utc>) -> Result<(), String> {
    let field = |name: &str| {
        let value = secret.data.as_ref()?.get(name)?;
        String::from_utf8(value.0.clone()).ok()
    };
    let expected = token.split_once('.').map(|(_, secret)| secret.to_owned());
    if field("token-secret") != expected {
        return Err("the token's secret is another".to_owned());
    }
    let Some(expiration) = field("expiration") else { return Ok(()) };
    match DateTime::parse_from_rfc3339(&expiration) {
        Ok(at) if at > now => Ok(()),
        Ok(_) => Err(format!("the token expired at {expiration}")),
        Err(_) => Err("the token has no readable expiration".to_owned()),
    }
}

pub(super) async fn rotate(
    workload: &Client,
    management: &Client,
    namespace: &str,
    config: &str,
) -> Result<(String, String)> {
    let configs = dynamic(management, namespace, "bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig");
    let old = token_of(&configs.get(config).await?).context("the KubeadmConfig holds no bootstrap token")?;
    let old_secret = secret_name(&old).context("the bootstrap token has an unknown form")?;

    // Past half of its life the provider replaces it. It still serves for a minute, so that nodes that are just
    // joining with it are not cut off.
    let expiration = (Utc::now() + TimeDelta::seconds(60)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let secrets: Api<Secret> = Api::namespaced(workload.clone(), NAMESPACE);
    let sooner = json!({"data": {"expiration": k8s_openapi::ByteString(expiration.into_bytes())}});
    secrets.patch(&old_secret, &PatchParams::default(), &Patch::Merge(sooner)).await?;
    let nudge = json!({"metadata": {"annotations": {NUDGE: Utc::now().to_rfc3339()}}});
    configs.patch(config, &PatchParams::default(), &Patch::Merge(nudge)).await?;

    let bootstrap: Api<Secret> = Api::namespaced(management.clone(), namespace);
    let new = wait_until(ROTATED, &format!("a new token in the bootstrap data of {config}"), || async {
        let object = configs.get(config).await?;
        let token = token_of(&object).unwrap_or_default();
        if token.is_empty() || token == old {
            return Ok(Look::Not("the KubeadmConfig still holds the old token".to_owned()));
        }
        let name = object.data["status"]["dataSecretName"].as_str().context("no dataSecretName")?;
        let secret = bootstrap.get(name).await?;
        let value =
            secret.data.and_then(|mut data| data.remove("value")).context("bootstrap data without value")?;
        let rendered = String::from_utf8_lossy(&value.0).contains(&token);
        Ok(if rendered {
            Look::Done(token)
        } else {
            Look::Not("the bootstrap data hold the old token".to_owned())
        })
    })
    .await?;
    let new_secret = secret_name(&new).context("the new bootstrap token has an unknown form")?;
    ensure!(new_secret != old_secret, "the token changed but not its id");
    Ok((old_secret, new_secret))
}

fn token_of(config: &DynamicObject) -> Option<String> {
    let token = config.data["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["token"].as_str()?;
    Some(token.to_owned())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    const TOKEN: &str = "abcdef.0123456789abcdef";

    fn secret(secret: &str, expiration: &str) -> Secret {
        let data = [("token-secret", secret), ("expiration", expiration)];
        let data = data.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())));
        Secret { data: Some(data.into()), ..Secret::default() }
    }

    #[test]
    fn only_tokens_have_secrets() {
        assert_eq!(secret_name(TOKEN).as_deref(), Some("bootstrap-token-abcdef"));
        for other in
            ["", "abcdef", "abcdeF.0123456789abcdef", "abcdef.0123456789abcde", "../etc.0123456789abcdef"]
        {
            assert_eq!(secret_name(other), None, "{other}");
        }
    }

    #[test]
    fn an_expired_or_foreign_token_does_not_let_join() {
        let now = DateTime::parse_from_rfc3339("2026-05-01T10:00:00Z").unwrap().to_utc();
        assert_eq!(is_valid(&secret("0123456789abcdef", "2026-05-01T10:00:01Z"), TOKEN, now), Ok(()));
        assert!(is_valid(&secret("0123456789abcdef", "2026-05-01T10:00:00Z"), TOKEN, now).is_err());
        assert!(is_valid(&secret("0000000000000000", "2027-05-01T10:00:00Z"), TOKEN, now).is_err());
    }
}
