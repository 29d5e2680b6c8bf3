//! Kubeconfigs of workload clusters. A tenant can write the Secret of one, so that it is parsed and rewritten: the result
//! names neither programs nor files nor proxies, which would run code in the pod of the manager or send its files elsewhere.

use std::fmt;

use serde_json::{Map, Value, json};

/// The largest kubeconfig that is read: the limit of a Secret.
const LARGEST: usize = 1 << 20;
/// The members of a cluster that are kept.
const CLUSTER: [&str; 5] = [
    "server",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "tls-server-name",
    "disable-compression",
];
/// The members of a user that are kept.
const USER: [&str; 9] = [
    "client-certificate-data",
    "client-key-data",
    "token",
    "username",
    "password",
    "as",
    "as-uid",
    "as-groups",
    "as-user-extra",
];
/// The members that are rejected, and why.
const REJECTED: [(&str, &str); 7] = [
    ("exec", "it runs a program in the pod of the manager"),
    ("auth-provider", "it runs a program in the pod of the manager"),
    ("tokenFile", "it names a file of the manager; use token"),
    ("client-certificate", "it names a file of the manager; use client-certificate-data"),
    ("client-key", "it names a file of the manager; use client-key-data"),
    ("certificate-authority", "it names a file of the manager; use certificate-authority-data"),
    ("proxy-url", "it sends the credentials through a server that the manager does not know"),
];

/// Why a kubeconfig is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// It is too large.
    #[error("the kubeconfig has more than {LARGEST} bytes")]
    TooLarge,
    /// It is no YAML.
    #[error("the kubeconfig is not valid YAML")]
    Yaml,
    /// An object that another one names does not exist.
    #[error("the kubeconfig has no {0} that its current context names")]
    Missing(&'static str),
    /// The address is not usable.
    #[error("the server of the kubeconfig must begin with https:// and contain no user information")]
    Server,
    /// A member is rejected.
    #[error("the kubeconfig must not contain {member}: {why}")]
    Rejected {
        /// The member.
        member: &'static str,
        /// Why.
        why: &'static str,
    },
}

/// A kubeconfig with one cluster, one user and one context. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Kubeconfig(String);

impl Kubeconfig {
    /// Parses and rewrites a kubeconfig.
    ///
    /// # Errors
    /// If the kubeconfig is not valid, or its current context uses what is rejected.
    pub fn parse(text: &str) -> Result<Self, KubeconfigError> {
        if text.len() > LARGEST {
            return Err(KubeconfigError::TooLarge);
        }
        // The error of the parser is dropped: it may contain a part of the text.
        let all: Value = serde_saphyr::from_str(text).map_err(|_| KubeconfigError::Yaml)?;
        let context = all["current-context"].as_str().unwrap_or_default();
        let context =
            named(&all, "contexts", context, "context").ok_or(KubeconfigError::Missing("context"))?;
        let find = |list: &str, kind: &'static str| {
            let name = context.get(kind).and_then(Value::as_str).unwrap_or_default();
            named(&all, list, name, kind).ok_or(KubeconfigError::Missing(kind))
        };
        let (cluster, user) =
            (kept(find("clusters", "cluster")?, &CLUSTER)?, kept(find("users", "user")?, &USER)?);
        check_server(cluster.get("server"))?;
        let rewritten = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "workload", "cluster": cluster}],
            "users": [{"name": "workload", "user": user}],
            "contexts": [{"name": "workload", "context": {"cluster": "workload", "user": "workload"}}],
            "current-context": "workload",
        });
        Ok(Self(rewritten.to_string()))
    }

    /// The rewritten text: JSON, which is YAML.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Kubeconfig(..)")
    }
}

/// An object of a list by its name. The first one counts, as in kubectl.
fn named<'a>(all: &'a Value, list: &str, name: &str, kind: &str) -> Option<&'a Map<String, Value>> {
    let entries = all[list].as_array()?;
    entries.iter().find(|entry| entry["name"] == name)?.get(kind)?.as_object()
}

/// The members that are kept. Others without a meaning for the connection are left out.
fn kept(object: &Map<String, Value>, members: &[&str]) -> Result<Map<String, Value>, KubeconfigError> {
    for (member, why) in REJECTED {
        if object.get(member).is_some_and(|value| !value.is_null() && value != "") {
            return Err(KubeconfigError::Rejected { member, why });
        }
    }
    let kept = object.iter().filter(|(member, _)| members.contains(&member.as_str()));
    Ok(kept.map(|(member, value)| (member.clone(), value.clone())).collect())
}

fn check_server(server: Option<&Value>) -> Result<(), KubeconfigError> {
    let rest = server.and_then(Value::as_str).and_then(|server| server.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    if authority.is_empty() || authority.contains('@') { Err(KubeconfigError::Server) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
