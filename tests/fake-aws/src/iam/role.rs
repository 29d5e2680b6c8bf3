//! Roles, and whom they trust.

use serde::{Deserialize, Serialize};

use super::Caller;

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Role {
    /// For example `arn:aws:iam::111122223333:role/nodes`.
    pub arn: String,
    /// Who may assume it: an account (twelve digits, or the ARN of its `root`), the ARN of a role, user or session, the
    /// service `pods.eks.amazonaws.com`, or `*`. Default nobody.
    #[serde(default)]
    pub trusts: Vec<String>,
    /// The `ExternalId` that `AssumeRole` must name. Default none.
    #[serde(default)]
    pub external_id: Option<String>,
    /// The tokens with which `AssumeRoleWithWebIdentity` gives it. Default none.
    #[serde(default)]
    pub web_identity: Option<WebIdentity>,
    /// The longest session in seconds. Default 3 600.
    #[serde(default = "hour")]
    pub max_session_seconds: i64,
}

/// What a token must say of its bearer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebIdentity {
    /// `iss`. Default any.
    #[serde(default)]
    pub issuer: Option<String>,
    /// `sub`, for example `system:serviceaccount:capasg-system:capasg-manager`.
    pub subject: String,
    /// `aud`. Default `sts.amazonaws.com`.
    #[serde(default = "audience")]
    pub audience: String,
}

fn hour() -> i64 {
    3_600
}

fn audience() -> String {
    "sts.amazonaws.com".to_owned()
}

impl Role {
    /// A role that a principal may assume.
    #[must_use]
    pub fn trusting(arn: &str, principal: &str) -> Self {
        Self {
            arn: arn.to_owned(),
            trusts: vec![principal.to_owned()],
            external_id: None,
            web_identity: None,
            max_session_seconds: hour(),
        }
    }

    /// A role that a token of this subject gives.
    #[must_use]
    pub fn of_service_account(arn: &str, subject: &str) -> Self {
        let web_identity = WebIdentity { issuer: None, subject: subject.to_owned(), audience: audience() };
        Self { trusts: Vec::new(), web_identity: Some(web_identity), ..Self::trusting(arn, "") }
    }

    /// Requires an external id.
    #[must_use]
    pub fn external_id(mut self, id: &str) -> Self {
        self.external_id = Some(id.to_owned());
        self
    }

    /// Whether `AssumeRole` gives it to a caller.
    pub(crate) fn admits(&self, caller: &Caller, external_id: Option<&str>) -> bool {
        let wanted = self.external_id.as_deref();
        (wanted.is_none() || wanted == external_id) && self.trusts.iter().any(|one| trusts(one, caller))
    }

    /// Whether EKS Pod Identity may give it to a pod.
    pub(crate) fn admits_pods(&self) -> bool {
        self.trusts.iter().any(|one| one == "pods.eks.amazonaws.com" || one == "*")
    }
}

fn trusts(principal: &str, caller: &Caller) -> bool {
    let account = principal.split(':').nth(4).filter(|_| principal.ends_with(":root")).unwrap_or(principal);
    principal == "*"
        || account == caller.account
        || principal == caller.arn
        || Some(principal) == caller.role.as_deref()
}

/// The account and the name of a role by its ARN, which may have a path.
pub(crate) fn parts(arn: &str) -> Option<(&str, &str)> {
    let mut parts = arn.splitn(6, ':');
    let prefix = (parts.next()?, parts.next()?.starts_with("aws"), parts.next()?, parts.next()?);
    let (account, resource) = (parts.next()?, parts.next()?);
    let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    let name = resource.strip_prefix("role/")?.rsplit('/').next()?;
    (prefix == ("arn", true, "iam", "") && is_account && !name.is_empty()).then_some((account, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_an_account_and_a_name() {
        assert_eq!(parts("arn:aws:iam::111122223333:role/a/b/c"), Some(("111122223333", "c")));
        assert_eq!(parts("arn:aws-cn:iam::111122223333:role/c"), Some(("111122223333", "c")));
        for wrong in ["", "arn:aws:iam::1:role/c", "arn:aws:iam::111122223333:user/c", "role/c"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
