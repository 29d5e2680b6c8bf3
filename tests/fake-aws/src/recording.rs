//! What somebody did to AWS once, done again: the calls of a recording, with the ids that this world gives.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{ApiError, Dump, InstanceDump, Scope, Service, Simulator, Tree};

/// What a release of ours did for some pools until they ran and nothing was left to do.
#[derive(Debug, Clone, Deserialize)]
pub struct Recording {
    /// The namespace of the objects.
    pub namespace: String,
    /// The name of their Cluster.
    pub cluster: String,
    /// Where the pools are.
    pub region: String,
    /// The calls that changed something, in order.
    pub calls: Vec<RecordedCall>,
    /// What there was in the end.
    pub cloud: Dump,
    /// The Kubernetes objects in the end, those that own others first.
    pub objects: Vec<Value>,
}

/// One call.
#[derive(Debug, Clone, Deserialize)]
pub struct RecordedCall {
    /// The API.
    pub service: Service,
    /// The operation.
    pub action: String,
    /// Its parameters, user data included.
    pub params: Value,
}

/// What recorded ids and ARNs are called in this world.
#[derive(Debug, Clone, Default)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// The value with names replaced wherever they stand in a text.
    #[must_use]
    pub fn put_into(&self, value: &Value) -> Value {
        each_text(value, &|text| {
            self.0.iter().fold(text.to_owned(), |text, (recorded, here)| text.replace(recorded, here))
        })
    }
}

impl Recording {
    /// Makes the calls again.
    ///
    /// # Errors
    /// When one is refused.
    pub fn replay(&self, simulator: &Simulator) -> Result<(), ApiError> {
        let scope = Scope::region(&self.region);
        for call in &self.calls {
            // A template has its id before a group names it.
            let params = tree(&self.names(simulator).put_into(&call.params));
            simulator.call(&scope, call.service, &call.action, params)?;
        }
        Ok(())
    }

    /// What the recorded things are called here; instances only once they were launched.
    #[must_use]
    pub fn names(&self, simulator: &Simulator) -> Names {
        let mut names = BTreeMap::new();
        let dumps = simulator.dump(Some(&self.region));
        let Some(here) = dumps.first() else { return Names::default() };
        for template in &self.cloud.templates {
            let same = here.templates.iter().find(|one| one.name == template.name);
            names.extend(same.map(|one| (template.id.clone(), one.id.clone())));
        }
        for group in &self.cloud.groups {
            let same = here.groups.iter().find(|one| one.name == group.name);
            names.extend(same.map(|one| (group.arn.clone(), one.arn.clone())));
        }
        // Any of those that are alike stands for any other.
        let alike = |one: &InstanceDump| {
            (one.group.clone(), one.zone.clone(), one.instance_type.clone(), one.market.clone())
        };
        let mut left: Vec<&InstanceDump> = here.instances.iter().collect();
        for instance in &self.cloud.instances {
            if let Some(at) = left.iter().position(|one| alike(one) == alike(instance)) {
                names.insert(instance.id.clone(), left.remove(at).id.clone());
            }
        }
        Names(names)
    }

    /// The recorded instances that did not come again, or are not in service yet.
    #[must_use]
    pub fn missing(&self, simulator: &Simulator) -> Vec<&str> {
        let names = self.names(simulator);
        let dumps = simulator.dump(Some(&self.region));
        let in_service = |id: &str| {
            let all = dumps.iter().flat_map(|dump| &dump.instances);
            all.into_iter().any(|one| one.id == id && one.lifecycle_state.as_deref() == Some("InService"))
        };
        let all = self.cloud.instances.iter().map(|one| one.id.as_str());
        all.filter(|id| !names.0.get(*id).is_some_and(|here| in_service(here))).collect()
    }
}

/// JSON as the tree that it was made of.
fn tree(value: &Value) -> Tree {
    match value {
        Value::Array(items) => Tree::list(items.iter().map(tree)),
        Value::Object(members) => {
            members.iter().fold(Tree::new(), |map, (name, member)| map.with(name, tree(member)))
        }
        Value::String(text) => Tree::from(text.as_str()),
        other => Tree::from(other.to_string().as_str()),
    }
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
