//! What somebody else changes of a group in AWS is seen by the next poll: put right and told, or in a preview only shown.

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{Rig, Setup, condition, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::Tree;
use chrono::Utc;
use serde_json::json;

use crate::reconciled::{polled, reconciled};

/// Something that somebody else does, and the path by which it is told.
type Change = (&'static str, fn(&Rig<'_>) -> Result<()>);

const CHANGES: [Change; 6] = [
    ("spec.group.defaultCooldownSeconds", |rig| update(rig, |group| group.with("DefaultCooldown", 60))),
    ("launch template", |rig| {
        let template =
            Tree::new().with("LaunchTemplateId", rig.group()?.template.0).with("Version", "$Latest");
        update(rig, |group| group.with("LaunchTemplate", template))
    }),
    ("spec.tags[team]", |rig| {
        let tag = Tree::new()
            .with("ResourceId", rig.group()?.name)
            .with("ResourceType", "auto-scaling-group")
            .with("Key", "team")
            .with("Value", "b")
            .with("PropagateAtLaunch", true);
        rig.somebody_calls("CreateOrUpdateTags", Tree::new().with("Tags", Tree::list([tag]))).map(|_| ())
    }),
    ("spec.group.suspendedProcesses", |rig| {
        let params = group(rig)?.with("ScalingProcesses", Tree::list(["AZRebalance"]));
        rig.somebody_calls("ResumeProcesses", params).map(|_| ())
    }),
    ("scale-in protection", |rig| {
        let one = rig.instances().first().context("an instance")?.id.clone();
        let params = group(rig)?.with("InstanceIds", Tree::list([one])).with("ProtectedFromScaleIn", false);
        rig.somebody_calls("SetInstanceProtection", params).map(|_| ())
    }),
    ("MaxSize of the Auto Scaling group", |rig| update(rig, |group| group.with("MaxSize", 9))),
];

fn group(rig: &Rig<'_>) -> Result<Tree> {
    Ok(Tree::new().with("AutoScalingGroupName", rig.group()?.name))
}

fn update(rig: &Rig<'_>, change: impl FnOnce(Tree) -> Tree) -> Result<()> {
    rig.somebody_calls("UpdateAutoScalingGroup", change(group(rig)?)).map(|_| ())
}

fn delete_hook(rig: &Rig<'_>) -> Result<()> {
    let params = group(rig)?.with("LifecycleHookName", "asg-drain");
    rig.somebody_calls("DeleteLifecycleHook", params).map(|_| ())
}

/// The group as AWS describes it, without when a process was suspended, and with its hooks.
fn described(rig: &Rig<'_>) -> Result<String> {
    let params = Tree::new().with("AutoScalingGroupNames", Tree::list([rig.group()?.name]));
    let reply = rig.somebody_calls("DescribeAutoScalingGroups", params)?;
    let found = reply.items_of("AutoScalingGroups").first().context("the group")?;
    let mut lines: Vec<String> = found
        .members()
        .filter(|(name, _)| *name != "SuspendedProcesses")
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    let suspended: Vec<_> =
        found.items_of("SuspendedProcesses").iter().map(|one| one.text_of("ProcessName")).collect();
    lines.push(format!("suspended: {suspended:?}, hooks: {:?}", rig.group()?.hooks));
    Ok(lines.join("\n"))
}

async fn is_whole(rig: &Rig<'_>, whole: &str) -> Result<()> {
    eventually("it is as it was", async || {
        let now = described(rig)?;
        Ok(Look::when(now == whole, format!("{now}\ninstead of\n{whole}")))
    })
    .await
}

async fn events(rig: &Rig<'_>) -> Result<Vec<String>> {
    let path = "--output=jsonpath={range .items[?(@.reason==\"DriftCorrected\")]}{.message}{\"\\n\"}{end}";
    let told = rig.scenario.kubectl(&["get", "events", path]).await?;
    Ok(told.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

// Pains: P27, W6, W7, W10
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn drift_is_corrected_by_the_next_poll_and_reported() -> Result<()> {
    rule("drift-applied", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2).with("spec/tags", json!({"team": "a"})), 2).await?;
        let (whole, before) = (described(rig)?, rig.instances().len());
        for (path, change) in CHANGES {
            change(rig).with_context(|| path.to_owned())?;
        }
        ensure!(described(rig)? != whole, "nothing was changed");
        is_whole(rig, &whole).await?;
        eventually("all is told", async || {
            let told = events(rig).await?.join("\n");
            let missing: Vec<&str> =
                CHANGES.iter().map(|(path, _)| *path).filter(|path| !told.contains(path)).collect();
            Ok(Look::when(missing.is_empty(), format!("{missing:?} in {told}")))
        })
        .await?;
        // No poll tells of hooks: a new process looks, as one that runs does once an hour.
        delete_hook(rig)?;
        rig.kill_manager().await?;
        rig.start_manager().await?;
        is_whole(rig, &whole).await?;
        ensure!(rig.instances().len() == before, "nothing was launched or ended by it");
        rig.delete("workers").await
    })
    .await
}

// Pains: P54
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn drift_is_only_listed_in_a_preview() -> Result<()> {
    rule("drift-previewed", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2).with("spec/tags", json!({"team": "a"})), 2).await?;
        let whole = described(rig)?;
        rig.patch_pool("workers", &json!({"spec": {"changePolicy": "Preview"}})).await?;
        eventually("the preview is seen", async || {
            let pool = rig.pools().get("workers").await?;
            let (wished, seen) =
                (pool.metadata.generation, pool.status.map(|status| status.observed_generation));
            Ok(Look::when(wished == seen, format!("{wished:?} {seen:?}")))
        })
        .await?;
        // Sizes, and so the bounds, go on in a preview.
        let held = CHANGES.iter().filter(|(path, _)| *path != "MaxSize of the Auto Scaling group");
        for (path, change) in held.clone() {
            change(rig).with_context(|| (*path).to_owned())?;
        }
        let changed = described(rig)?;
        let mark = rig.mark();
        eventually("all is shown", async || {
            let status = rig.pools().get("workers").await?.status.unwrap_or_default();
            let told = condition(&status.conditions, "Drifted");
            let shown: Vec<&str> = status.pending_changes.iter().map(|change| change.path.as_str()).collect();
            let all = held.clone().all(|(path, _)| shown.contains(path));
            Ok(Look::when(all && told == "True/Drifted", format!("{told} {shown:?}")))
        })
        .await?;
        // Neither a reconcile nor a poll after that writes anything.
        reconciled(rig, "workers").await?;
        polled(rig, Utc::now()).await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        ensure!(described(rig)? == changed, "it was left as it is");
        rig.patch_pool("workers", &json!({"spec": {"changePolicy": "Apply"}})).await?;
        is_whole(rig, &whole).await?;
        eventually("nothing waits", async || {
            let status = rig.pools().get("workers").await?.status.unwrap_or_default();
            let told = condition(&status.conditions, "Drifted");
            let done = status.pending_changes.is_empty() && told == "False/NotDrifted";
            Ok(Look::when(done, format!("{told} {:?}", status.pending_changes)))
        })
        .await?;
        rig.delete("workers").await
    })
    .await
}
