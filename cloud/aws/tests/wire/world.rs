//! A simulated region behind its HTTP front, which refuses parameters that it does not know.

use std::{net::Ipv4Addr, sync::Arc};

use anyhow::{Context, Result, ensure};
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use capasg_cloud::{Cloud, CreateGroup, Group, LaunchTemplateData, Queue, TemplateRef, Write, Written};
use capasg_cloud_aws::AwsConnector;
use capasg_fake_aws::{
    Settings, Simulator,
    http::{Pace, Server},
};
use chrono::Duration;

use crate::{
    fixtures::{GROUP, create_group, map, set, template_data},
    replay::REGION,
};

/// The account of the credentials.
pub const ACCOUNT: &str = "111122223333";

/// A simulated region behind a socket, and the adapter before it. Time moves only when told to.
pub struct World {
    pub simulator: Simulator,
    pub cloud: Arc<dyn Cloud>,
    pub queues: Arc<dyn Queue>,
    _server: Server,
}

impl World {
    /// A fresh world with these settings.
    pub async fn start(settings: Settings) -> Result<Self> {
        let simulator = Simulator::with_settings(7, settings);
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let server = Server::start_paced(simulator.clone(), address, Pace::Manual).await?;
        let credentials = Credentials::new(format!("AKIA{ACCOUNT}TEST"), "not-a-secret", None, None, "test");
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(server.endpoint())
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        let connector = AwsConnector::new(config);
        let (cloud, queues) = (connector.connect(REGION), connector.queues(REGION));
        Ok(Self { simulator, cloud, queues, _server: server })
    }

    /// Carries out a write that answers with nothing.
    pub async fn done(&self, write: Write) -> Result<()> {
        let written = self.cloud.write(&write).await.with_context(|| write.api())?;
        ensure!(written.written == Written::Done, "{written:?}");
        Ok(())
    }

    /// The group as it is described.
    pub async fn group(&self) -> Result<Group> {
        let mut page = self.cloud.groups(&[GROUP.to_owned()], None).await?;
        ensure!(page.next_token.is_none() && page.items.len() == 1, "{page:?}");
        page.items.pop().context("one group")
    }

    /// Lets virtual time pass.
    pub fn pass(&self, seconds: i64) {
        self.simulator.advance(Duration::seconds(seconds));
    }
}

/// Data that the simulated region accepts.
pub fn data() -> LaunchTemplateData {
    LaunchTemplateData {
        image_id: "ami-0a1b2c3d".to_owned(),
        iam_instance_profile: Some("nodes".to_owned()),
        security_group_ids: vec!["sg-0b1c2d3e".to_owned()],
        ..template_data("#cloud-config\n")
    }
}

/// A launch template of that name.
pub fn create_template(name: &str) -> Write {
    Write::CreateLaunchTemplate {
        name: name.to_owned(),
        data: Box::new(data()),
        description: "v1 content=aa rollout=bb".to_owned(),
        tags: map(&[("capasg-owner", "0f2c")]),
        client_token: format!("{name}-1"),
    }
}

/// Makes a launch template and tells its id.
pub async fn template(world: &World, name: &str) -> Result<String> {
    match world.cloud.write(&create_template(name)).await?.written {
        Written::Version { id, number: 1, .. } => Ok(id),
        other => anyhow::bail!("{other:?}"),
    }
}

/// A group with every member over a version of a template.
pub fn group_of(template_id: &str, version: i64) -> CreateGroup {
    let mut create = create_group();
    create.settings.subnets = set(&["subnet-0a1b2c3d", "subnet-0b1c2d3e"]);
    create.settings.launch.template = TemplateRef { id: template_id.to_owned(), version: Some(version) };
    if let Some(mixed) = &mut create.settings.launch.mixed {
        mixed.instance_types = vec!["m6i.large".to_owned(), "m5.large".to_owned()];
    }
    create
}
