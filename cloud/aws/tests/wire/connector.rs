//! The connector: who calls, where to, and how often; and what it takes from the environment.

use std::{
    env,
    net::Ipv4Addr,
    process::{Command, Output},
};

use anyhow::{Result, ensure};
use capasg_cloud::Write;
use capasg_cloud_aws::AwsConnector;
use capasg_fake_aws::{LogFilter, Simulator, http::Server};

use crate::replay::{Replay, Reply, credentials, refused};

#[tokio::test]
async fn calls_go_to_the_region_under_our_name() -> Result<()> {
    let replay = Replay::new([Reply::ok("<DescribeLaunchTemplatesResponse/>")]);
    let connector = AwsConnector::new(replay.config(credentials()));
    connector.connect("ap-south-1").launch_template("x").await?;
    let sent = replay.only()?;
    assert_eq!(sent.service, "ec2");
    let app = format!("app/capasg-{}", env!("CARGO_PKG_VERSION"));
    assert!(sent.user_agent.contains(&app), "{}", sent.user_agent);
    Ok(())
}

/// Of the standard Regions, of `GovCloud` and of China.
#[tokio::test]
async fn each_partition_has_its_own_endpoints() -> Result<()> {
    for (region, suffix) in [
        ("eu-west-1", "amazonaws.com"),
        ("us-gov-west-1", "amazonaws.com"),
        ("cn-north-1", "amazonaws.com.cn"),
    ] {
        let replay = Replay::new([Reply::autoscaling_error(500, "InternalFailure", "")]);
        let connector = AwsConnector::new(replay.config(credentials()));
        let (cloud, queues) = (connector.connect(region), connector.queues(region));
        refused(cloud.account().await)?;
        refused(cloud.groups(&["x".to_owned()], None).await)?;
        refused(cloud.launch_template("x").await)?;
        refused(cloud.parameter("x").await)?;
        refused(queues.url("x").await)?;
        let hosts: Vec<String> = replay.sent().into_iter().map(|sent| sent.host).collect();
        let services = ["sts", "autoscaling", "ec2", "ssm", "sqs"];
        assert_eq!(hosts, services.map(|service| format!("{service}.{region}.{suffix}")), "{region}");
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_repeated() -> Result<()> {
    for reply in [
        Reply::autoscaling_error(400, "Throttling", "Rate exceeded"),
        Reply::autoscaling_error(500, "InternalFailure", ""),
        Reply::Broken,
    ] {
        let replay = Replay::new([reply]);
        let write = Write::SetDesiredCapacity { group: "g".to_owned(), desired: 1 };
        refused(replay.cloud().write(&write).await)?;
        assert_eq!(replay.sent().len(), 1);
    }
    Ok(())
}

#[test]
fn the_connector_shows_no_credentials() {
    let connector = AwsConnector::new(Replay::default().config(credentials()));
    assert!(!format!("{connector:?}").contains("not-a-secret"));
}

/// Runs as a process of its own, since the environment is read there.
#[tokio::test]
#[ignore = "started by the tests below with an environment of their own"]
async fn child() -> Result<()> {
    let cloud = AwsConnector::load().await.connect("eu-west-3");
    match cloud.account().await {
        Ok(account) => println!("account {account}"),
        Err(error) => println!("{} {error}", error.class.as_str()),
    }
    Ok(())
}

fn run_child(environment: &[(&str, &str)]) -> Result<String> {
    let Output { status, stdout, stderr } = Command::new(env::current_exe()?)
        .args(["connector::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env_clear()
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(environment.iter().copied())
        .output()?;
    ensure!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    Ok(String::from_utf8(stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_and_credentials_come_from_the_environment() -> Result<()> {
    let simulator = Simulator::default();
    let server = Server::start(simulator.clone(), (Ipv4Addr::LOCALHOST, 0).into()).await?;
    let said = run_child(&[
        ("AWS_ENDPOINT_URL", &server.endpoint()),
        ("AWS_ACCESS_KEY_ID", "AKIA999988887777TEST"),
        ("AWS_SECRET_ACCESS_KEY", "not-a-secret"),
    ])?;
    assert!(said.contains("account 999988887777"), "{said}");
    let calls = simulator.counts(&LogFilter::region("eu-west-3").action("GetCallerIdentity")).calls;
    assert_eq!(calls, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_can_hold_the_credentials() -> Result<()> {
    let simulator = Simulator::default();
    let server = Server::start(simulator, (Ipv4Addr::LOCALHOST, 0).into()).await?;
    let file = tempfile::NamedTempFile::new()?;
    let profile = "[ops]\naws_access_key_id = AKIA555566667777TEST\naws_secret_access_key = not-a-secret\n";
    std::fs::write(file.path(), profile)?;
    let said = run_child(&[
        ("AWS_ENDPOINT_URL_STS", &server.endpoint()),
        ("AWS_SHARED_CREDENTIALS_FILE", &file.path().to_string_lossy()),
        ("AWS_PROFILE", "ops"),
    ])?;
    assert!(said.contains("account 555566667777"), "{said}");
    Ok(())
}

#[test]
fn an_environment_without_credentials_is_denied_with_the_reason() -> Result<()> {
    let said = run_child(&[])?;
    let expected =
        "AccessDenied GetCallerIdentity: Credentials: no AWS credentials were found; tried, in this order:";
    assert!(said.contains(expected), "{said}");
    Ok(())
}
