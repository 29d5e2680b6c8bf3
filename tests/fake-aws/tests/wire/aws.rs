//! AWS requests and replies as they are on the wire.

use anyhow::{Context as _, Result};
use capasg_fake_aws::{Effect, Fault, LogFilter};

use crate::client::{Front, exchange};

#[tokio::test]
async fn a_group_is_described_in_auto_scalings_xml() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    let body = "Action=DescribeAutoScalingGroups&Version=2011-01-01&AutoScalingGroupNames.member.1=pool";
    let reply = front.aws("autoscaling", body).await?.context("no reply")?;
    assert_eq!(reply.status, 200);
    assert!(reply.head.contains("content-type: text/xml"), "{}", reply.head);
    assert!(reply.head.contains("x-amzn-requestid: "), "{}", reply.head);
    let start = "<DescribeAutoScalingGroupsResponse xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\">\
                 <DescribeAutoScalingGroupsResult><AutoScalingGroups><member>";
    assert!(reply.body.contains(start), "{}", reply.body);
    for part in [
        "<LifecycleState>InService</LifecycleState>",
        "<VPCZoneIdentifier>subnet-0a1b2c3d,subnet-0b1c2d3e</VPCZoneIdentifier>",
        "<Key>a</Key>",
        "<Value>b c</Value>",
        "<ProtectedFromScaleIn>false</ProtectedFromScaleIn>",
    ] {
        assert!(reply.body.contains(part), "{part} in {}", reply.body);
    }
    Ok(())
}

#[tokio::test]
async fn an_instance_is_described_in_ec2s_xml() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    let body = "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=instance-state-name&Filter.1.Value.1=running";
    let reply = front.aws("ec2", body).await?.context("no reply")?;
    for part in [
        "<reservationSet><item>",
        "<instancesSet><item>",
        "<instanceState><code>16</code><name>running</name>",
        "<tagSet><item><key>",
    ] {
        assert!(reply.body.contains(part), "{part} in {}", reply.body);
    }
    Ok(())
}

#[tokio::test]
async fn an_operation_without_output_answers_with_its_metadata() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    let body = "Action=SetDesiredCapacity&Version=2011-01-01&AutoScalingGroupName=pool&DesiredCapacity=3";
    let reply = front.aws("autoscaling", body).await?.context("no reply")?;
    assert!(reply.body.contains("<SetDesiredCapacityResponse xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\"><ResponseMetadata><RequestId>"), "{}", reply.body);
    let body = "Action=PutLifecycleHook&AutoScalingGroupName=pool&LifecycleHookName=h&LifecycleTransition=autoscaling%3AEC2_INSTANCE_TERMINATING";
    let reply = front.aws("autoscaling", body).await?.context("no reply")?;
    assert!(reply.body.contains("<PutLifecycleHookResult></PutLifecycleHookResult>"), "{}", reply.body);
    Ok(())
}

#[tokio::test]
async fn errors_have_the_shape_of_their_service() -> Result<()> {
    let front = Front::start().await?;
    let body = "Action=SetDesiredCapacity&AutoScalingGroupName=none&DesiredCapacity=3";
    let reply = front.aws("autoscaling", body).await?.context("no reply")?;
    assert_eq!(reply.status, 400);
    assert!(reply.body.starts_with("<ErrorResponse xmlns="), "{}", reply.body);
    assert!(
        reply.body.contains(
            "<Error><Type>Sender</Type><Code>ValidationError</Code><Message>AutoScalingGroup name not found"
        ),
        "{}",
        reply.body
    );
    let reply =
        front.aws("ec2", "Action=DeleteLaunchTemplate&LaunchTemplateName=none").await?.context("no reply")?;
    assert!(
        reply
            .body
            .contains("<Response><Errors><Error><Code>InvalidLaunchTemplateName.NotFoundException</Code>"),
        "{}",
        reply.body
    );
    front.simulator.add_fault(Fault::error(
        "DescribeInstances",
        503,
        "RequestLimitExceeded",
        "Request limit exceeded.",
    ));
    let reply = front.aws("ec2", "Action=DescribeInstances").await?.context("no reply")?;
    assert_eq!(reply.status, 503);
    let reply = front.aws("autoscaling", "Action=DoWhatIMean").await?.context("no reply")?;
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("<Code>InvalidAction</Code>"), "{}", reply.body);
    let reply = front.aws("autoscaling", "Action=SetDesiredCapacity&Wish=3").await?.context("no reply")?;
    assert!(reply.body.contains("<Code>UnknownParameter</Code>"), "{}", reply.body);
    Ok(())
}

