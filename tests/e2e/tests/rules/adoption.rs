//! A group that somebody else made, with nodes that serve, becomes a pool's: shown first, without an end or a launch, and
//! replaced with drains when it is rolled.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_api::names::{annotations, tags};
use capasg_e2e::{END, Rig, Setup, condition, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::{InstanceDump, Scope, Service, Tree};
use serde_json::json;

const GROUP: &str = "somebody-elses";
const SHOWN: Duration = Duration::from_mins(2);

/// A template and a group as scripts make them, whose instances join the test's cluster. An operator allows the adoption,
/// and a tag of the group names who may adopt it.
async fn somebody_elses(rig: &Rig<'_>, instances: usize) -> Result<String> {
    rig.guard("adoption", &json!({"adoption": "Allowed"})).await?;
    let adoptable = Tree::new()
        .with("ResourceId", GROUP)
        .with("ResourceType", "auto-scaling-group")
        .with("Key", tags::ADOPTABLE_BY)
        .with("Value", format!("{}/workers", rig.scenario.namespace))
        .with("PropagateAtLaunch", false);
    let data = Tree::new()
        .with("ImageId", "ami-0a1b2c3d")
        .with("InstanceType", "m7i.large")
        .with("UserData", STANDARD.encode(rig.user_data()));
    let params = Tree::new().with("LaunchTemplateName", GROUP).with("LaunchTemplateData", data);
    let scope = Scope::region(&rig.scenario.region);
    let reply = rig.scenario.simulator().call(&scope, Service::Ec2, "CreateLaunchTemplate", params)?;
    let template = reply.at("LaunchTemplate.LaunchTemplateId").and_then(Tree::text).context("an id")?;
    let launch = Tree::new().with("LaunchTemplateId", template).with("Version", "$Latest");
    let params = Tree::new()
        .with("AutoScalingGroupName", GROUP)
        .with("MinSize", 1)
        .with("MaxSize", 9)
        .with("DesiredCapacity", instances)
        .with("VPCZoneIdentifier", "subnet-0a1b2c3d")
        .with("LaunchTemplate", launch)
        .with("Tags", Tree::list([adoptable]));
    rig.somebody_calls("CreateAutoScalingGroup", params)?;
    Ok(template.to_owned())
}

async fn in_service(rig: &Rig<'_>, instances: usize) -> Result<Vec<InstanceDump>> {
    eventually("somebody else's run", async || {
        let all = rig.instances();
        let serving = |one: &InstanceDump| one.lifecycle_state.as_deref() == Some("InService");
        let done = all.len() == instances && all.iter().all(serving);
        Ok(Look::from_option(done.then(|| all.clone()), format!("{all:?}")))
    })
    .await
}

fn ids(instances: &[InstanceDump]) -> BTreeSet<String> {
    instances.iter().map(|one| one.id.clone()).collect()
}

// Pains: P54, W14
#[tokio::test]
async fn a_group_is_previewed_adopted_and_replaced_through_kills() -> Result<()> {
    rule("adoption", Setup::default(), async |rig| {
        let template = somebody_elses(rig, 3).await?;
        let before = in_service(rig, 3).await?;
        let mark = rig.mark();
        let pool = rig
            .pool("workers")
            .replicas(3)
            .with("spec/group", json!({"name": GROUP}))
            .with("spec/adoptionPolicy", "Adopt")
            .with("spec/changePolicy", "Preview")
            .with("spec/rollout", json!({"mode": "Paused"}));
        rig.apply(&pool).await?;
        rig.pool_until("workers", SHOWN, |pool| {
            let status = pool.status.clone().unwrap_or_default();
            let told = condition(&status.conditions, "GroupReady");
            let shown: Vec<&str> = status.pending_changes.iter().map(|change| change.path.as_str()).collect();
            let all = [
                "tag asg.infrastructure.cluster.x-k8s.io/owner-id",
                "launch template",
                "MinSize of the Auto Scaling group",
                "spec.drain.onCloudTermination",
            ];
            let done = told == "False/Adopting" && all.iter().all(|path| shown.contains(path));
            Look::when(done, format!("{told} {shown:?}"))
        })
        .await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));

        rig.patch_pool("workers", &json!({"spec": {"changePolicy": "Apply"}})).await?;
        rig.running("workers", 3).await?;
        ensure!(ids(&rig.instances()) == ids(&before), "the instances stay");
        ensure!(rig.calls_of(END).is_empty(), "none was ended");
        let first = rig.mutations_since(mark).into_iter().map(|call| call.action).next();
        ensure!(first.as_deref() == Some("CreateOrUpdateTags"), "{first:?} came first");
        let adopted = rig.pools().get("workers").await?;
        let owner = adopted.metadata.annotations.as_ref().and_then(|all| all.get(annotations::OWNER_ID));
        let group = rig.group()?;
        ensure!(group.tags.get(tags::OWNER_ID) == owner && owner.is_some(), "{:?}", group.tags);
        ensure!(group.tags.get(tags::ADOPTED_FROM) == Some(&template), "{:?}", group.tags);
        eventually("each says why it is outdated", async || {
            let told: Vec<String> = rig
                .asg_machines_of("workers")
                .await?
                .into_iter()
                .map(|one| condition(&one.status.unwrap_or_default().conditions, "UpToDate"))
                .collect();
            let all = told.len() == 3 && told.iter().all(|one| one == "False/Adopted");
            Ok(Look::when(all, format!("{told:?}")))
        })
        .await?;
        let events = rig.scenario.kubectl(&["get", "events", "--output=jsonpath={.items[*].reason}"]).await?;
        ensure!(events.split(' ').filter(|reason| *reason == "GroupAdopted").count() == 1, "{events}");

        let service = rig.serve(6, Some(5)).await?;
        rig.through_kills("adoption", 4, async {
            rig.patch_pool("workers", &json!({"spec": {"rollout": {"mode": "Automatic"}}})).await?;
            rig.replaced(&ids(&before)).await?;
            rig.running("workers", 3).await
        })
        .await?;
        let mut pods = 0;
        for one in &before {
            pods += service.was_drained(&one.id, &one.private_dns_name, END).await?;
        }
        ensure!(pods >= 6, "{pods} pods were on the old Nodes");
        ensure!(service.fewest() >= 5, "only {} pods were ready", service.fewest());
        service.end().await?;
        ensure!(rig.templates().iter().any(|one| one.id == template), "what was theirs stays");
        let scope = Scope::region(&rig.scenario.region);
        let params = Tree::new().with("LaunchTemplateId", &template);
        rig.scenario.simulator().call(&scope, Service::Ec2, "DeleteLaunchTemplate", params)?;
        rig.delete("workers").await
    })
    .await
}

