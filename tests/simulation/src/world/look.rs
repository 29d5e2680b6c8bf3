//! What tests look at: the pool's standing, its Machines and instances, calls and events.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
};

use anyhow::{Context as _, Result};
use capasg_api::{
    ASGMachine,
    capi::Machine,
    conditions,
    names::{aws_name, labels, must_format_value},
};
use capasg_controllers::kubernetes::belongs_to;
use capasg_fake_aws::{Dump, GroupDump, InstanceDump, LogEntry, LogFilter};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{
    Pool, World,
    pool::{CLUSTER, NAMESPACE},
};
use crate::{CANARY, Drain};

impl World {
    /// What there is in the pools' account and region.
    #[must_use]
    pub fn dump(&self) -> Dump {
        let scope = self.scope();
        let found =
            self.simulator.dump(Some(&self.setup.region)).into_iter().find(|dump| dump.scope == scope);
        found.unwrap_or(Dump { scope, groups: Vec::new(), templates: Vec::new(), instances: Vec::new() })
    }

    /// What every account has in the region.
    #[must_use]
    pub fn dumps(&self) -> Vec<Dump> {
        self.simulator.dump(Some(&self.setup.region))
    }

    /// The name of a pool's group and launch template.
    #[must_use]
    pub fn group_name(&self, pool: &Pool) -> String {
        aws_name(&pool.key.namespace, &pool.cluster.name, &pool.key.name)
    }

    /// The name of the group of a pool of this name in the first Cluster.
    pub(crate) fn name_of_group(name: &str) -> String {
        aws_name(NAMESPACE, CLUSTER, name)
    }

    /// A pool's group.
    #[must_use]
    pub fn group(&self, pool: &Pool) -> Option<GroupDump> {
        let name = self.group_name(pool);
        self.dumps().into_iter().flat_map(|dump| dump.groups).find(|group| group.name == name)
    }

    /// The members of a pool's group, by id.
    #[must_use]
    pub fn instances(&self, pool: &Pool) -> Vec<InstanceDump> {
        let name = self.group_name(pool);
        let all = self.dumps().into_iter().flat_map(|dump| dump.instances);
        all.filter(|one| one.group.as_deref() == Some(name.as_str())).collect()
    }

    /// The ids of a pool's instances in service.
    #[must_use]
    pub fn in_service(&self, pool: &Pool) -> BTreeSet<String> {
        let instances = self.instances(pool).into_iter();
        instances
            .filter(|one| one.lifecycle_state.as_deref() == Some("InService"))
            .map(|one| one.id)
            .collect()
    }

    /// The ids of the instances that run outside any group.
    #[must_use]
    pub fn detached(&self) -> BTreeSet<String> {
        let region = self.simulator.dump(Some(&self.scope().region)).into_iter();
        let instances = region.filter(|dump| dump.scope == self.scope()).flat_map(|dump| dump.instances);
        let outside = instances.filter(|one| one.group.is_none()).map(|one| one.id);
        outside.filter(|id| self.simulator.runs(&self.scope(), id)).collect()
    }

    /// A pool's Machines by name.
    #[must_use]
    pub fn machines(&self, pool: &Pool) -> BTreeMap<String, Arc<Machine>> {
        let label = must_format_value(&pool.machine_pool.name);
        let all = self.api.state().machines.all().into_iter();
        all.filter(|(_, machine)| machine.labels().get(labels::POOL_NAME) == Some(&label))
            .map(|(key, machine)| (key.name, machine))
            .collect()
    }

    /// A pool's `ASGMachines` by name.
    #[must_use]
    pub fn asg_machines(&self, pool: &Pool) -> BTreeMap<String, Arc<ASGMachine>> {
        let all = self.api.state().asg_machines.all().into_iter();
        let object = self.api.state().pools.get(&pool.key);
        let of_pool = all.filter(|(_, machine)| belongs_to(machine, &pool.key, object.as_deref()));
        of_pool.map(|(key, machine)| (key.name, machine)).collect()
    }

