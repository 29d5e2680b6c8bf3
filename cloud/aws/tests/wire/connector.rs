//! The connector: who calls, where to, and how often.

use anyhow::Result;
use capasg_cloud::Write;
use capasg_cloud_aws::AwsConnector;

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