// Pains: P30, W14
#[tokio::test]
async fn adopting_a_group_that_another_controller_owns_is_rejected() -> Result<()> {
    rule("adoption-refused", Setup::default(), async |rig| {
        let _ = somebody_elses(rig, 1).await?;
        in_service(rig, 1).await?;
        let key = "sigs.k8s.io/cluster-api-provider-aws/cluster/prod";
        let tag = Tree::new()
            .with("ResourceId", GROUP)
            .with("ResourceType", "auto-scaling-group")
            .with("Key", key)
            .with("Value", "owned")
            .with("PropagateAtLaunch", true);
        let tags = || Tree::new().with("Tags", Tree::list([tag.clone()]));
        rig.somebody_calls("CreateOrUpdateTags", tags())?;
        let mark = rig.mark();
        let pool = rig
            .pool("workers")
            .replicas(1)
            .with("spec/group", json!({"name": GROUP}))
            .with("spec/adoptionPolicy", "Adopt")
            .with("spec/rollout", json!({"mode": "Paused"}));
        rig.apply(&pool).await?;
        let refused = |look: &str, pool: &capasg_api::ASGMachinePool| {
            let status = pool.status.clone().unwrap_or_default();
            let said = status.conditions.iter().find(|one| one.type_ == "GroupReady").cloned();
            let done = said
                .as_ref()
                .is_some_and(|one| one.reason == "AdoptionBlocked" && one.message.contains(look));
            Look::when(done, format!("{said:?}"))
        };
        rig.pool_until("workers", SHOWN, |pool| refused(key, pool)).await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        ensure!(rig.asg_machines_of("workers").await?.is_empty(), "nothing of it is the pool's");
        // The way out that the message names.
        rig.somebody_calls("DeleteTags", tags())?;
        rig.running("workers", 1).await?;
        ensure!(rig.calls_of(END).is_empty(), "none was ended");
        let scope = Scope::region(&rig.scenario.region);
        let params = Tree::new().with("LaunchTemplateName", GROUP);
        rig.scenario.simulator().call(&scope, Service::Ec2, "DeleteLaunchTemplate", params)?;
        rig.delete("workers").await
    })
    .await
}
