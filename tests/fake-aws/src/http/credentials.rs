//! Whose call a request is: the credential scope of its signature, which is not verified.

use http::HeaderMap;

use crate::{Scope, Service};

/// The access key that a request was signed with, and the account, region and service that it was signed for.
pub(super) fn of(headers: &HeaderMap) -> Option<(String, Scope, Service)> {
    let header = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let credential = header.split("Credential=").nth(1)?.split([',', ' ']).next()?;
    let mut parts = credential.split('/');
    let (access_key, _date, region, service) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some((access_key.to_owned(), Scope::of_access_key(access_key, region), Service::named(service)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credential_scope_names_account_region_and_service() {
        let mut headers = HeaderMap::new();
        let value = "AWS4-HMAC-SHA256 Credential=AKIA111122223333TEST/20260101/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=0";
        headers.insert(http::header::AUTHORIZATION, value.parse().unwrap());
        let (access_key, scope, service) = of(&headers).unwrap();
        assert_eq!(access_key, "AKIA111122223333TEST");
        assert_eq!(scope, Scope::account("111122223333", "eu-west-1"));
        assert_eq!(service, Service::Ec2);
        assert_eq!(of(&HeaderMap::new()), None);
    }
}
