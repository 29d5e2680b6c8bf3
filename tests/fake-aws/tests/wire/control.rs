//! The control API under `/_sim/`.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result, ensure};
use capasg_fake_aws::{
    Simulator,
    http::{Pace, Server},
    timestamp,
};
use serde_json::{Value, json};

use crate::client::{Front, exchange};

#[tokio::test]
async fn the_state_shows_what_a_kubelet_needs() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    let state = front.get("/state?region=eu-west-1").await?;
    let scope = &state[0];
    assert_eq!(scope["account"], "123456789012");
    assert_eq!(scope["groups"][0]["name"], "pool");
    assert_eq!(scope["templates"][0]["versions"]["1"], "");
    let instance = &scope["instances"][0];
    assert_eq!(instance["state"], "running");
    assert_eq!(instance["group"], "pool");
    assert_eq!(instance["lifecycleState"], "InService");
    assert_eq!(instance["userData"], "I2Nsb3VkLWNvbmZpZw==");
    assert!(instance["zone"].as_str().is_some_and(|zone| zone.starts_with("eu-west-1")));
    assert_eq!(front.get("/state?region=us-east-1").await?, json!([]));
    Ok(())
}

#[tokio::test]
async fn leftovers_are_listed_until_none_is_left() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    assert_eq!(
        front.get("/leftovers").await?.as_array().map(Vec::len),
        Some(4),
        "a group, a template, two machines"
    );
    front
        .aws("autoscaling", "Action=DeleteAutoScalingGroup&AutoScalingGroupName=pool&ForceDelete=true")
        .await?;
    front.aws("ec2", "Action=DeleteLaunchTemplate&LaunchTemplateName=nodes").await?;
    front.post("/advance", json!({"millis": 60_000})).await?;
    assert_eq!(front.get("/leftovers?region=eu-west-1").await?, json!([]));
    Ok(())
}

#[tokio::test]
async fn instance_faults_find_their_instance_in_any_region() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    let id = front.get("/state").await?[0]["instances"][0]["id"].as_str().context("no id")?.to_owned();
    for what in ["impair", "repair", "interrupt", "kill"] {
        assert_eq!(front.post(&format!("/instances/{id}/{what}"), Value::Null).await?, json!({"hit": true}));
    }
    let instances = front.get("/state").await?[0]["instances"].clone();
    let state = instances
        .as_array()
        .context("no list")?
        .iter()
        .find(|one| one["id"] == *id)
        .context("gone")?["state"]
        .clone();
    assert_eq!(state, "shutting-down");
    assert_eq!(front.control("POST", "/instances/i-0/kill", &Value::Null).await?.status, 404);
    assert_eq!(front.control("POST", &format!("/instances/{id}/paint"), &Value::Null).await?.status, 400);
    Ok(())
}

