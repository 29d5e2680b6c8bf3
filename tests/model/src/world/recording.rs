//! What an earlier release wrote, put into a world: its calls are made again, its objects are there as it left them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use capasg_controllers::ObjectKey;
use capasg_simulator::{Dump, InstanceDump, Scope, Service, Tree};
use chrono::{DateTime, SecondsFormat, TimeDelta};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Pool, World};
use crate::api_server::{Object, State, Store};

/// What a release did for some pools until they ran and nothing was left to do.
#[derive(Debug, Clone, Deserialize)]
pub struct Recording {
    /// Where the pools are.
    pub region: String,
    /// Its calls to AWS that changed something, in order.
    pub calls: Vec<Call>,
    /// What there was in AWS in the end.
    pub cloud: Dump,
    /// The objects in the end, those that own others first.
    pub objects: Vec<Value>,
}

/// One call to AWS.
#[derive(Debug, Clone, Deserialize)]
pub struct Call {
    /// The API.
    pub service: Service,
    /// The operation.
    pub action: String,
    /// Its parameters, user data included.
    pub params: Value,
}

impl World {
    /// Puts a recording in. Ids that AWS gives are those of this world, everywhere. Answers the pools.
    ///
    /// # Errors
    /// If a call is refused, the cloud comes out otherwise, or an object is not what its kind should be.
    pub async fn restore(&mut self, recording: &Recording) -> Result<Vec<Pool>> {
        let scope = Scope::region(&recording.region);
        let mut names = BTreeMap::new();
        for call in &recording.calls {
            // A template has its id before a group names it.
            let params = tree(&renamed(&call.params, &names))?;
            self.simulator
                .call(&scope, call.service, &call.action, params)
                .map_err(|error| anyhow::anyhow!("{}: {error}", call.action))?;
            self.add_names(recording, &mut names);
        }
        // Long enough for every instance to be in service.
        self.clock.sleep_until(self.now() + TimeDelta::minutes(10)).await;
        self.simulator.set_time(self.now());
        self.add_names(recording, &mut names);
        let missing: Vec<&String> = recording
            .cloud
            .instances
            .iter()
            .map(|one| &one.id)
            .filter(|id| !names.contains_key(*id))
            .collect();
        ensure!(missing.is_empty(), "these did not come again: {missing:?}");

        let now = self.now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let mut pools = Vec::new();
        for object in &recording.objects {
            let object = at_time(&renamed(object, &names), &now);
            pools.extend(self.put(&object).with_context(|| object["metadata"]["name"].to_string())?);
        }
        for pool in &pools {
            self.adopt(pool.clone());
        }
        Ok(pools)
    }

    /// What the recorded ids are called in this world, as far as the things are there.
    fn add_names(&self, recording: &Recording, names: &mut BTreeMap<String, String>) {
        let here = self.simulator.dump(Some(&recording.region));
        let Some(here) = here.first() else { return };
        for template in &recording.cloud.templates {
            let same = here.templates.iter().find(|one| one.name == template.name);
            names.extend(same.map(|one| (template.id.clone(), one.id.clone())));
        }
        for group in &recording.cloud.groups {
            let same = here.groups.iter().find(|one| one.name == group.name);
            names.extend(same.map(|one| (group.arn.clone(), one.arn.clone())));
        }
        let alike = |one: &InstanceDump| {
            (one.group.clone(), one.zone.clone(), one.instance_type.clone(), one.market.clone())
        };
        let mut left: Vec<&InstanceDump> = here.instances.iter().collect();
        for instance in &recording.cloud.instances {
            if let Some(at) = left.iter().position(|one| alike(one) == alike(instance)) {
                names.insert(instance.id.clone(), left.remove(at).id.clone());
            }
        }
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
                return Ok(Some(Pool {
                    key: key(&template["infrastructureRef"]["name"]),
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

/// JSON as the tree that it was made of.
fn tree(value: &Value) -> Result<Tree> {
    Ok(match value {
        Value::String(text) => Tree::from(text.as_str()),
        Value::Array(items) => Tree::list(items.iter().map(tree).collect::<Result<Vec<_>>>()?),
        Value::Object(members) => {
            let mut map = Tree::new();
            for (name, member) in members {
                map.set(name, tree(member)?);
            }
            map
        }
        other => bail!("{other} is no parameter"),
    })
}

/// The value with names replaced wherever they stand in a text.
fn renamed(value: &Value, names: &BTreeMap<String, String>) -> Value {
    each_text(value, &|text| {
        names.iter().fold(text.to_owned(), |text, (recorded, here)| text.replace(recorded, here))
    })
}

/// The value with every moment at `now`: what was just done when it was recorded is just done here.
fn at_time(value: &Value, now: &str) -> Value {
    each_text(value, &|text| {
        if DateTime::parse_from_rfc3339(text).is_ok() { now.to_owned() } else { text.to_owned() }
    })
}

fn each_text(value: &Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => change(text).into(),
        Value::Array(items) => items.iter().map(|item| each_text(item, change)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (change(name), each_text(member, change))).collect()
        }
        other => other.clone(),
    }
}
