//! Roles, sessions and access keys, and what the services answer to credentials that are not valid.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use capasg_fake_aws::{
    ApiError, Call, Credentials, Fault, LogFilter, Role, Scope, Service, Simulator, Tree, timestamp,
};
use chrono::Duration;
use serde_json::json;

const REGION: &str = "eu-west-1";
const ROLE: &str = "arn:aws:iam::111122223333:role/teams/pools";
const SECOND: &str = "arn:aws:iam::444455556666:role/second";
const KEY: &str = "AKIA999988887777TEST";

fn key() -> Credentials {
    Credentials { access_key: KEY.to_owned(), session_token: None }
}

fn wanted(role: &str) -> Tree {
    Tree::new().with("RoleArn", role).with("RoleSessionName", "capasg")
}

fn assume(simulator: &Simulator, by: &Credentials, params: Tree) -> Result<Credentials, ApiError> {
    let reply = simulator.call_as(by, REGION, Service::Sts, "AssumeRole", params)?;
    Ok(Credentials::of_reply(&reply).unwrap())
}

fn groups(simulator: &Simulator, by: &Credentials) -> Result<Tree, ApiError> {
    simulator.call_as(by, REGION, Service::AutoScaling, "DescribeAutoScalingGroups", Tree::new())
}

fn arn(simulator: &Simulator, by: &Credentials) -> Result<String, ApiError> {
    let reply = simulator.call_as(by, REGION, Service::Sts, "GetCallerIdentity", Tree::new())?;
    Ok(reply.text_of("Arn").unwrap().to_owned())
}

fn code<T: std::fmt::Debug>(result: Result<T, ApiError>) -> (u16, String) {
    let error = result.unwrap_err();
    (error.status, error.code)
}

/// The same read of every service.
fn every_service(simulator: &Simulator, by: &Credentials) -> Vec<(u16, String)> {
    let calls = [
        (Service::AutoScaling, "DescribeAutoScalingGroups", Tree::new()),
        (Service::Ec2, "DescribeSubnets", Tree::new()),
        (Service::Sts, "AssumeRole", wanted(SECOND)),
        (Service::Sqs, "GetQueueUrl", Tree::new().with("QueueName", "capasg")),
        (Service::Ssm, "GetParameter", Tree::new().with("Name", "/images/node/v1.36")),
        (
            Service::ServiceQuotas,
            "GetServiceQuota",
            Tree::new().with("ServiceCode", "ec2").with("QuotaCode", "x"),
        ),
    ];
    calls.map(|(service, action, params)| code(simulator.call_as(by, REGION, service, action, params))).into()
}

fn token(claims: &serde_json::Value) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

#[test]
fn a_session_acts_in_the_account_of_its_role() {
    let simulator = Simulator::new(1);
    simulator.put_role(Role::trusting(ROLE, "999988887777"));
    let session = assume(&simulator, &key(), wanted(ROLE)).unwrap();
    assert_eq!(session.access_key.len(), 20);
    assert_eq!(Scope::of_access_key(&session.access_key, REGION).account, "111122223333");
    assert_eq!(
        arn(&simulator, &session).unwrap(),
        "arn:aws:sts::111122223333:assumed-role/pools/capasg",
        "the path of a role is not in the ARNs of its sessions"
    );
    let scope = Scope::account("111122223333", REGION);
    let data = Tree::new().with("ImageId", "ami-0a1b2c3d").with("InstanceType", "m7i.large");
    let params = Tree::new().with("LaunchTemplateName", "nodes").with("LaunchTemplateData", data);
    simulator.call_as(&session, REGION, Service::Ec2, "CreateLaunchTemplate", params).unwrap();
    let templates = |scope: &Scope| {
        let reply = simulator.call(scope, Service::Ec2, "DescribeLaunchTemplates", Tree::new()).unwrap();
        reply.items_of("LaunchTemplates").len()
    };
    assert_eq!(templates(&scope), 1);
    assert_eq!(templates(&Scope::account("999988887777", REGION)), 0);
}

#[test]
fn only_trusted_callers_with_the_external_id_assume_a_role() {
    let simulator = Simulator::new(1);
    let denied = (403, "AccessDenied".to_owned());
    assert_eq!(code(assume(&simulator, &key(), wanted(ROLE))), denied, "no such role");
    simulator.put_role(Role::trusting(ROLE, "arn:aws:iam::121212121212:root").external_id("blue"));
    let with_id = |id: &str| wanted(ROLE).with("ExternalId", id);
    assert_eq!(code(assume(&simulator, &key(), with_id("blue"))), denied, "of another account");
    simulator.put_role(Role::trusting(ROLE, "arn:aws:iam::999988887777:root").external_id("blue"));
    assert_eq!(code(assume(&simulator, &key(), wanted(ROLE))), denied, "no external id");
    assert_eq!(code(assume(&simulator, &key(), with_id("green"))), denied);
    assume(&simulator, &key(), with_id("blue")).unwrap();
    // A role that trusts a role takes its sessions, and no user of the same account.
    simulator.put_role(Role::trusting(SECOND, ROLE));
    let session = assume(&simulator, &key(), with_id("blue")).unwrap();
    assume(&simulator, &session, wanted(SECOND)).unwrap();
    assert_eq!(code(assume(&simulator, &key(), wanted(SECOND))), denied);
    simulator.set_any_role(true);
    assume(&simulator, &key(), wanted("arn:aws:iam::222233334444:role/undeclared")).unwrap();
    assert_eq!(code(assume(&simulator, &key(), wanted(SECOND))), denied, "a declared role keeps its trust");
}