#[tokio::test]
async fn faults_settings_and_capacity_can_be_set() -> Result<()> {
    let front = Front::start().await?;
    let effect = json!({"error": {"status": 400, "code": "Throttling", "message": "Rate exceeded"}});
    front.post("/faults", json!({"operation": "GetCallerIdentity", "times": 1, "effect": effect})).await?;
    assert_eq!(front.get("/faults").await?.as_array().map(Vec::len), Some(1));
    let reply = front.aws("sts", "Action=GetCallerIdentity").await?.context("no reply")?;
    assert!(reply.body.contains("<Code>Throttling</Code>"), "{}", reply.body);
    front.post("/faults", json!({"operation": "*", "effect": "loseReply"})).await?;
    assert_eq!(front.control("DELETE", "/faults", &Value::Null).await?.status, 200);
    assert_eq!(front.get("/faults").await?, json!([]));
    let wrong = front.control("POST", "/faults", &json!({"operation": "*", "colour": "blue"})).await?;
    assert_eq!(wrong.status, 422);

    let patch = front.control("PATCH", "/settings?region=eu-west-1", &json!({"launchMillis": 1})).await?;
    assert_eq!(patch.json()?["launchMillis"], 1);
    assert_eq!(front.get("/settings?region=eu-west-1").await?["launchMillis"], 1);
    assert_eq!(front.get("/settings").await?["launchMillis"], 15_000, "other regions keep theirs");
    assert_eq!(front.control("PATCH", "/settings", &json!({"colour": 1})).await?.status, 400);

    front.post("/capacity?region=eu-west-1", json!({"instanceType": "*", "zone": "*", "limit": 1})).await?;
    front.pool().await?;
    let state = front.get("/state").await?;
    assert_eq!(state[0]["instances"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        front
            .control("POST", "/capacity", &json!({"instanceType": "*", "zone": "*", "limit": 1}))
            .await?
            .status,
        400
    );
    Ok(())
}

#[tokio::test]
async fn resources_can_be_added() -> Result<()> {
    let front = Front::start().await?;
    let subnet = json!({"id": "subnet-0e0e0e0e", "vpc": "vpc-0a1b2c3d", "zone": "eu-west-1a", "cidr": "10.0.64.0/20",
        "addresses": 10, "tags": {"mine": "1"}});
    for (kind, body) in [
        ("subnets", subnet),
        ("security-groups", json!({"id": "sg-0e0e0e0e", "vpc": "vpc-0a1b2c3d", "name": "mine"})),
        (
            "images",
            json!({"id": "ami-0e0e0e0e", "name": "mine", "architecture": "arm64", "rootDevice": "/dev/xvda"}),
        ),
        (
            "instance-types",
            json!({"name": "x9.large", "vcpus": 2, "memoryMib": 8192, "architecture": "x86_64"}),
        ),
        ("instance-profiles", json!({"name": "mine"})),
        ("key-pairs", json!({"name": "mine"})),
        ("parameters", json!({"name": "/mine", "value": "ami-0e0e0e0e"})),
    ] {
        front.post(&format!("/resources/{kind}?region=eu-west-1"), body).await?;
    }
    let reply =
        front.aws("ec2", "Action=DescribeSubnets&SubnetId.1=subnet-0e0e0e0e").await?.context("no reply")?;
    assert!(reply.body.contains("<key>mine</key>"), "{}", reply.body);
    let wrong = front.control("POST", "/resources/clouds?region=eu-west-1", &json!({})).await?;
    assert_eq!(wrong.status, 400);
    assert_eq!(
        front.control("POST", "/resources/images", &json!({})).await?.status,
        400,
        "a region is needed"
    );
    Ok(())
}

#[tokio::test]
async fn the_log_is_read_from_a_sequence_number_on() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    let counts = front.get("/counts?region=eu-west-1").await?;
    assert_eq!(counts["mutations"], 2);
    let since = counts["lastSequence"].as_u64().context("no sequence")?;
    front.aws("autoscaling", "Action=DescribeAutoScalingGroups").await?;
    let log = front.get(&format!("/log?since={since}")).await?;
    assert_eq!(log.as_array().map(Vec::len), Some(1));
    assert_eq!(log[0]["action"], "DescribeAutoScalingGroups");
    assert_eq!(log[0]["mutation"], false);
    assert_eq!(log[0]["outcome"], "ok");
    assert_eq!(front.get("/log?group=pool&mutation=true").await?.as_array().map(Vec::len), Some(1));
    front.control("DELETE", "/log", &Value::Null).await?;
    assert_eq!(front.get("/log").await?, json!([]));
    Ok(())
}

#[tokio::test]
async fn a_region_can_be_reset() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    front.post("/reset?region=us-east-1", Value::Null).await?;
    assert_ne!(front.get("/leftovers").await?, json!([]));
    front.post("/reset?region=eu-west-1", Value::Null).await?;
    assert_eq!(front.get("/leftovers").await?, json!([]));
    Ok(())
}

#[tokio::test]
async fn virtual_time_follows_the_wall_clock_until_it_is_stopped() -> Result<()> {
    let simulator = Simulator::new(1);
    // A day a second: any wall-clock time at all moves virtual time by minutes.
    let server =
        Server::start_paced(simulator.clone(), (Ipv4Addr::LOCALHOST, 0).into(), Pace::RealTime(86_400.0))
            .await?;
    let begin = timestamp(simulator.now());
    let get = || async {
        let reply = exchange(server.addr(), "GET", "/_sim/time", "", "").await?.context("no reply")?;
        Ok::<_, anyhow::Error>(reply.json()?["now"].as_str().context("no time")?.to_owned())
    };
    let first = get().await?;
    assert!(first > begin);
    exchange(server.addr(), "POST", "/_sim/stop", "", "").await?;
    let stopped = get().await?;
    assert_eq!(get().await?, stopped);
    exchange(server.addr(), "POST", "/_sim/start", "", "").await?;
    assert!(get().await? > stopped);
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_shut_down_stops_listening() -> Result<()> {
    let front = Front::start().await?;
    let addr = front.server.addr();
    front.server.shutdown().await;
    ensure!(tokio::net::TcpStream::connect(addr).await.is_err(), "still listening");
    Ok(())
}
