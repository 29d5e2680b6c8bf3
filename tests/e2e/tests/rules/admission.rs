//! Refusals: every case of the API crate, put to the real API server, with the exact message.

use anyhow::{Context as _, Result, bail, ensure};
use capasg_e2e::{Rig, Setup, rule};
use capasg_environment::dynamic;
use capasg_test_objects::{cel_cases, minimal_pool, schema_cases, valid_cases, with};
use kube::{
    Api, Error, ResourceExt as _,
    api::{DeleteParams, DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

fn api(rig: &Rig<'_>, object: &Value) -> Api<DynamicObject> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let client = &rig.scenario.client;
    if ["ASGGuard", "ASGIdentity"].contains(&kind) {
        let kind = GroupVersionKind::gvk(capasg_api::GROUP, capasg_api::VERSION, kind);
        return Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    }
    dynamic(client, &rig.scenario.namespace, capasg_api::GROUP, capasg_api::VERSION, kind)
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

/// A pool of Cluster API Provider AWS, of which the kind and the version alone were changed.
const OF_ANOTHER_PROVIDER: &str = r"
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: ASGMachinePool
metadata:
  name: workers
spec:
  minSize: 1
  maxSize: 3
  availabilityZones: [eu-west-1a]
  awsLaunchTemplate:
    instanceType: m7i.large
    iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io
";

/// What the API server says to YAML of other APIs, as docs/users/migration.md shows it.
#[tokio::test]
async fn yaml_of_another_api_is_rejected_with_its_fields() -> Result<()> {
    rule("pasted", Setup::bare().without_manager(), async |rig| {
        let guide = include_str!("../../../../docs/users/migration.md");
        let listed = json!(["m7i.large"]);
        let old = with(minimal_pool(), "spec/instanceTypes", listed).to_string();
        for (yaml, validation, messages) in [
            (
                OF_ANOTHER_PROVIDER,
                "strict",
                ["strict decoding error: unknown field \"spec.availabilityZones\", unknown field \"spec.awsLaunchTemplate\""]
                    .as_slice(),
            ),
            (
                OF_ANOTHER_PROVIDER,
                "ignore",
                &["spec.region: Required value", "spec.instanceTypes: Required value", "spec.machine: Required value"],
            ),
            (&old, "strict", &["spec.instanceTypes[0] in body must be of type object: \"string\""]),
            (
                &OF_ANOTHER_PROVIDER.replace("v1alpha1", "v1beta2"),
                "strict",
                &["no matches for kind \"ASGMachinePool\" in version \"infrastructure.cluster.x-k8s.io/v1beta2\""],
            ),
        ] {
            let validate = format!("--validate={validation}");
            let namespace = rig.scenario.namespace.as_str();
            let args = ["create", "--dry-run=server", "--filename=-", &validate, "--namespace", namespace];
            let kubectl = rig.scenario.environment.management().api().kubectl();
            let output = kubectl.output(args, Some(yaml)).await?;
            ensure!(!output.success, "{validation}: it was accepted: {yaml}");
            for message in messages {
                ensure!(output.stderr.contains(message), "{message} is not in {}", output.stderr);
                let shown = message.replace("\"spec.availabilityZones\", unknown field ", "");
                ensure!(guide.contains(&shown), "the guide does not show {shown}");
            }
        }
        Ok(())
    })
    .await
}
