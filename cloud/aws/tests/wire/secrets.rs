//! Bootstrap data stays out of logs and errors, whatever the log filter.

use std::{
    cell::RefCell,
    io,
    sync::{Arc, Once},
};

use anyhow::{Context, Result, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use capasg_cloud::{AlwaysLeading, Gateway, Limits, NoObserver, SystemClock, Write};
use tracing::level_filters::LevelFilter;

use crate::{
    fixtures::{GROUP, TEMPLATE, every_write, template_data},
    replay::{Replay, Reply, credentials, refused},
};

const CANARY: &str = "canary-7d1f-bootstrap-token";

thread_local! {
    /// What the test on this thread logged: each test has a thread of its own, with a runtime that stays on it.
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to the log of the thread.
struct ThreadLog;

impl io::Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps everything from here on, down to trace. One subscriber serves all tests: those of single tests would
/// disable each other's call sites.
pub fn listen() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(|| ThreadLog)
            .init();
    });
    LOGGED.take();
}

/// What this thread logged since [`listen`].
pub fn logged() -> String {
    String::from_utf8_lossy(&LOGGED.take()).into_owned()
}

/// The canary plain, in base64 and in base64 as a form sends it.
fn forms() -> [String; 3] {
    let encoded = STANDARD.encode(CANARY);
    let form = encoded.replace('=', "%3D").replace('+', "%2B").replace('/', "%2F");
    [CANARY.to_owned(), encoded, form]
}

fn leaks(text: &str) -> bool {
    forms().iter().any(|form| text.contains(form.as_str()))
}

fn writes() -> [Write; 2] {
    let data = Box::new(template_data(CANARY));
    let (description, client_token) = ("d".to_owned(), "t".to_owned());
    [
        Write::CreateLaunchTemplate {
            name: GROUP.to_owned(),
            data: data.clone(),
            description: description.clone(),
            tags: std::collections::BTreeMap::new(),
            client_token: client_token.clone(),
        },
        Write::CreateLaunchTemplateVersion { id: TEMPLATE.to_owned(), data, description, client_token },
    ]
}

/// AWS repeats what it refuses.
fn refusal() -> Reply {
    let words = format!("Invalid value '{}' ({CANARY}) for userData", STANDARD.encode(CANARY));
    Reply::ec2_error(400, "InvalidParameterValue", &words)
}

fn versions() -> Reply {
    Reply::ok(&format!(
        "<DescribeLaunchTemplateVersionsResponse><launchTemplateVersionSet><item><versionNumber>1</versionNumber>\
         <launchTemplateData><userData>{}</userData></launchTemplateData></item>\
         </launchTemplateVersionSet></DescribeLaunchTemplateVersionsResponse>",
        STANDARD.encode(CANARY)
    ))
}

#[tokio::test]
async fn writes_and_reads_log_no_user_data() -> Result<()> {
    listen();
    for write in writes() {
        let replay = Replay::new([Reply::ec2_error(400, "InvalidUserData.Malformed", "Invalid user data")]);
        let error = replay.cloud().write(&write).await.expect_err("refused");
        assert!(leaks(&replay.only()?.body), "the user data is sent");
        assert!(!leaks(&format!("{error} {error:?} {write:?}")));
    }
    let cloud = Replay::new([versions()]).cloud();
    let page = cloud.launch_template_versions(TEMPLATE, None).await?;
    assert!(!leaks(&format!("{page:?}")));

    let text = logged();
    assert!(!leaks(&text), "{text}");
    assert!(text.contains("AWS call failed") && text.contains("request_id=\"req-1\""), "{text}");
    Ok(())
}

/// Shows that the log above would see a leak: the SDK alone writes such an answer to its trace log.
#[tokio::test]
async fn the_sdk_alone_would_log_user_data() -> Result<()> {
    listen();
    let client = aws_sdk_ec2::Client::new(&Replay::new([refusal()]).config(credentials()));
    let request = client.create_launch_template().launch_template_name("n");
    assert!(request.send().await.is_err());
    let text = logged();
    assert!(leaks(&text), "{text}");
    Ok(())
}

