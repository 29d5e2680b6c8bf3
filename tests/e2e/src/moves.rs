//! `clusterctl move` as users run it: again, where clusterctl asks for that.

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{Look, Output, Runner, Write};
use chrono::{DateTime, TimeDelta, Utc};

use crate::{CLUSTER, eventually};

/// How long a reconcile that began before the Cluster was paused may take.
const RECONCILE: TimeDelta = TimeDelta::seconds(10);

/// Errors of clusterctl's check that all Machines are provisioned, which precedes the pause. The second: it lists one kind
/// after the other, and a Machine that owned what it listed was deleted before it listed Machines.
const BEFORE_THE_PAUSE: [&str; 2] = [
    "is still provisioning",
    "error reading Machine /: an empty namespace may not be set when a resource name is provided",
];

/// The management cluster that the objects leave.
pub(crate) struct Source<'a> {
    pub(crate) kubectl: &'a Runner,
    pub(crate) namespace: &'a str,
}

impl Source<'_> {
    /// Moves once every Machine has its Node, and answers what clusterctl printed. clusterctl lists the objects before it
    /// pauses the Cluster: it fails if one was deleted in between, leaves the Cluster paused, and refuses paused ones.
    /// Nothing was deleted by then, so that users unpause the Cluster and move again (docs/users/move.md).
    ///
    /// # Errors
    /// When clusterctl fails for another reason, or an object was deleted although the Cluster was paused (F1).
    pub(crate) async fn moved(
        &self,
        send: impl AsyncFn() -> Result<Output>,
        writes: impl Fn() -> Result<Vec<Write>>,
    ) -> Result<String> {
        eventually("clusterctl moves", async || {
            let begun = Utc::now();
            let output = send().await?;
            let said = output.stderr + &output.stdout;
            if output.success {
                return Ok(Look::Done(Ok(said)));
            }
            if BEFORE_THE_PAUSE.iter().any(|error| said.contains(error)) {
                return Ok(Look::Not(said));
            }
            if let Err(error) = was_deleted_before_the_pause(&said, &writes()?, begun) {
                return Ok(Look::Done(Err(error)));
            }
            self.unpause().await?;
            Ok(Look::Not(said))
        })
        .await?
    }

    async fn unpause(&self) -> Result<()> {
        let run = async |args: &[&str]| {
            self.kubectl.run(["--namespace", self.namespace].iter().chain(args).copied()).await
        };
        let classes = run(&["get", "clusterclasses", "--output=name"]).await?;
        for class in classes.lines() {
            run(&["annotate", class, "cluster.x-k8s.io/paused-"]).await?;
        }
        let patch = r#"{"spec": {"paused": false}}"#;
        run(&["patch", "clusters.cluster.x-k8s.io", CLUSTER, "--type=merge", "--patch", patch]).await?;
        Ok(())
    }
}

/// Checks that clusterctl failed since it missed an object, and that this was written for the last time before the Cluster
/// was paused, or by a reconcile that had begun before.
fn was_deleted_before_the_pause(said: &str, writes: &[Write], begun: DateTime<Utc>) -> Result<()> {
    let (resource, name) = missing(said).with_context(|| said.to_owned())?;
    let pause = writes.iter().find(|write| {
        let is_clusterctl = !write.user.starts_with("system:serviceaccount:");
        (write.resource.as_str(), write.name.as_str()) == ("clusters", CLUSTER)
            && is_clusterctl
            && write.received >= begun
    });
    let Some(pause) = pause else { return Ok(()) };
    let last = writes.iter().rfind(|write| {
        (write.resource.as_str(), write.name.as_str()) == (resource, name) && write.code < 300
    });
    let is_late = last.is_some_and(|last| last.received > pause.at + RECONCILE);
    ensure!(!is_late, "{resource} {name} was written after the pause {pause:?}: {last:?}");
    Ok(())
}

/// The resource and the name of the object that an error of the API server does not find.
fn missing(said: &str) -> Option<(&str, &str)> {
    let (before, _) = said.split_once("\" not found")?;
    let (before, name) = before.rsplit_once('"')?;
    let resource = before.trim_end().rsplit(' ').next()?;
    Some((resource.split('.').next()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_object_is_found_in_what_clusterctl_prints() {
        let text = "Error: action failed after 10 attempts: error reading \"infrastructure.cluster.x-k8s.io/v1alpha1, \
                    Kind=ASGMachine\" ns/workers-i-1: asgmachines.infrastructure.cluster.x-k8s.io \"workers-i-1\" not \
                    found\n";
        assert_eq!(missing(text), Some(("asgmachines", "workers-i-1")));
        assert_eq!(missing("is still provisioning"), None);
    }
}
