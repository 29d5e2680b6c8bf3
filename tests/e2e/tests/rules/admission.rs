//! Refusals: every case of the API crate, put to the real API server, with the exact message.

use anyhow::{Context as _, Result, bail, ensure};
use capasg_e2e::{Rig, Setup, rule};
use capasg_environment::dynamic;
use capasg_test_objects::{cel_cases, schema_cases, valid_cases};
use kube::{
    Api, Error, ResourceExt as _,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::Value;

fn api(rig: &Rig<'_>, object: &Value) -> Api<DynamicObject> {
    let kind = object["kind"].as_str().unwrap_or_default();
    dynamic(&rig.scenario.client, &rig.scenario.namespace, capasg_api::GROUP, capasg_api::VERSION, kind)
}

/// Sends the object without keeping it: as an update of `old`, which is made for real first, or as a new one.
async fn send(rig: &Rig<'_>, name: &str, old: Option<&Value>, object: &Value) -> Result<Result<(), Error>> {
    let api = api(rig, object);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mut sent: DynamicObject = serde_json::from_value(object.clone())?;
    let Some(old) = old else { return Ok(api.create(&dry, &sent).await.map(drop)) };

    // A name of its own for each case, since deletion takes a moment.
    let mut before: DynamicObject = serde_json::from_value(old.clone())?;
    before.metadata.name = Some(name.to_owned());
    let before = api
        .create(&PostParams::default(), &before)
        .await
        .with_context(|| format!("{name}: what was there before was refused"))?;
    sent.metadata.name = Some(name.to_owned());
    sent.metadata.resource_version = before.resource_version();
    let answer = api.replace(name, &dry, &sent).await.map(drop);
    api.delete(name, &DeleteParams::default()).await?;
    Ok(answer)
}

// Rules: B15
// Pains: W21
#[tokio::test]
async fn rejections_have_the_exact_message() -> Result<()> {
    rule("refusals", Setup::bare().without_manager(), async |rig| {
        let mut wrong = Vec::new();
        let cases = cel_cases();
        ensure!(cases.len() > 20, "{} cases", cases.len());
        for case in &cases {
            match send(rig, &case.name, case.old.as_ref(), &case.object).await? {
                Ok(()) => wrong.push(format!("{}: was taken", case.name)),
                Err(Error::Api(status)) => {
                    // A rule's own words are one whole cause, not a part of one.
                    let mut told = status.details.iter().flat_map(|details| &details.causes);
                    let exact = told.any(|cause| says_exactly(&cause.message, &case.message));
                    if !exact {
                        wrong.push(format!(
                            "{}: wanted {:?}, got {}",
                            case.name, case.message, status.message
                        ));
                    }
                }
                Err(other) => bail!("{}: {other}", case.name),
            }
        }
        ensure!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
        Ok(())
    })
    .await
}

/// The API server writes `Invalid value: <value>: <the rule's message>`.
fn says_exactly(cause: &str, message: &str) -> bool {
    cause == message || cause.ends_with(&format!(": {message}"))
}

// Rules: B15
#[tokio::test]
async fn limits_and_enums_reject_with_the_api_servers_message() -> Result<()> {
    rule("limits", Setup::bare().without_manager(), async |rig| {
        let mut wrong = Vec::new();
        for case in schema_cases() {
            match send(rig, &case.name, case.old.as_ref(), &case.object).await? {
                Ok(()) => wrong.push(format!("{}: was taken", case.name)),
                Err(Error::Api(status)) if status.message.contains(&case.message) => {}
                Err(other) => wrong.push(format!("{}: wanted {:?}, got {other}", case.name, case.message)),
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
    .await
}

// Rules: B14
#[tokio::test]
async fn valid_objects_and_changes_are_accepted() -> Result<()> {
    rule("taken", Setup::bare().without_manager(), async |rig| {
        let mut wrong = Vec::new();
        for case in valid_cases() {
            if let Err(error) = send(rig, &case.name, case.old.as_ref(), &case.object).await? {
                wrong.push(format!("{}: {error}", case.name));
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
    .await
}