#[test]
fn sessions_last_as_long_as_asked_within_the_limits() {
    let simulator = Simulator::new(1);
    let mut long = Role::trusting(ROLE, "*");
    long.max_session_seconds = 43_200;
    simulator.put_role(long.clone());
    simulator.put_role(Role { arn: SECOND.to_owned(), ..long });
    let lasting = |role: &str, seconds: i64| wanted(role).with("DurationSeconds", seconds);
    for wrong in [899, 43_201] {
        assert_eq!(code(assume(&simulator, &key(), lasting(ROLE, wrong))).1, "ValidationError", "{wrong}");
    }
    let session = assume(&simulator, &key(), lasting(ROLE, 43_200)).unwrap();
    // Role chaining.
    assert_eq!(code(assume(&simulator, &session, lasting(SECOND, 3_601))).1, "ValidationError");
    assume(&simulator, &session, lasting(SECOND, 3_600)).unwrap();
    simulator.put_role(Role::trusting(ROLE, "*"));
    assert_eq!(code(assume(&simulator, &key(), lasting(ROLE, 3_601))).1, "ValidationError");
    let brief = assume(&simulator, &key(), lasting(ROLE, 900)).unwrap();
    simulator.advance(Duration::seconds(899));
    groups(&simulator, &brief).unwrap();
    simulator.advance(Duration::seconds(1));
    assert_eq!(code(groups(&simulator, &brief)), (403, "ExpiredToken".to_owned()));
    groups(&simulator, &session).unwrap();
}

#[test]
fn each_service_has_its_own_words_for_credentials_that_ended() {
    let simulator = Simulator::new(1);
    simulator.put_role(Role::trusting(ROLE, "*"));
    let session = assume(&simulator, &key(), wanted(ROLE)).unwrap();
    assert_eq!(simulator.expire_sessions(ROLE), 1);
    let own = |status: u16, code: &str| (status, code.to_owned());
    let expired = [
        own(403, "ExpiredToken"),
        own(400, "RequestExpired"),
        own(403, "ExpiredToken"),
        own(403, "ExpiredToken"),
        own(400, "ExpiredTokenException"),
        own(400, "ExpiredTokenException"),
    ];
    assert_eq!(every_service(&simulator, &session), expired);
}

#[test]
fn each_service_has_its_own_words_for_keys_that_do_not_exist() {
    let simulator = Simulator::new(1);
    simulator.put_role(Role::trusting(ROLE, "*"));
    let own = |status: u16, code: &str| (status, code.to_owned());
    let unknown = [
        own(403, "InvalidClientTokenId"),
        own(401, "AuthFailure"),
        own(403, "InvalidClientTokenId"),
        own(403, "InvalidClientTokenId"),
        own(400, "UnrecognizedClientException"),
        own(400, "UnrecognizedClientException"),
    ];
    simulator.remove_access_key(KEY);
    assert_eq!(every_service(&simulator, &key()), unknown);
    simulator.put_access_key(KEY, "arn:aws:iam::999988887777:user/rotated");
    assert_eq!(arn(&simulator, &key()).unwrap(), "arn:aws:iam::999988887777:user/rotated");
    // Temporary credentials: without their token, with a wrong one, of nobody, and of a role that was deleted.
    let session = assume(&simulator, &key(), wanted(ROLE)).unwrap();
    let nobody = Credentials { access_key: "ASIA111122223333FFFF".to_owned(), ..session.clone() };
    for wrong in [
        Credentials { session_token: None, ..session.clone() },
        Credentials { session_token: Some("t".to_owned()), ..session.clone() },
        nobody,
    ] {
        assert_eq!(every_service(&simulator, &wrong), unknown);
    }
    simulator.remove_role(ROLE);
    assert_eq!(every_service(&simulator, &session), unknown);
}

#[test]
fn revoked_sessions_are_denied_and_later_ones_are_not() {
    let simulator = Simulator::new(1);
    simulator.put_role(Role::trusting(ROLE, "*"));
    let early = assume(&simulator, &key(), wanted(ROLE)).unwrap();
    assert_eq!(simulator.revoke_sessions(ROLE), 1);
    let later = assume(&simulator, &key(), wanted(ROLE)).unwrap();
    let own = |status: u16, code: &str| (status, code.to_owned());
    let denied = [
        own(403, "AccessDenied"),
        own(403, "UnauthorizedOperation"),
        own(403, "AccessDenied"),
        own(403, "AccessDenied"),
        own(400, "AccessDeniedException"),
        own(400, "AccessDeniedException"),
    ];
    assert_eq!(every_service(&simulator, &early), denied);
    groups(&simulator, &later).unwrap();
    arn(&simulator, &early).unwrap();
}

