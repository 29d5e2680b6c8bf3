//! I: conditions have the shape and the manners that core's tools expect.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_api::conditions;
use capasg_e2e::{Rig, Setup, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::Fault;
use k8s_openapi::{
    api::events::v1::Event, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{Api, ResourceExt as _, api::ListParams};
use serde_json::Value;

use crate::reconciled::reconciled;

// Rules: I1
#[tokio::test]
async fn conditions_are_a_map_of_at_most_32() -> Result<()> {
    rule("i1-schema", Setup::bare().without_manager(), async |rig| {
        let definitions = Api::<CustomResourceDefinition>::all(rig.scenario.client.clone());
        for name in ["asgmachinepools", "asgmachines"] {
            let definition = definitions.get(&format!("{name}.{}", capasg_api::GROUP)).await?;
            let schema = serde_json::to_value(&definition.spec.versions[0].schema)?;
            let conditions = schema
                .pointer("/openAPIV3Schema/properties/status/properties/conditions")
                .context("no conditions")?;
            ensure!(conditions["x-kubernetes-list-type"] == "map");
            ensure!(conditions["x-kubernetes-list-map-keys"] == serde_json::json!(["type"]));
            ensure!(conditions["maxItems"] == 32);
            let required: BTreeSet<&str> = conditions["items"]["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            ensure!(
                ["lastTransitionTime", "message", "reason", "status", "type"]
                    .iter()
                    .all(|one| required.contains(one)),
                "{required:?}"
            );
            let names = conditions["items"]["properties"].as_object().context("no properties")?;
            let wanted = ["lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"];
            ensure!(names.keys().map(String::as_str).eq(wanted), "{names:?}");
        }
        Ok(())
    })
    .await
}

fn is_camel(reason: &str) -> bool {
    reason.starts_with(|first: char| first.is_ascii_uppercase()) && reason.chars().all(char::is_alphanumeric)
}

async fn conditions_of(rig: &Rig<'_>) -> Result<(Vec<Condition>, Option<i64>)> {
    let pool = rig.pools().get("workers").await?;
    let generation = pool.metadata.generation;
    Ok((pool.status.unwrap_or_default().conditions, generation))
}

// Rules: I4
#[tokio::test]
async fn conditions_change_only_with_what_they_report() -> Result<()> {
    rule("i4-manners", Setup::default(), async |rig| {
        // All of them are there from the first reconcile, before there is an owner.
        let pool = rig.pool("workers").replicas(2);
        rig.scenario.apply(&pool.ours().to_string()).await?;
        eventually("all conditions are there", async || {
            let (found, _) = conditions_of(rig).await?;
            let types: BTreeSet<_> = found.iter().map(|one| one.type_.as_str()).collect();
            let wanted: BTreeSet<_> = conditions::POOL.iter().copied().collect();
            Ok(Look::when(types == wanted, format!("{types:?}")))
        })
        .await?;
        rig.run(&pool, 2).await?;
        eventually("all speak of this generation", async || {
            let (found, generation) = conditions_of(rig).await?;
            let old: Vec<_> = found.iter().filter(|one| one.observed_generation != generation).collect();
            Ok(Look::when(old.is_empty(), format!("{old:?}")))
        })
        .await?;
        let (before, _) = conditions_of(rig).await?;
        for one in &before {
            ensure!(is_camel(&one.reason), "{one:?}");
        }

        // A new generation that changes nothing moves no lastTransitionTime.
        rig.patch_pool("workers", &serde_json::json!({"spec": {"maxSize": 50}})).await?;
        eventually("the edit was seen", async || {
            let (found, generation) = conditions_of(rig).await?;
            let ready = conditions::get(&found, "Ready").and_then(|one| one.observed_generation);
            Ok(Look::when(ready == generation, format!("{ready:?} of {generation:?}")))
        })
        .await?;
        let (after, _) = conditions_of(rig).await?;
        for (old, new) in before.iter().zip(&after) {
            ensure!(old.type_ == new.type_);
            ensure!(
                old.status != new.status || old.last_transition_time == new.last_transition_time,
                "{old:?} {new:?}"
            );
        }
        for machine in rig.asg_machines_of("workers").await? {
            let status = machine.status.clone().unwrap_or_default();
            let types: BTreeSet<_> = status.conditions.iter().map(|one| one.type_.as_str()).collect();
            ensure!(
                types == conditions::MACHINE.iter().copied().collect(),
                "{}: {types:?}",
                machine.name_any()
            );
            ensure!(status.conditions.iter().all(|one| is_camel(&one.reason)));
        }
        rig.delete("workers").await
    })
    .await
}

// Rules: I4
#[tokio::test]
async fn events_keep_the_conventions_of_kubernetes() -> Result<()> {
    rule("i4-events", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        // Something that goes wrong, with more words than an event may have.
        let words = "You may not do this. ".repeat(150);
        let fault = Fault::error("CreateLaunchTemplateVersion", 400, "InvalidParameterValue", &words);
        rig.scenario.simulator().add_fault(fault.in_region(&rig.scenario.region).times(Some(1)));
        rig.patch_pool("workers", &serde_json::json!({"spec": {"tags": {"team": "a"}}})).await?;
        let events = Api::<Event>::namespaced(rig.scenario.client.clone(), &rig.scenario.namespace);
        let ours = eventually("there are events of both types", async || {
            let mut ours = events.list(&ListParams::default()).await?.items;
            ours.retain(|event| event.reporting_controller.as_deref() == Some("capasg"));
            let types: BTreeSet<_> = ours.iter().filter_map(|event| event.type_.clone()).collect();
            let both = ["Normal", "Warning"].iter().all(|one| types.contains(*one));
            Ok(Look::from_option(both.then_some(ours), format!("{types:?}")))
        })
        .await?;
        for event in &ours {
            ensure!(event.reason.as_deref().is_some_and(is_camel), "{event:?}");
            ensure!(event.action.as_deref().is_some_and(is_camel), "{event:?}");
            ensure!(event.reporting_instance.as_deref().is_some_and(|one| !one.is_empty()), "{event:?}");
            let note = event.note.as_deref().unwrap_or_default();
            ensure!(!note.is_empty() && note.len() <= 1024, "{event:?}");
            let about = event.regarding.clone().unwrap_or_default();
            ensure!(about.namespace.as_deref() == Some(&rig.scenario.namespace), "{event:?}");
            ensure!(about.kind.is_some() && about.uid.is_some() && about.api_version.is_some(), "{event:?}");
            ensure!(event.event_time.is_some(), "{event:?}");
        }
        rig.delete("workers").await
    })
    .await
}

// Rules: I5
#[tokio::test]
async fn a_subnet_that_does_not_exist_is_reported_until_an_edit() -> Result<()> {
    rule("i5-refused", Setup::default(), async |rig| {
        let wrong = "subnet-0000000000000bad0";
        rig.apply(&rig.pool("workers").replicas(1).with("spec/subnets/0/id", wrong)).await?;
        eventually("the condition names the subnet", async || {
            let (found, _) = conditions_of(rig).await?;
            let group = conditions::get(&found, "GroupReady").cloned().context("no GroupReady")?;
            let said =
                group.status == "False" && group.reason == "SubnetNotFound" && group.message.contains(wrong);
            Ok(Look::when(said, format!("{group:?}")))
        })
        .await?;
        // It is known before anything is created.
        for _ in 0..3 {
            reconciled(rig, "workers").await?;
        }
        ensure!(rig.mutations() == 0, "{} calls changed something", rig.mutations());
        rig.patch_pool("workers", &serde_json::json!({"spec": {"subnets": [{"id": "subnet-0a1b2c3d"}]}}))
            .await?;
        rig.running("workers", 1).await?;
        let (found, _) = conditions_of(rig).await?;
        ensure!(conditions::is_true(&found, "Ready"), "{found:?}");
        rig.delete("workers").await
    })
    .await
}