#[tokio::test]
async fn ssm_parameters_are_read_as_json() -> Result<()> {
    let front = Front::start().await?;
    let get = |name: &str| format!("{{\"Name\": \"{name}\", \"WithDecryption\": true}}");
    let target = "x-amz-target: AmazonSSM.GetParameter\r\n";
    let reply = front.signed("A", "ssm", target, &get("/images/node/v1.36.3")).await?.context("no reply")?;
    let parameter = &reply.json()?["Parameter"];
    assert_eq!(parameter["Value"], "ami-0a1b2c3d");
    assert_eq!(parameter["Version"], 1);
    let reply = front.signed("A", "ssm", target, &get("/none")).await?.context("no reply")?;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()?["__type"], "ParameterNotFound");
    let reply = front.signed("A", "ssm", target, "nonsense").await?.context("no reply")?;
    assert_eq!(reply.json()?["__type"], "SerializationException");
    Ok(())
}

#[tokio::test]
async fn the_access_key_names_the_account() -> Result<()> {
    let front = Front::start().await?;
    let body = "Action=GetCallerIdentity&Version=2011-06-15";
    let reply = front.signed("AKIA999988887777TEST", "sts", "", body).await?.context("no reply")?;
    assert!(
        reply.body.contains("<GetCallerIdentityResult><Account>999988887777</Account>"),
        "{}",
        reply.body
    );
    Ok(())
}

#[tokio::test]
async fn a_request_without_a_credential_scope_is_rejected() -> Result<()> {
    let front = Front::start().await?;
    let reply = exchange(front.server.addr(), "POST", "/", "", "Action=GetCallerIdentity")
        .await?
        .context("no reply")?;
    assert_eq!(reply.status, 403);
    let reply = front.aws("s3", "Action=ListBuckets").await?.context("no reply")?;
    assert_eq!(reply.status, 403, "a service that is not simulated");
    Ok(())
}

#[tokio::test]
async fn a_lost_reply_is_a_closed_connection() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    front.simulator.add_fault(Fault::new("SetDesiredCapacity", Effect::LoseReply));
    let body = "Action=SetDesiredCapacity&AutoScalingGroupName=pool&DesiredCapacity=4";
    assert!(front.aws("autoscaling", body).await?.is_none());
    assert_eq!(front.simulator.dump(None)[0].groups[0].desired, 4);
    assert_eq!(
        front.aws("autoscaling", body).await?.context("no reply")?.status,
        200,
        "the next call is well"
    );
    Ok(())
}

#[tokio::test]
async fn a_delayed_call_is_answered_late() -> Result<()> {
    let front = Front::start().await?;
    let mut fault = Fault::new("GetCallerIdentity", Effect::None);
    fault.delay_millis = 50;
    front.simulator.add_fault(fault);
    let begin = std::time::Instant::now();
    let reply = front.aws("sts", "Action=GetCallerIdentity").await?.context("no reply")?;
    assert_eq!(reply.status, 200);
    assert!(begin.elapsed().as_millis() >= 50, "the delay is a lower bound");
    Ok(())
}

#[tokio::test]
async fn calls_over_http_are_logged_with_both_clocks() -> Result<()> {
    let front = Front::start().await?;
    front.pool().await?;
    let log = front.simulator.log(&LogFilter::region("eu-west-1").action("CreateLaunchTemplate"));
    assert!(log[0].wall_time.is_some());
    assert_eq!(log[0].params["LaunchTemplateData"]["UserData"], "<20 characters>");
    Ok(())
}