#[test]
fn a_service_account_gets_the_role_that_trusts_it() {
    let simulator = Simulator::new(1);
    let subject = "system:serviceaccount:capasg-system:capasg-manager";
    simulator.put_role(Role::of_service_account(ROLE, subject));
    let end = (simulator.now() + Duration::hours(1)).timestamp();
    let ask = |claims: serde_json::Value| {
        let params = wanted(ROLE).with("WebIdentityToken", token(&claims));
        let scope = Scope::account("111122223333", "us-east-1");
        let call = Call {
            scope,
            service: Service::Sts,
            action: "AssumeRoleWithWebIdentity".to_owned(),
            params,
            access_key: None,
            session_token: None,
            wall_time: None,
        };
        simulator.answer(call).result
    };
    let good = json!({"iss": "https://issuer", "sub": subject, "aud": ["sts.amazonaws.com"], "exp": end});
    let reply = ask(good.clone()).unwrap();
    assert_eq!(reply.text_of("SubjectFromWebIdentityToken"), Some(subject));
    groups(&simulator, &Credentials::of_reply(&reply).unwrap()).unwrap();
    let with = |name: &str, value: serde_json::Value| {
        let mut claims = good.clone();
        claims[name] = value;
        code(ask(claims))
    };
    assert_eq!(with("sub", json!("system:serviceaccount:a:b")), (403, "AccessDenied".to_owned()));
    assert_eq!(with("aud", json!(["other"])), (403, "AccessDenied".to_owned()));
    assert_eq!(with("exp", json!(end - 3_600)), (400, "ExpiredTokenException".to_owned()));
    assert_eq!(with("sub", json!(null)), (400, "InvalidIdentityToken".to_owned()));
    let logged = simulator.log(&LogFilter::default().action("AssumeRoleWithWebIdentity"));
    assert_eq!(logged[0].identity.as_deref(), Some(subject));
    assert!(!serde_json::to_string(&logged).unwrap().contains("e30."), "a token is in the log");
}

#[test]
fn tags_pass_to_the_next_session_if_they_are_transitive() {
    let simulator = Simulator::new(1);
    simulator.put_role(Role::trusting(ROLE, "*"));
    simulator.put_role(Role::trusting(SECOND, "*"));
    let tag = |key: &str, value: &str| Tree::new().with("Key", key).with("Value", value);
    let params = wanted(ROLE)
        .with("Tags", vec![tag("team", "blue"), tag("stage", "prod")])
        .with("TransitiveTagKeys", vec!["team"]);
    let session = assume(&simulator, &key(), params).unwrap();
    assume(&simulator, &session, wanted(SECOND)).unwrap();
    let own = wanted(SECOND).with("Tags", vec![tag("team", "red")]);
    assert_eq!(code(assume(&simulator, &session, own)).1, "InvalidParameterValue");
    let sessions = simulator.sessions();
    assert_eq!(sessions[0].tags.len(), 2);
    assert_eq!(sessions[1].tags.iter().collect::<Vec<_>>(), [(&"team".to_owned(), &"blue".to_owned())]);
    assert_eq!(timestamp(sessions[1].expires), "2026-01-01T01:00:00.000Z");
}

#[test]
fn calls_are_counted_by_identity() {
    let simulator = Simulator::new(1);
    simulator.put_role(Role::trusting(ROLE, "*"));
    let one = assume(&simulator, &key(), wanted(ROLE)).unwrap();
    let other = assume(&simulator, &key(), wanted(ROLE).with("RoleSessionName", "other")).unwrap();
    for credentials in [&one, &one, &other] {
        groups(&simulator, credentials).unwrap();
    }
    groups(&simulator, &key()).unwrap();
    simulator.remove_access_key(KEY);
    groups(&simulator, &key()).unwrap_err();
    let counts = simulator.counts(&LogFilter::default().action("DescribeAutoScalingGroups"));
    assert_eq!(counts.calls, 5);
    assert_eq!(counts.by_identity["arn:aws:sts::111122223333:assumed-role/pools/capasg"], 2);
    assert_eq!(counts.by_identity.values().sum::<usize>(), 4, "a call without valid credentials is nobody's");
    assert_eq!(simulator.counts(&LogFilter::default().identity(ROLE)).calls, 3);
    let own = "arn:aws:sts::111122223333:assumed-role/pools/other";
    assert_eq!(simulator.counts(&LogFilter::default().identity(own)).calls, 1);
}

#[test]
fn faults_strike_the_operations_of_sts() {
    let simulator = Simulator::new(1);
    simulator.put_role(Role::trusting(ROLE, "*"));
    simulator.add_fault(Fault::error("AssumeRole", 503, "ServiceUnavailable", "down"));
    assert_eq!(code(assume(&simulator, &key(), wanted(ROLE))), (503, "ServiceUnavailable".to_owned()));
    assume(&simulator, &key(), wanted(ROLE)).unwrap();
    assert!(simulator.dump(None).is_empty(), "credentials are no scope's matter");
}
