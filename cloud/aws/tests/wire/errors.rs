//! What goes wrong, by class.

use std::collections::BTreeSet;

use anyhow::Result;
use capasg_cloud::{CloudError, ErrorClass, Write};

use crate::{
    fixtures::{GROUP, TEMPLATE},
    replay::{Replay, Reply, refused},
    secrets::{listen, logged},
};

fn set_desired() -> Write {
    Write::SetDesiredCapacity { group: GROUP.to_owned(), desired: 4 }
}

async fn failure(answer: Reply) -> Result<CloudError> {
    let replay = Replay::new([answer]);
    let error = refused(replay.cloud().write(&set_desired()).await)?;
    assert_eq!(replay.sent().len(), 1, "one method call is one AWS call");
    Ok(error)
}

#[tokio::test]
async fn answers_have_class_code_and_words() -> Result<()> {
    let error = failure(Reply::autoscaling_error(400, "Throttling", "Rate exceeded")).await?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Throttled, false));
    assert_eq!(error.to_string(), "SetDesiredCapacity: Throttling: Rate exceeded");

    let text = "AutoScalingGroup name not found - AutoScalingGroup 'x' not found";
    let error = failure(Reply::autoscaling_error(400, "ValidationError", text)).await?;
    assert_eq!((error.class, error.message.as_str()), (ErrorClass::NotFound, text));

    let text = "New SetDesiredCapacity value 9 is above max value 6 for the AutoScalingGroup.";
    let error = failure(Reply::autoscaling_error(400, "ValidationError", text)).await?;
    assert_eq!((error.class, error.message.as_str()), (ErrorClass::Invalid, text));

    let error = failure(Reply::autoscaling_error(500, "ResourceContention", "pending update")).await?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Conflict, false));
    Ok(())
}

#[tokio::test]
async fn ec2_errors_are_read_too() -> Result<()> {
    let replay = Replay::new([Reply::ec2_error(503, "RequestLimitExceeded", "Request limit exceeded.")]);
    let error = refused(replay.cloud().launch_template("x").await)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Throttled, false));
    assert_eq!(error.to_string(), "DescribeLaunchTemplates: RequestLimitExceeded: Request limit exceeded.");
    Ok(())
}

/// A fault of AWS's own may come after the effect.
#[tokio::test]
async fn faults_leave_the_outcome_open() -> Result<()> {
    let error = failure(Reply::autoscaling_error(500, "InternalFailure", "An internal error")).await?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, true));

    let html = "<html><body>502 Bad Gateway</body></html>";
    let error = failure(Reply::Answer(502, html.to_owned())).await?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, true));
    assert_eq!((error.code.as_str(), error.message.as_str()), ("Http502", "AWS answered with status 502"));
    Ok(())
}

#[tokio::test]
async fn a_broken_connection_leaves_the_outcome_open() -> Result<()> {
    let error = failure(Reply::Broken).await?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, true));
    assert_eq!(error.code, "Network");
    assert!(error.message.contains("connection reset by peer"), "{error}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn silence_ends_with_the_call_timeout() -> Result<()> {
    let started = tokio::time::Instant::now();
    let error = failure(Reply::Silence).await?;
    assert_eq!(started.elapsed().as_secs(), capasg_cloud_aws::CALL_TIMEOUT.as_secs());
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, true));
    assert_eq!(error.to_string(), "SetDesiredCapacity: Timeout: no answer within 20 s");
    Ok(())
}

#[tokio::test]
async fn an_unreadable_success_leaves_the_outcome_open() -> Result<()> {
    let write = Write::CreateLaunchTemplateVersion {
        id: TEMPLATE.to_owned(),
        data: Box::new(crate::fixtures::template_data("")),
        description: String::new(),
        client_token: "t".to_owned(),
    };
    for body in ["<<<", "<CreateLaunchTemplateVersionResponse/>"] {
        let replay = Replay::new([Reply::ok(body)]);
        let error = refused(replay.cloud().write(&write).await)?;
        assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, true), "{error}");
        assert_eq!(error.code, "UnreadableReply");
    }
    Ok(())
}

