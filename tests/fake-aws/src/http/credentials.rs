//! Whose call a request is: the credential scope of its signature, which is not verified.

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use crate::{Scope, Service, Tree, call::UNSIGNED, iam};

/// Who signed a request, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) access_key: Option<String>,
    pub(super) session_token: Option<String>,
    pub(super) scope: Scope,
    pub(super) service: Service,
}

/// The access key and token that a request was signed with, and the account, region and service that it was signed for.
pub(super) fn of(headers: &HeaderMap) -> Option<Signed> {
    let header = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let credential = header.split("Credential=").nth(1)?.split([',', ' ']).next()?;
    let mut parts = credential.split('/');
    let (access_key, _date, region, service) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let token = headers.get("x-amz-security-token").and_then(|token| token.to_str().ok());
    Some(Signed {
        access_key: Some(access_key.to_owned()),
        session_token: token.map(str::to_owned),
        scope: Scope::of_access_key(access_key, region),
        service: Service::named(service)?,
    })
}

/// The one request that nobody signs: the account is that of the role, and the Region, which only the host of the real
/// endpoint would tell, the first of its partition.
pub(super) fn of_unsigned(body: &str) -> Option<Signed> {
    if !body.split('&').any(|pair| pair.strip_prefix("Action=") == Some(UNSIGNED)) {
        return None;
    }
    let role = body.split('&').find_map(|pair| pair.strip_prefix("RoleArn=")).unwrap_or_default();
    let role = percent_decode_str(role).decode_utf8().unwrap_or_default();
    let (account, _) = iam::role_parts(&role).unwrap_or((crate::DEFAULT_ACCOUNT, ""));
    let region = match role.split(':').nth(1) {
        Some("aws-cn") => "cn-north-1",
        Some("aws-us-gov") => "us-gov-west-1",
        _ => "us-east-1",
    };
    let scope = Scope::account(account, region);
    Some(Signed { access_key: None, session_token: None, scope, service: Service::Sts })
}

/// Moves the end of credentials in a reply from virtual time to the caller's clock.
pub(super) fn told_in_wall_time(reply: &mut Tree, end: impl Fn(&str) -> Option<String>) {
    let Some(mut credentials) = reply.get("Credentials").cloned() else { return };
    if let Some(expiration) = credentials.text_of("Expiration").and_then(end) {
        credentials.set("Expiration", expiration);
        reply.set("Credentials", credentials);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credential_scope_names_account_region_and_service() {
        let mut headers = HeaderMap::new();
        let value = "AWS4-HMAC-SHA256 Credential=AKIA111122223333TEST/20260101/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=0";
        headers.insert(http::header::AUTHORIZATION, value.parse().unwrap());
        headers.insert("x-amz-security-token", "t".parse().unwrap());
        let signed = of(&headers).unwrap();
        assert_eq!(signed.access_key.as_deref(), Some("AKIA111122223333TEST"));
        assert_eq!(signed.session_token.as_deref(), Some("t"));
        assert_eq!(signed.scope, Scope::account("111122223333", "eu-west-1"));
        assert_eq!(signed.service, Service::Ec2);
        assert_eq!(of(&HeaderMap::new()), None);
    }

    #[test]
    fn the_role_names_the_account_of_an_unsigned_request() {
        let body = "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws-cn%3Aiam%3A%3A111122223333%3Arole%2Fa&Version=1";
        let signed = of_unsigned(body).unwrap();
        assert_eq!(signed.scope, Scope::account("111122223333", "cn-north-1"));
        assert_eq!(of_unsigned("Action=AssumeRole"), None);
    }
}
