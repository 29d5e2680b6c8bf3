//! What an earlier release wrote, put into a world: its calls are made again, its objects are there as it left them.

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use capasg_api::names::aws_name;
use capasg_controllers::ObjectKey;
use capasg_fake_aws::Recording;
use chrono::{DateTime, SecondsFormat, TimeDelta};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Pool, World, pool::CLUSTER};
use crate::api_server::{Object, State, Store};

impl World {
    /// Puts a recording in. Ids that AWS gives are those of this world, everywhere. Answers the pools.
    ///
    /// # Errors
    /// If a call is refused, the cloud comes out otherwise, or an object is not what its kind should be.
    pub async fn restore(&mut self, recording: &Recording) -> Result<Vec<Pool>> {
        recording.replay(&self.simulator).map_err(|error| anyhow!("{error}"))?;
        // Long enough for every instance to be in service.
        self.clock.sleep_until(self.now() + TimeDelta::minutes(10)).await;
        self.simulator.set_time(self.now());
        let missing = recording.missing(&self.simulator);
        ensure!(missing.is_empty(), "these did not come again: {missing:?}");

        let names = recording.names(&self.simulator);
        let now = self.now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let mut pools = Vec::new();
        for object in &recording.objects {
            let object = at_time(names.put_into(object), &now);
            pools.extend(self.put(&object).with_context(|| object["metadata"]["name"].to_string())?);
        }
        for pool in &pools {
            self.adopt(pool.clone());
        }
        Ok(pools)
    }

    /// Puts one object in; a pool is answered.
    fn put(&self, object: &Value) -> Result<Option<Pool>> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let State {
            ledger, clusters, machine_pools, machines, pools, asg_machines, secrets, configs, ..
        } = &mut *self.api.state();
        match kind {
            "Cluster" => put(clusters, ledger, object)?,
            "MachinePool" => {
                put(machine_pools, ledger, object)?;
                let template = &object["spec"]["template"]["spec"];
                let key = |name: &Value| {
                    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
                    ObjectKey::new(namespace, name.as_str().unwrap_or_default())
                };
                let pool = key(&template["infrastructureRef"]["name"]);
                return Ok(Some(Pool {
                    group: aws_name(&pool.namespace, CLUSTER, &pool.name),
                    cluster: pool.sibling(CLUSTER),
                    key: pool,
                    machine_pool: key(&object["metadata"]["name"]),
                    config: key(&template["bootstrap"]["dataSecretName"]),
                }));
            }
            "Machine" => put(machines, ledger, object)?,
            "ASGMachinePool" => put(pools, ledger, object)?,
            "ASGMachine" => put(asg_machines, ledger, object)?,
            "Secret" => put(secrets, ledger, object)?,
            "KubeadmConfig" => put(configs, ledger, object)?,
            other => bail!("the model has no {other}"),
        }
        Ok(None)
    }
}

fn put<T: Object + DeserializeOwned>(
    store: &mut Store<T>,
    ledger: &mut crate::api_server::Ledger,
    object: &Value,
) -> Result<()> {
    store.restore(ledger, T::deserialize(object)?);
    Ok(())
}

/// The value with every moment at `now`: what was just done when it was recorded is just done here.
fn at_time(value: Value, now: &str) -> Value {
    match value {
        Value::String(text) if DateTime::parse_from_rfc3339(&text).is_ok() => now.into(),
        Value::Array(items) => items.into_iter().map(|item| at_time(item, now)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, at_time(member, now))).collect()
        }
        other => other,
    }
}