/// Conditions show the words, and must not change from one attempt to the next.
#[tokio::test]
async fn words_hold_nothing_that_differs_between_attempts() -> Result<()> {
    let refused = "You are not authorized to perform this operation. User: arn:aws:iam::123456789012:user/x is \
                   not authorized to perform: ec2:RunInstances. Encoded authorization failure message: \
                   abCD-12_xyz";
    listen();
    let error = failure(Reply::autoscaling_error(403, "UnauthorizedOperation", refused)).await?;
    assert_eq!(error.class, ErrorClass::Denied);
    // Only the log has the encoded details, which name the policy that denies the call.
    let log = logged();
    assert!(log.contains("encoded_message=\"abCD-12_xyz\"") && log.contains("INFO"), "{log}");
    assert_eq!(
        error.message,
        "You are not authorized to perform this operation. User: arn:aws:iam::123456789012:user/x is not \
         authorized to perform: ec2:RunInstances."
    );
    let inner =
        "Bad subnet (Service: AmazonEC2; Status Code: 400; Error Code: X; Request ID: 1-2-3; Proxy: null)";
    let error = failure(Reply::autoscaling_error(400, "ValidationError", inner)).await?;
    assert_eq!(
        error.message,
        "Bad subnet (Service: AmazonEC2; Status Code: 400; Error Code: X; Proxy: null)"
    );
    let plain = "The request identifier is not a request id";
    let error = failure(Reply::autoscaling_error(400, "ValidationError", plain)).await?;
    assert_eq!(error.message, plain);
    let alone = "Something is wrong (RequestId: 0aa-1b)";
    let error = failure(Reply::autoscaling_error(400, "ValidationError", alone)).await?;
    assert_eq!(error.message, "Something is wrong");
    assert!(!error.to_string().contains("req-1"));
    Ok(())
}

fn kept_version(version: i64, code: &str) -> String {
    format!(
        "<item><launchTemplateId>{TEMPLATE}</launchTemplateId><versionNumber>{version}</versionNumber>\
         <responseError><code>{code}</code><message>why {version}</message></responseError></item>"
    )
}

async fn delete_versions(kept: &[String]) -> capasg_cloud::Result<capasg_cloud::WriteReply> {
    let reply = format!(
        "<DeleteLaunchTemplateVersionsResponse><unsuccessfullyDeletedLaunchTemplateVersionSet>{}\
         </unsuccessfullyDeletedLaunchTemplateVersionSet></DeleteLaunchTemplateVersionsResponse>",
        kept.concat()
    );
    let versions = BTreeSet::from([1, 2, 3]);
    let write = Write::DeleteLaunchTemplateVersions { id: TEMPLATE.to_owned(), versions };
    Replay::new([Reply::ok(&reply)]).cloud().write(&write).await
}

#[tokio::test]
async fn versions_that_stay_are_an_error_that_names_them() -> Result<()> {
    delete_versions(&[]).await?;
    delete_versions(&[kept_version(1, "launchTemplateVersionDoesNotExist")]).await?;

    let kept = [
        kept_version(1, "launchTemplateVersionDoesNotExist"),
        kept_version(2, "unexpectedError"),
        kept_version(3, "aCodeOfTomorrow"),
    ];
    let error = refused(delete_versions(&kept).await)?;
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Invalid, "unexpectedError"));
    assert_eq!(
        error.message,
        "versions were not deleted: 2 (unexpectedError: why 2); 3 (aCodeOfTomorrow: why 3)"
    );
    let error = refused(delete_versions(&[kept_version(2, "unexpectedError")]).await)?;
    assert_eq!(error.class, ErrorClass::Transient);
    Ok(())
}

#[tokio::test]
async fn what_does_not_exist_is_none_where_the_port_says_so() -> Result<()> {
    let absent = Reply::ec2_error(400, "InvalidLaunchTemplateName.NotFoundException", "does not exist");
    assert_eq!(Replay::new([absent]).cloud().launch_template("x").await?, None);
    for code in ["InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"] {
        let absent = Reply::ec2_error(400, code, "The image id '[ami-1]' does not exist");
        assert_eq!(Replay::new([absent]).cloud().image("ami-1").await?, None);
    }
    assert_eq!(Replay::new([Reply::ok("<DescribeImagesResponse/>")]).cloud().image("ami-1").await?, None);
    let absent = Reply::Answer(400, r#"{"__type":"ParameterNotFound","message":"no"}"#.to_owned());
    assert_eq!(Replay::new([absent]).cloud().parameter("/x").await?, None);

    let malformed = Reply::ec2_error(400, "InvalidAMIID.Malformed", "Invalid id: \"x\"");
    let error = refused(Replay::new([malformed]).cloud().image("x").await)?;
    assert_eq!(error.class, ErrorClass::Invalid);
    let absent = Reply::ec2_error(400, "InvalidLaunchTemplateId.NotFound", "does not exist");
    let error = refused(Replay::new([absent]).cloud().launch_template_versions("lt-1", None).await)?;
    assert_eq!(error.class, ErrorClass::NotFound);
    Ok(())
}
