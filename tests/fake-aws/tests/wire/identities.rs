//! Identities over HTTP: STS, the agent of EKS Pod Identity, and their control API.

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use capasg_fake_aws::{
    Simulator,
    http::{Pace, Server},
};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::client::{Front, Reply, exchange};

const ROLE: &str = "arn:aws:iam::111122223333:role/pools";
const SUBJECT: &str = "system:serviceaccount:capasg-system:capasg-manager";

fn token(audience: &str) -> String {
    let end = Utc::now().timestamp() + 600;
    let claims = json!({"iss": "https://issuer", "sub": SUBJECT, "aud": [audience], "exp": end});
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

fn member<'a>(reply: &'a Reply, name: &str) -> Result<&'a str> {
    let after = reply.body.split(&format!("<{name}>")).nth(1).with_context(|| reply.body.clone())?;
    after.split('<').next().context("no end")
}

/// Minutes from now by the wall clock.
fn minutes_left(time: &str) -> Result<i64> {
    let left = DateTime::parse_from_rfc3339(time)?.with_timezone(&Utc) - Utc::now();
    // Half a minute for a slow machine.
    Ok((left.num_seconds() + 30) / 60)
}

async fn groups(front: &Front, credentials: &Reply, headers: &str) -> Result<Reply> {
    let key = member(credentials, "AccessKeyId")?;
    let body = "Action=DescribeAutoScalingGroups&Version=2011-01-01";
    front.signed(key, "autoscaling", headers, body).await?.context("no reply")
}

#[tokio::test]
async fn a_session_is_asked_for_and_used() -> Result<()> {
    let front = Front::start().await?;
    front.post("/iam/roles", json!({"arn": ROLE, "trusts": ["123456789012"], "externalId": "blue"})).await?;
    let body = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2Fpools\
        &RoleSessionName=capasg&ExternalId=blue&Tags.member.1.Key=team&Tags.member.1.Value=blue";
    let session = front.aws("sts", body).await?.context("no reply")?;
    ensure!(session.status == 200, "{session:?}");
    assert_eq!(minutes_left(member(&session, "Expiration")?)?, 60, "by the wall clock, not by virtual time");
    let header = format!("x-amz-security-token: {}\r\n", member(&session, "SessionToken")?);
    assert_eq!(groups(&front, &session, &header).await?.status, 200);
    let refused = groups(&front, &session, "").await?;
    ensure!(refused.status == 403 && refused.body.contains("InvalidClientTokenId"), "{refused:?}");
    let counts = front.get(&format!("/counts?identity={ROLE}")).await?;
    assert_eq!(counts["calls"], 1);
    front.post("/iam/sessions/expire", json!({"role": ROLE})).await?;
    let refused = groups(&front, &session, &header).await?;
    ensure!(refused.status == 403 && refused.body.contains("ExpiredToken"), "{refused:?}");
    assert_eq!(front.get("/iam/sessions").await?[0]["tags"]["team"], "blue");
    front.post("/iam/access-keys", json!({"key": "AKIDEXAMPLE"})).await?;
    let gone = front.control("DELETE", "/iam/access-keys", &json!({"key": "AKIDEXAMPLE"})).await?;
    assert_eq!(gone.status, 200);
    let refused = front.aws("sts", body).await?.context("no reply")?;
    ensure!(refused.status == 403 && refused.body.contains("InvalidClientTokenId"), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn a_web_identity_needs_no_signature() -> Result<()> {
    let front = Front::start().await?;
    let ask = async |action: &str| -> Result<Reply> {
        let body = format!(
            "Action={action}&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2Fpools\
             &RoleSessionName=capasg&WebIdentityToken={}",
            token("sts.amazonaws.com")
        );
        exchange(front.server.addr(), "POST", "/", "", &body).await?.context("no reply")
    };
    let refused = ask("AssumeRoleWithWebIdentity").await?;
    ensure!(refused.status == 403 && refused.body.contains("<Code>AccessDenied</Code>"), "{refused:?}");
    front.post("/iam/roles", json!({"arn": ROLE, "webIdentity": {"subject": SUBJECT}})).await?;
    let session = ask("AssumeRoleWithWebIdentity").await?;
    ensure!(session.status == 200, "{session:?}");
    let header = format!("x-amz-security-token: {}\r\n", member(&session, "SessionToken")?);
    assert_eq!(groups(&front, &session, &header).await?.status, 200);
    let unsigned = ask("AssumeRole").await?;
    ensure!(unsigned.status == 403 && unsigned.body.contains("MissingAuthenticationToken"), "{unsigned:?}");
    Ok(())
}

#[tokio::test]
async fn a_pod_gets_the_role_that_is_associated_with_its_service_account() -> Result<()> {
    let front = Front::start().await?;
    let ask = async || -> Result<Reply> {
        let headers = format!("authorization: {}\r\n", token("pods.eks.amazonaws.com"));
        exchange(front.server.addr(), "GET", "/v1/credentials", &headers, "").await?.context("no reply")
    };
    assert_eq!(ask().await?.status, 403);
    front.post("/iam/roles", json!({"arn": ROLE, "trusts": ["pods.eks.amazonaws.com"]})).await?;
    front.post("/iam/associations", json!({"subject": SUBJECT, "role": ROLE})).await?;
    let reply = ask().await?;
    ensure!(reply.status == 200, "{reply:?}");
    let credentials: Value = reply.json()?;
    assert_eq!(credentials["AccountId"], "111122223333");
    assert_eq!(minutes_left(credentials["Expiration"].as_str().context("a time")?)?, 360);
    let tags = &front.get("/iam/sessions").await?[0]["tags"];
    assert_eq!(tags["kubernetes-namespace"], "capasg-system");
    Ok(())
}

#[tokio::test]
async fn credentials_end_as_fast_as_virtual_time_runs() -> Result<()> {
    let simulator = Simulator::new(1);
    simulator.set_any_role(true);
    let addr = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let server = Server::start_paced(simulator.clone(), addr, Pace::RealTime(10.0)).await?;
    let front = Front { simulator, server };
    let body = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2Fpools\
        &RoleSessionName=capasg";
    let session = front.aws("sts", body).await?.context("no reply")?;
    ensure!(session.status == 200, "{session:?}");
    assert_eq!(minutes_left(member(&session, "Expiration")?)?, 6);
    Ok(())
}
