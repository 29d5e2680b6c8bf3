//! Credentials and certificates of repositories.

use super::*;
use crate::helm::repository::PlainHttp;

fn secret(entries: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()))).collect()
}

fn repository(url: &str) -> Repository {
    Repository::parse(url, PlainHttp::Rejected).unwrap()
}

fn registry_from(config: &str) -> Result<RepositoryCredentials, AccessError> {
    let data = secret(&[("config.json", config)]);
    RepositoryCredentials::from_secret(&repository("oci://r.example/c"), &data, "config.json")
}

#[test]
fn a_chart_repository_is_accessed_with_a_password() {
    let index = repository("https://charts.example");
    let data = secret(&[("username", "robot"), ("password", "s3cret")]);
    let credentials = RepositoryCredentials::from_secret(&index, &data, "config.json").unwrap();
    let verification = Verification::default().with_authority(&secret(&[("ca.crt", CERTIFICATE)])).unwrap();
    let access = Access { credentials: Some(credentials), verification };
    let expected = json!({"apiVersion": "v1", "repositories": [{
        "name": "repository", "url": "https://charts.example", "username": "robot", "password": "s3cret",
        "caFile": "ca.crt", "insecure_skip_tls_verify": false, "pass_credentials_all": false,
    }]});
    assert_eq!(access.repository_configuration(&index), expected);
    assert_eq!(access.registry_configuration(&index), json!({"auths": {}}));
    assert!(!format!("{access:?}").contains("s3cret"), "{access:?}");
    let without =
        RepositoryCredentials::from_secret(&index, &secret(&[("config.json", "{}")]), "config.json");
    assert_eq!(without, Err(AccessError::NoPassword));
}

#[test]
fn a_registry_is_accessed_with_entries_of_a_docker_configuration() {
    let credentials = registry_from(
        r#"{"auths": {"r.example": {"auth": "cm9ib3Q6czNjcmV0"}}, "credsStore": "", "HttpHeaders": {"a": "b"}}"#,
    );
    let access = Access { credentials: Some(credentials.unwrap()), ..Access::default() };
    let expected = json!({"auths": {"r.example": {"auth": "cm9ib3Q6czNjcmV0"}}});
    assert_eq!(access.registry_configuration(&repository("oci://r.example/c")), expected);
    assert!(!format!("{access:?}").contains("cm9ib3Q6czNjcmV0"));
}

#[test]
fn a_registry_is_accessed_with_a_password() {
    let registry = repository("oci://r.example:5000/charts");
    let data = secret(&[("username", "robot"), ("password", "s3cret")]);
    let credentials = RepositoryCredentials::from_secret(&registry, &data, "config.json").unwrap();
    let access = Access { credentials: Some(credentials), ..Access::default() };
    let expected = json!({"auths": {"r.example:5000": {"auth": STANDARD.encode("robot:s3cret")}}});
    assert_eq!(access.registry_configuration(&registry), expected);
    let none = json!({"apiVersion": "v1", "repositories": []});
    assert_eq!(access.repository_configuration(&registry), none);
}

#[test]
fn programs_that_provide_credentials_are_rejected() {
    for config in
        [r#"{"auths": {}, "credsStore": "ecr-login"}"#, r#"{"auths": {}, "credHelpers": {"r.example": "x"}}"#]
    {
        assert_eq!(registry_from(config), Err(AccessError::CredentialHelper), "{config}");
    }
}

#[test]
fn secrets_without_credentials_or_certificates_are_rejected() {
    for config in ["", "{}", "[]", r#"{"auths": {"r.example": {"auth": {"nested": 1}}}}"#] {
        assert_eq!(registry_from(config), Err(AccessError::DockerConfiguration), "{config}");
    }
    let empty =
        RepositoryCredentials::from_secret(&repository("oci://r.example/c"), &secret(&[]), "config.json");
    assert_eq!(empty, Err(AccessError::NoCredentials));
    for data in [secret(&[]), secret(&[("ca.crt", "not a certificate")])] {
        assert_eq!(Verification::default().with_authority(&data), Err(AccessError::NoCertificate));
    }
}
