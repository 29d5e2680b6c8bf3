//! Credentials of identities: roles, chains, web identities and access keys, which are kept, replaced, and reported in words.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_smithy_async::{
    rt::sleep::{SharedAsyncSleep, TokioSleep},
    time::{SharedTimeSource, TimeSource},
};
use capasg_cloud::{Cloud, CloudError, CredentialSource, ErrorClass, Identity, Role, SecretText};
use capasg_cloud_aws::AwsConnector;
use capasg_fake_aws::{LogFilter, Role as DeclaredRole, Simulator, http::Server};

const REGION: &str = "eu-west-1";
const OTHER: &str = "999988887777";

/// The time of the clients, which a test moves.
#[derive(Debug, Clone, Default)]
struct Shifted(Arc<AtomicU64>);

impl Shifted {
    fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_secs(), Ordering::SeqCst);
    }
}

impl TimeSource for Shifted {
    fn now(&self) -> SystemTime {
        SystemTime::now() + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

struct Bench {
    simulator: Simulator,
    connector: AwsConnector,
    time: Shifted,
    _server: Server,
}

impl Bench {
    async fn new() -> Result<Self> {
        let simulator = Simulator::default();
        let server = Server::start(simulator.clone(), (Ipv4Addr::LOCALHOST, 0).into()).await?;
        let time = Shifted::default();
        let own = Credentials::new("AKIA123456789012TEST", "not-a-secret", None, None, "test");
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(REGION))
            .endpoint_url(server.endpoint())
            .credentials_provider(SharedCredentialsProvider::new(own))
            .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
            .time_source(SharedTimeSource::new(time.clone()))
            .build();
        Ok(Self { simulator, connector: AwsConnector::new(config), time, _server: server })
    }

    fn declare(&self, name: &str, account: &str, trusts: &str, external_id: Option<&str>) -> String {
        let arn = format!("arn:aws:iam::{account}:role/{name}");
        self.simulator.put_role(DeclaredRole {
            arn: arn.clone(),
            trusts: vec![trusts.to_owned()],
            external_id: external_id.map(str::to_owned),
            web_identity: None,
            trust_policy: None,
            max_session_seconds: 3600,
        });
        arn
    }

    fn cloud(&self, source: CredentialSource) -> Arc<dyn Cloud> {
        let identity = Identity { name: "ASGIdentity/a".to_owned(), source, event_queue: None };
        self.connector.with(&identity, REGION).connect(REGION)
    }

    fn asked(&self) -> usize {
        self.simulator.counts(&LogFilter::region(REGION).action("AssumeRole")).calls
    }
}

fn role(arn: &str, external_id: Option<&str>) -> Role {
    Role {
        arn: arn.to_owned(),
        session_name: "capasg-a".to_owned(),
        external_id: external_id.map(str::to_owned),
        duration: Some(Duration::from_mins(15)),
        tags: [("team".to_owned(), "blue".to_owned())].into(),
        policy: None,
        policy_arns: Vec::new(),
    }
}

fn assumed(arn: &str, external_id: Option<&str>) -> CredentialSource {
    CredentialSource::Role { role: role(arn, external_id), from: Box::new(CredentialSource::Process) }
}

async fn denied(cloud: &Arc<dyn Cloud>) -> Result<CloudError> {
    let error = cloud.account().await.err().context("it is accepted")?;
    ensure!(error.class == ErrorClass::Denied && !error.outcome_unknown, "{error:?}");
    Ok(error)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_assumed_once_and_again_before_its_session_ends() -> Result<()> {
    let bench = Bench::new().await?;
    let arn = bench.declare("pools", OTHER, "123456789012", Some("tenant-a"));
    let cloud = bench.cloud(assumed(&arn, Some("tenant-a")));
    for _ in 0..3 {
        ensure!(cloud.account().await? == OTHER);
    }
    ensure!(bench.asked() == 1, "{} sessions", bench.asked());
    let [session] = &bench.simulator.sessions()[..] else { anyhow::bail!("one session") };
    ensure!(
        format!("{session:?}").contains("capasg-a") && format!("{session:?}").contains("blue"),
        "{session:?}"
    );
    bench.time.pass(Duration::from_mins(11));
    ensure!(cloud.account().await? == OTHER);
    ensure!(bench.asked() == 2, "it is replaced 5 minutes before it ends");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sts_is_asked_once_for_many_calls_that_it_denies() -> Result<()> {
    let bench = Bench::new().await?;
    let arn = bench.declare("pools", OTHER, "123456789012", Some("tenant-a"));
    let cloud = bench.cloud(assumed(&arn, Some("tenant-b")));
    let error = denied(&cloud).await?;
    ensure!(error.message.contains("AssumeRole: AccessDenied"), "{}", error.message);
    for _ in 0..20 {
        denied(&cloud).await?;
    }
    ensure!(bench.asked() == 1, "{} calls", bench.asked());
    bench.declare("pools", OTHER, "123456789012", Some("tenant-b"));
    bench.time.pass(Duration::from_secs(20));
    ensure!(cloud.account().await? == OTHER, "it recovers without a restart");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_aws_rejects_are_replaced_after_a_minute() -> Result<()> {
    for revoked in [true, false] {
        let bench = Bench::new().await?;
        let arn = bench.declare("pools", OTHER, "*", None);
        let cloud = bench.cloud(assumed(&arn, None));
        ensure!(cloud.account().await? == OTHER);
        let _ = if revoked {
            bench.simulator.revoke_sessions(&arn)
        } else {
            bench.simulator.expire_sessions(&arn)
        };
        let groups = cloud.groups(&["a".to_owned()], None).await;
        let error = groups.err().context("it is accepted")?;
        ensure!(error.class == ErrorClass::Denied, "{error}");
        cloud.reject_credentials();
        let _ = cloud.groups(&["a".to_owned()], None).await;
        ensure!(bench.asked() == 1, "not at once: a permission may be missing");
        bench.time.pass(Duration::from_mins(1));
        cloud.groups(&["a".to_owned()], None).await?;
        ensure!(bench.asked() == 2);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_is_assumed_one_role_with_the_other() -> Result<()> {
    let bench = Bench::new().await?;
    let hub = bench.declare("hub", "111122223333", "123456789012", None);
    let spoke = bench.declare("spoke", OTHER, &hub, None);
    let chained = CredentialSource::Role { role: role(&spoke, None), from: Box::new(assumed(&hub, None)) };
    ensure!(bench.cloud(chained).account().await? == OTHER);
    denied(&bench.cloud(assumed(&spoke, None))).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_key_is_used_and_its_rejection_reported() -> Result<()> {
    let bench = Bench::new().await?;
    let keys = |id: &str| CredentialSource::Keys {
        access_key_id: id.to_owned(),
        secret_access_key: SecretText::new("not-a-secret".to_owned()),
        session_token: None,
    };
    let cloud = bench.cloud(keys("AKIA999988887777KEY1"));
    ensure!(cloud.account().await? == OTHER);
    bench.simulator.remove_access_key("AKIA999988887777KEY1");
    denied(&cloud).await?;
    ensure!(bench.cloud(keys("AKIA999988887777KEY2")).account().await? == OTHER);
    ensure!(bench.asked() == 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_without_a_token_says_so() -> Result<()> {
    let bench = Bench::new().await?;
    let arn = bench.declare("web", OTHER, "*", None);
    let error = denied(&bench.cloud(CredentialSource::WebIdentity(role(&arn, None)))).await?;
    ensure!(error.message.contains("AWS_WEB_IDENTITY_TOKEN_FILE is not set"), "{}", error.message);
    Ok(())
}
