//! The objects of a demo on the management cluster, and kubectl in their namespace.

use std::time::Duration;

use anyhow::Result;
use capasg_environment::{Environment, Runner, dynamic};
use kube::{Api, Client, api::DynamicObject};

use super::stage::Stage;

/// Their namespace.
pub const NAMESPACE: &str = "default";
/// How long each step may take, on two cores that other things use too. Seen: a tenth to a third of it.
pub const DEADLINE: Duration = Duration::from_mins(3);

/// Clients of the management cluster.
pub struct Objects<'a> {
    /// A client with an administrator's rights.
    pub client: Client,
    /// kubectl with the same.
    pub kubectl: &'a Runner,
}

impl<'a> Objects<'a> {
    /// Those of an environment.
    pub async fn of(environment: &'a Environment) -> Result<Self> {
        Ok(Self { client: environment.client().await?, kubectl: environment.management().api().kubectl() })
    }

    /// The objects of a kind.
    pub fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        dynamic(&self.client, NAMESPACE, group, version, kind)
    }

    /// Runs kubectl, and shows the command with its output.
    pub async fn run(&self, stage: &Stage, args: &[&str]) -> Result<String> {
        stage.run("kubectl", self.kubectl, &in_namespace(args)).await
    }

    /// Runs kubectl, and shows nothing.
    pub async fn read(&self, args: &[&str]) -> Result<String> {
        self.kubectl.run(in_namespace(args)).await
    }
}

fn in_namespace<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &["--namespace", NAMESPACE]].concat()
}
