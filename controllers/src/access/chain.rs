//! The credentials of an identity: its own source, or a role that is assumed with those of another identity.

use std::time::Duration;

use capasg_api::{
    ASGIdentity,
    identity::{IdentityKind, IdentityReference, IdentitySourceType, RoleSource},
    reasons::cloud_reachable::{IDENTITY_NOT_ALLOWED, IDENTITY_NOT_FOUND, IDENTITY_NOT_USABLE},
};
use capasg_cloud::{CredentialSource, Role};
use kube::ResourceExt as _;

use super::{Refusal, aws_provider::ProviderIdentity, resolve::Resolver};
use crate::kubernetes::{AccessKey, KubeError, Result, SecretPlace};

/// The most identities in a chain; one that refers to itself is longer.
const LONGEST: usize = 4;
/// The most characters of a session name (`AssumeRole` of the AWS STS API reference).
const LONGEST_SESSION_NAME: usize = 64;

/// Credentials, or why there are none.
type Found<T> = Result<std::result::Result<T, Refusal>>;

/// Returns early with a refusal.
macro_rules! allowed {
    ($answer:expr) => {
        match $answer {
            Ok(value) => value,
            Err(refusal) => return Ok(Err(refusal)),
        }
    };
}

impl Resolver<'_> {
    /// The credentials of an ASGIdentity.
    pub(super) async fn of_ours(&self, identity: &ASGIdentity) -> Found<CredentialSource> {
        // Roles from the outermost to the one that is assumed first.
        let (mut roles, mut next) = (Vec::new(), identity.clone());
        let source = loop {
            let name = next.name_any();
            let missing = |what: &str| format!("ASGIdentity {name} has no spec.{what}");
            match next.spec.source {
                IdentitySourceType::Controller => break CredentialSource::Process,
                IdentitySourceType::WebIdentity => {
                    let Some(role) = &next.spec.role else {
                        return Ok(Err(Refusal::new(IDENTITY_NOT_USABLE, missing("role"))));
                    };
                    break CredentialSource::WebIdentity(role_of(role, &name));
                }
                IdentitySourceType::Secret => {
                    let Some(secret) = &next.spec.secret else {
                        return Ok(Err(Refusal::new(IDENTITY_NOT_USABLE, missing("secret"))));
                    };
                    let place = SecretPlace { namespace: None, name: secret.name.clone() };
                    break allowed!(self.keys(place, &format!("ASGIdentity {name}")).await?);
                }
                IdentitySourceType::Role => {
                    let Some(role) = &next.spec.role else {
                        return Ok(Err(Refusal::new(IDENTITY_NOT_USABLE, missing("role"))));
                    };
                    roles.push(role_of(role, &name));
                    if roles.len() > LONGEST {
                        let message = format!(
                            "ASGIdentity {} refers to a chain of more than {LONGEST} roles, or to itself",
                            identity.name_any()
                        );
                        return Ok(Err(Refusal::new(IDENTITY_NOT_USABLE, message)));
                    }
                    let Some(from) = &role.source_identity_ref else { break CredentialSource::Process };
                    let Some(found) = self.ours(&from.name) else {
                        let message = format!(
                            "ASGIdentity {name} names ASGIdentity {} in spec.role.sourceIdentityRef, which does not exist",
                            from.name
                        );
                        return Ok(Err(Refusal::new(IDENTITY_NOT_FOUND, message)));
                    };
                    next = (*found).clone();
                }
            }
        };
        Ok(Ok(assumed(roles, source)))
    }

    /// The credentials of an identity of Cluster API Provider AWS that is no controller identity.
    pub(super) async fn of_provider(
        &self,
        kind: IdentityKind,
        name: &str,
        first: ProviderIdentity,
    ) -> Found<CredentialSource> {
        let (mut roles, mut next, mut at) = (Vec::new(), first, (kind, name.to_owned()));
        let source = loop {
            let (kind, name) = &at;
            let shown = format!("{kind} {name}");
            if *kind == IdentityKind::AWSClusterStaticIdentity {
                let Some(secret) = next.secret_ref.clone() else {
                    return Ok(Err(Refusal::new(
                        IDENTITY_NOT_USABLE,
                        format!("{shown} has no spec.secretRef"),
                    )));
                };
                let namespace = self.aws_provider_namespace().to_owned();
                let place = SecretPlace { namespace: Some(namespace.clone()), name: secret.clone() };
                if !self.may_use(&place).await? {
                    let message = format!(
                        "{shown} refers to Secret {namespace}/{secret}, which {} may not use: give its service \
                         account the verb `use` on that Secret with a Role in namespace {namespace}",
                        self.who()
                    );
                    return Ok(Err(Refusal::new(IDENTITY_NOT_ALLOWED, message)));
                }
                break allowed!(self.keys(place, &shown).await?);
            }
            let Some(arn) = next.role_arn.clone() else {
                return Ok(Err(Refusal::new(IDENTITY_NOT_USABLE, format!("{shown} has no spec.roleARN"))));
            };
            roles.push(Role {
                arn,
                session_name: next.session_name.clone().unwrap_or_else(|| session_name(name)),
                external_id: next.external_id.clone(),
                duration: next.duration(),
                tags: std::collections::BTreeMap::new(),
                policy: next.inline_policy.clone().filter(|policy| !policy.is_empty()),
                policy_arns: next.policy_arns.clone(),
            });
            if roles.len() > LONGEST {
                let message = format!("{shown} refers to a chain of more than {LONGEST} roles, or to itself");
                return Ok(Err(Refusal::new(IDENTITY_NOT_USABLE, message)));
            }
            let Some(from) = next.source_identity_ref.clone() else { break CredentialSource::Process };
            let (kind, spec) = allowed!(self.provider_identity(&from).await?);
            if kind == IdentityKind::AWSClusterControllerIdentity {
                break CredentialSource::Process;
            }
            (next, at) = (spec, (kind, from.name));
        };
        Ok(Ok(assumed(roles, source)))
    }

    /// An identity of Cluster API Provider AWS that exists and allows the namespace.
    pub(super) async fn provider_identity(
        &self,
        reference: &IdentityReference,
    ) -> Found<(IdentityKind, ProviderIdentity)> {
        let IdentityReference { kind, name } = reference;
        let known = IdentityKind::ALL.iter().find(|known| known.as_str() == kind);
        let Some(kind) = known.copied().filter(|kind| *kind != IdentityKind::ASGIdentity) else {
            return Ok(Err(Refusal::new(
                IDENTITY_NOT_FOUND,
                format!("{kind} {name} is not a kind of identity"),
            )));
        };
        let Some(spec) = self.cluster_scoped_spec(kind, name).await? else {
            return Ok(Err(Refusal::new(IDENTITY_NOT_FOUND, format!("{kind} {name} does not exist"))));
        };
        let Ok(spec) = serde_json::from_value::<ProviderIdentity>(spec) else {
            return Ok(Err(Refusal::new(
                IDENTITY_NOT_USABLE,
                format!("the spec of {kind} {name} cannot be read"),
            )));
        };
        if !spec.allows(self.namespace(), self.labels().as_ref()) {
            return Ok(Err(self.not_allowed(&format!("{kind} {name}"))));
        }
        Ok(Ok((kind, spec)))
    }

    async fn keys(&self, place: SecretPlace, of: &str) -> Found<CredentialSource> {
        let shown = place.to_string();
        let key = match self.access_key(&place).await {
            Err(KubeError::Forbidden { .. }) => {
                let message = format!(
                    "Secret {shown} of {of} may not be read by {}: give its service account the verb `get` on that Secret \
                     with a Role in the namespace of the Secret",
                    self.who()
                );
                return Ok(Err(Refusal::new(IDENTITY_NOT_USABLE, message)));
            }
            read => read?,
        };
        Ok(match key {
            None => Err(Refusal {
                reason: IDENTITY_NOT_USABLE,
                message: format!("Secret {shown} of {of} does not exist"),
            }),
            Some(AccessKey { access_key_id, secret_access_key, session_token })
                if !access_key_id.is_empty() && !secret_access_key.expose().is_empty() =>
            {
                Ok(CredentialSource::Keys { access_key_id, secret_access_key, session_token })
            }
            Some(_) => Err(Refusal {
                reason: IDENTITY_NOT_USABLE,
                message: format!("Secret {shown} of {of} has no key AccessKeyID or no key SecretAccessKey"),
            }),
        })
    }
}

/// Roles, the outermost first, assumed one with the other.
fn assumed(roles: Vec<Role>, source: CredentialSource) -> CredentialSource {
    let assume = |from, role| CredentialSource::Role { role, from: Box::new(from) };
    roles.into_iter().rev().fold(source, assume)
}

fn role_of(role: &RoleSource, identity: &str) -> Role {
    let seconds = role.duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Role {
        arn: role.arn.clone(),
        session_name: role.session_name.clone().unwrap_or_else(|| session_name(identity)),
        external_id: role.external_id.clone(),
        duration: seconds.map(Duration::from_secs),
        tags: role.session_tags.clone(),
        policy: None,
        policy_arns: Vec::new(),
    }
}

fn session_name(identity: &str) -> String {
    format!("capasg-{identity}").chars().take(LONGEST_SESSION_NAME).collect()
}