/// The gateway in front of these replies.
fn gateway(replies: impl IntoIterator<Item = Reply>) -> Gateway {
    let cloud = Replay::new(replies).cloud();
    let (guard, observer) = (Arc::new(AlwaysLeading), Arc::new(NoObserver));
    Gateway::new(cloud, guard, observer, Arc::new(SystemClock), Limits::default())
}

/// The log lines about mutations.
fn mutations() -> Vec<String> {
    logged().lines().filter(|line| line.contains("write call to AWS")).map(str::to_owned).collect()
}

#[tokio::test]
async fn each_mutation_is_one_log_line_without_what_is_sent() -> Result<()> {
    listen();
    for write in every_write().into_iter().chain(writes()) {
        let error = Reply::autoscaling_error(400, "ValidationError", CANARY);
        let error = refused(gateway([error]).write(&write).await)?;
        assert_eq!(error.request_id, None, "only the log has it");
        let lines = mutations();
        let [line] = &lines[..] else { bail!("{}: {lines:?}", write.api()) };
        let subject = write.group().or(write.launch_template()).context("a subject")?;
        for part in ["INFO", write.api(), subject, "outcome=", "request_id=\"req-1\""] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
        for instance in write.instances() {
            assert!(line.contains(instance), "{line}");
        }
        assert!(!leaks(line) && !line.contains("cloud-config"), "{line}");
    }
    Ok(())
}

#[tokio::test]
async fn the_log_line_of_a_mutation_says_how_it_ended() -> Result<()> {
    listen();
    let write = Write::SetDesiredCapacity { group: GROUP.to_owned(), desired: 4 };
    gateway([Reply::ok("<SetDesiredCapacityResponse/>")]).write(&write).await?;
    refused(gateway([Reply::autoscaling_error(400, "Throttling", "Rate exceeded")]).write(&write).await)?;
    refused(gateway([Reply::Broken]).write(&write).await)?;
    let given_up = gateway([Reply::Silence]);
    tokio::select! {
        biased;
        _ = given_up.write(&write) => bail!("there is no answer"),
        () = tokio::task::yield_now() => {}
    }
    let lines = mutations();
    let expected = [
        "outcome=\"Success\"",
        "outcome=\"Throttled\" code=\"Throttling\"",
        "outcome=\"NoAnswer\"",
        "outcome=\"Cancelled\"",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, outcome) in lines.iter().zip(expected) {
        assert!(line.contains("desired_capacity=4 ") && line.contains(outcome), "{outcome} is not in {line}");
    }
    assert!(lines[0].contains("request_id=\"req-1\""), "{}", lines[0]);
    Ok(())
}

#[tokio::test]
async fn words_that_repeat_user_data_are_masked() -> Result<()> {
    let encoded = STANDARD.encode(CANARY);
    let words = format!("Invalid value '{encoded}' ({CANARY}) for userData");
    for write in writes() {
        let error = refused(Replay::new([refusal()]).cloud().write(&write).await)?;
        assert_eq!(error.message, "Invalid value '[user data]' ([user data]) for userData");

        let operation = write.api();
        let warned = format!(
            "<{operation}Response><launchTemplate><launchTemplateId>{TEMPLATE}</launchTemplateId></launchTemplate>\
             <launchTemplateVersion><versionNumber>2</versionNumber></launchTemplateVersion><warning><errorSet><item>\
             <code>InvalidUserData</code><message>{words}</message></item></errorSet></warning></{operation}Response>"
        );
        listen();
        let cloud = Replay::new([Reply::ok(&warned)]).cloud();
        cloud.write(&write).await.context(operation)?;
        let text = logged();
        assert!(text.contains("WARN") && text.contains("code=\"InvalidUserData\""), "{text}");
        assert!(text.contains("[user data]") && !leaks(&text), "{text}");
    }
    Ok(())
}