    /// The Machine of an instance.
    ///
    /// # Errors
    /// If there is none.
    pub fn machine_of(&self, pool: &Pool, instance: &str) -> Result<String> {
        let machines = self.machines(pool);
        let name = machines.keys().find(|name| name.ends_with(instance)).cloned();
        name.with_context(|| format!("no Machine for {instance}"))
    }

    /// Whether core finds the pool `Running` with that many instances and nothing else is about to happen.
    #[must_use]
    pub fn is_running(&self, pool: &Pool, replicas: usize) -> bool {
        let (Some(own), Some(owner)) = (self.pool(pool), self.machine_pool(pool)) else { return false };
        let phase = owner.status.as_ref().and_then(|status| status.phase.as_deref());
        if phase != Some("Running") || own.spec.provider_id_list.len() != replicas {
            return false;
        }
        let machines = self.machines(pool);
        let instances = self.instances(pool);
        machines.len() == replicas
            && machines.values().all(|machine| machine.is_ready() && !machine.is_deleting())
            && self.asg_machines(pool).len() == replicas
            && instances.len() == replicas
            && instances.iter().all(|one| one.lifecycle_state.as_deref() == Some("InService"))
            && self.group(pool).is_some_and(|group| usize::try_from(group.desired) == Ok(replicas))
    }

