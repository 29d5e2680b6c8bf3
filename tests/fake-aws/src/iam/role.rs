//! Roles, and whom they trust.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Caller, Decision, Policy, Request,
    web_identity::{Claims, WebIdentity},
};
use crate::Tree;

/// The service that gives roles to pods.
const PODS: &str = "pods.eks.amazonaws.com";

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
    /// A trust policy in the place of the three members above. Default none.
    #[serde(default)]
    pub trust_policy: Option<Value>,
    /// The longest session in seconds. Default 3 600.
    #[serde(default = "hour")]
    pub max_session_seconds: i64,
}

fn hour() -> i64 {
    3_600
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
            trust_policy: None,
            max_session_seconds: hour(),
        }
    }

    /// A role that a token of this subject gives.
    #[must_use]
    pub fn of_service_account(arn: &str, subject: &str) -> Self {
        let web_identity = WebIdentity::of(subject);
        Self { trusts: Vec::new(), web_identity: Some(web_identity), ..Self::trusting(arn, "") }
    }

    /// Requires an external id.
    #[must_use]
    pub fn external_id(mut self, id: &str) -> Self {
        self.external_id = Some(id.to_owned());
        self
    }

    /// A role with a trust policy.
    ///
    /// # Errors
    /// If the policy is not valid.
    pub fn with_trust_policy(arn: &str, policy: &Value) -> Result<Self, String> {
        Policy::parse(policy)?;
        let trust_policy = Some(policy.clone());
        Ok(Self { trusts: Vec::new(), trust_policy, ..Self::trusting(arn, "") })
    }

    /// Whether `AssumeRole` gives it to a caller.
    pub(crate) fn admits(&self, caller: &Caller, params: &Tree) -> bool {
        if self.trust_policy.is_some() {
            let partition = caller.arn.split(':').nth(1).unwrap_or_default();
            let principals = [
                Some(caller.account.clone()),
                Some(format!("arn:{partition}:iam::{}:root", caller.account)),
                Some(caller.arn.clone()),
                caller.role.clone(),
            ];
            let principals: Vec<(&str, String)> =
                principals.into_iter().flatten().map(|one| ("AWS", one)).collect();
            let mut assume = Request::new("sts:AssumeRole", &self.arn);
            if let Some(id) = params.text_of("ExternalId") {
                assume = assume.with("sts:ExternalId", id);
            }
            let has_tags = !params.items_of("Tags").is_empty();
            let tag = Request::new("sts:TagSession", &self.arn);
            return self.trusts(&assume, &principals) && (!has_tags || self.trusts(&tag, &principals));
        }
        let wanted = self.external_id.as_deref();
        (wanted.is_none() || wanted == params.text_of("ExternalId"))
            && self.trusts.iter().any(|one| is_named(one, caller))
    }

    /// Whether `AssumeRoleWithWebIdentity` gives it to the bearer of a token.
    pub(crate) fn admits_token(&self, claims: &Claims) -> bool {
        if self.trust_policy.is_some() {
            let mut parts = self.arn.splitn(6, ':');
            let (partition, account) = (parts.nth(1).unwrap_or_default(), parts.nth(2).unwrap_or_default());
            let issuer = claims.issuer.trim_start_matches("https://");
            let provider = format!("arn:{partition}:iam::{account}:oidc-provider/{issuer}");
            let mut request = Request::new("sts:AssumeRoleWithWebIdentity", &self.arn);
            request = request.with(&format!("{issuer}:sub"), &claims.subject);
            for audience in &claims.audiences {
                request = request.with(&format!("{issuer}:aud"), audience);
            }
            return self.trusts(&request, &[("Federated", provider)]);
        }
        self.web_identity.as_ref().is_some_and(|wanted| claims.satisfies(wanted))
    }

    /// Whether EKS Pod Identity may give it to a pod, which it does with tags.
    pub(crate) fn admits_pods(&self, tags: &BTreeMap<String, String>) -> bool {
        if self.trust_policy.is_some() {
            let principals = [("Service", PODS.to_owned())];
            return ["sts:AssumeRole", "sts:TagSession"].iter().all(|action| {
                let request = Request::new(action, &self.arn).with_tags(&["aws:RequestTag"], tags);
                self.trusts(&request, &principals)
            });
        }
        self.trusts.iter().any(|one| one == PODS || one == "*")
    }

    fn trusts(&self, request: &Request, principals: &[(&str, String)]) -> bool {
        let policy = self.trust_policy.as_ref().and_then(|policy| Policy::parse(policy).ok());
        policy.is_some_and(|policy| policy.trusts(request, principals) == Decision::Allowed)
    }
}

fn is_named(principal: &str, caller: &Caller) -> bool {
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
