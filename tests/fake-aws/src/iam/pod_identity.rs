//! EKS Pod Identity: a pod's token gives the role that is associated with its service account.

use std::collections::{BTreeMap, BTreeSet};

use super::{Iam, assume::Asked, session::Wanted, web_identity::Claims};
use crate::{ApiError, Tree};

/// Six hours, which is what the agent's credentials have.
const SECONDS: i64 = 21_600;

/// The audience of the tokens that pods get for the agent.
const AUDIENCE: &str = "pods.eks.amazonaws.com";

/// The credentials that a token gives, as in the reply of `AssumeRole`.
///
/// # Errors
/// A token that is no token, has expired, or has no association with a role that trusts the service.
pub(crate) fn credentials(iam: &mut Iam, asked: &Asked<'_>, token: &str) -> Result<Tree, ApiError> {
    let claims = Claims::of(token)?;
    claims.check_time(asked.token_time)?;
    let refused = |words: &str| ApiError::new(403, "AccessDeniedException", words);
    if claims.audience().is_some_and(|audience| audience != AUDIENCE) {
        return Err(refused("The token has another audience."));
    }
    let Some(role) = iam.associations.get(&claims.subject).cloned() else {
        return Err(refused("The service account has no association."));
    };
    let parts: Vec<&str> = claims.subject.split(':').collect();
    let (namespace, account) = match parts.as_slice() {
        [.., namespace, account] => (*namespace, *account),
        _ => ("", ""),
    };
    let tags = [
        ("eks-cluster-name", "simulated"),
        ("kubernetes-namespace", namespace),
        ("kubernetes-service-account", account),
    ];
    let tags: BTreeMap<String, String> =
        tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let transitive: BTreeSet<String> = tags.keys().cloned().collect();
    if !iam.roles.get(&role).map_or(iam.any_role, |own| own.admits_pods(&tags)) {
        return Err(refused("The role does not trust the service pods.eks.amazonaws.com."));
    }
    let name = format!("eks-simulated-{account}");
    iam.issue(
        Wanted { role: &role, name: &name, seconds: SECONDS, tags, transitive, policy: None },
        asked.now,
    )
}