    /// Whether a Cluster is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.api.state().clusters.all().iter().any(|(_, cluster)| cluster.is_paused())
    }

    /// Whether nothing of a pool is left, in Kubernetes and in the cloud.
    #[must_use]
    pub fn is_gone(&self, pool: &Pool) -> bool {
        self.is_let_go(pool) && self.group(pool).is_none() && !self.has_template(pool)
    }

    /// Whether nothing of a pool is left in Kubernetes.
    #[must_use]
    pub fn is_let_go(&self, pool: &Pool) -> bool {
        self.machine_pool(pool).is_none()
            && self.pool(pool).is_none()
            && self.machines(pool).is_empty()
            && self.asg_machines(pool).is_empty()
    }

    /// Whether a pool's launch template is there.
    #[must_use]
    pub fn has_template(&self, pool: &Pool) -> bool {
        let name = self.group_name(pool);
        self.dump().templates.iter().any(|template| template.name == name)
    }

    /// A condition of a pool.
    #[must_use]
    pub fn condition(&self, pool: &Pool, type_: &str) -> Option<Condition> {
        let pool = self.pool(pool)?;
        conditions::get(&pool.status.as_ref()?.conditions, type_).cloned()
    }

    /// Whether a pool's condition has this status and reason.
    #[must_use]
    pub fn says(&self, pool: &Pool, type_: &str, status: &str, reason: &str) -> bool {
        self.condition(pool, type_).is_some_and(|found| found.status == status && found.reason == reason)
    }

    /// The number of the last call to AWS, for [`Self::calls_since`].
    #[must_use]
    pub fn mark(&self) -> u64 {
        // Counting nothing is cheap, however long the log is.
        self.simulator.counts(&LogFilter::region(&self.setup.region).since(u64::MAX)).last_sequence
    }

    /// The calls to AWS after a mark, only those of an operation if one is named.
    #[must_use]
    pub fn calls_since(&self, mark: u64, action: Option<&str>) -> Vec<LogEntry> {
        let filter = LogFilter::region(&self.setup.region).since(mark);
        self.simulator.log(&action.map_or(filter.clone(), |action| filter.action(action)))
    }

    /// The calls after a mark that change something.
    #[must_use]
    pub fn mutations_since(&self, mark: u64) -> Vec<LogEntry> {
        self.simulator.log(&LogFilter::region(&self.setup.region).since(mark).mutations())
    }

    /// The messages of events with a reason.
    #[must_use]
    pub fn events(&self, reason: &str) -> Vec<String> {
        let events = self.api.events().into_iter();
        events.filter(|(_, event)| event.reason == reason).map(|(_, event)| event.message).collect()
    }

    /// How the drain of a Machine went, oldest first.
    #[must_use]
    pub fn drains(&self, machine: &str) -> Vec<Drain> {
        let core = self.core.state();
        core.drained.iter().filter(|(name, _)| name == machine).map(|(_, drain)| drain.clone()).collect()
    }

    /// Where bootstrap data shows although it must not: objects, events, errors, journal, and AWS apart from user data.
    #[must_use]
    pub fn leaks(&self) -> Vec<String> {
        let mut places: Vec<(String, String)> = Vec::new();
        {
            let api = self.api.state();
            for (key, pool) in api.pools.all() {
                places.push((
                    format!("ASGMachinePool {key}"),
                    serde_json::to_string(pool.as_ref()).unwrap_or_default(),
                ));
            }
            for (key, machine) in api.asg_machines.all() {
                places.push((
                    format!("ASGMachine {key}"),
                    serde_json::to_string(machine.as_ref()).unwrap_or_default(),
                ));
            }
        }
        for (_, event) in self.api.events() {
            places.push(("an event".to_owned(), event.message));
        }
        for (_, pool, error) in &self.errors {
            places.push((format!("an error of {pool}"), error.clone()));
        }
        for entry in self.journal.since(0) {
            places.push(("the journal".to_owned(), entry.what));
        }
        let dump = self.dump();
        for template in &dump.templates {
            places.push(("a launch template".to_owned(), format!("{template:?}")));
        }
        for group in &dump.groups {
            places.push(("a group".to_owned(), format!("{group:?}")));
        }
        for instance in &dump.instances {
            places.push(("an instance's tags".to_owned(), format!("{:?}", instance.tags)));
        }
        places.retain(|(_, text)| text.contains(CANARY));
        places.into_iter().map(|(place, _)| place).collect()
    }

    /// Everything that helps to understand why a run went wrong.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!("at {} after {:?}\n", self.now(), self.clock.elapsed());
        for pool in &self.pools {
            self.describe_pool(pool, &mut text);
        }
        let journal = self.journal.since(self.journal.len().saturating_sub(40));
        for entry in journal {
            let _ = writeln!(
                text,
                "  wrote {} {:?} {} changed={}",
                entry.at, entry.port, entry.what, entry.changed
            );
        }
        for call in self.calls_since(self.mark().saturating_sub(30), None) {
            let _ = writeln!(
                text,
                "  call {} {} {:?} {:?}",
                call.time, call.action, call.instances, call.outcome
            );
        }
        for (at, pool, error) in self.errors.iter().rev().take(10) {
            let _ = writeln!(text, "  error {at} {pool}: {error}");
        }
        text
    }

    fn describe_pool(&self, pool: &Pool, text: &mut String) {
        let object = self.pool(pool);
        let owner = self.machine_pool(pool);
        let _ = writeln!(
            text,
            "pool {} wants {:?} phase {:?} list {:?}",
            pool.key,
            owner.as_ref().and_then(|own| own.spec.replicas),
            owner.as_ref().and_then(|own| own.status.as_ref()?.phase.clone()),
            object.as_ref().map(|own| own.spec.provider_id_list.clone()),
        );
        for condition in
            object.iter().filter_map(|own| own.status.as_ref()).flat_map(|status| &status.conditions)
        {
            let _ = writeln!(
                text,
                "  {}={} {} {}",
                condition.type_, condition.status, condition.reason, condition.message
            );
        }
        let _ = writeln!(
            text,
            "  group {:?}",
            self.group(pool).map(|own| (own.desired, own.min, own.max, own.status))
        );
        for one in self.instances(pool) {
            let _ = writeln!(text, "  instance {} {} {:?}", one.id, one.state, one.lifecycle_state);
        }
        for (name, machine) in self.machines(pool) {
            let _ = writeln!(
                text,
                "  Machine {name} deleting={} ready={} annotations={:?}",
                machine.is_deleting(),
                machine.is_ready(),
                machine.annotations()
            );
        }
        for (name, machine) in self.asg_machines(pool) {
            let _ = writeln!(
                text,
                "  ASGMachine {name} deleting={} annotations={:?}",
                machine.metadata.deletion_timestamp.is_some(),
                machine.annotations()
            );
        }
    }
}
