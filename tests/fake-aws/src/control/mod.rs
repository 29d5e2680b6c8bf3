//! What tests do to the world besides calling its APIs: settings, resources, mishaps, and a look at everything.

mod dump;
mod glance;
mod iam;

use std::{collections::BTreeMap, sync::Arc};

pub use dump::{Dump, GroupDump, InstanceDump, TemplateDump};
pub use glance::RefreshGlance;

use crate::{
    Scope, Settings, Simulator,
    autoscaling::replacements,
    ec2::{Image, Instance, InstanceType, SecurityGroup, Snapshot, Subnet, instances},
    events::Event,
    parameters::Parameter,
    region::Region,
};

impl Simulator {
    /// Forgets a region (its groups, instances, faults and log, in every account), or everything.
    pub fn reset(&self, region: Option<&str>) {
        let mut world = self.world();
        if let Some(region) = region {
            world.regions.retain(|scope, _| scope.region != region);
            world.log.clear_region(region);
            world.faults.clear(Some(region));
        } else {
            world.regions.clear();
            world.log.clear();
            world.faults.clear(None);
            world.iam.reset();
        }
    }

    /// The settings of a scope, or those that new scopes start with.
    #[must_use]
    pub fn settings(&self, scope: Option<&Scope>) -> Settings {
        let mut world = self.world();
        match scope {
            Some(scope) => world.region(scope).settings.clone(),
            None => world.settings.clone(),
        }
    }

    /// Replaces the settings of a scope, or of every scope that is and will be.
    pub fn set_settings(&self, scope: Option<&Scope>, settings: &Settings) {
        let mut world = self.world();
        if let Some(scope) = scope {
            world.region(scope).settings = settings.clone();
        } else {
            world.settings = settings.clone();
            for region in world.regions.values_mut() {
                region.settings = settings.clone();
            }
        }
    }

    /// Limits how many instances of a type may exist in a zone at once; `*` stands for any. `None` lifts the limit.
    pub fn set_capacity(&self, scope: &Scope, instance_type: &str, zone: &str, limit: Option<usize>) {
        self.world().region(scope).capacity.set(instance_type, zone, limit);
    }

    /// Adds or replaces a subnet, and its VPC if that is new.
    pub fn put_subnet(&self, scope: &Scope, subnet: Subnet) {
        let mut world = self.world();
        let network = world.region(scope).network_mut();
        network.vpcs.entry(subnet.vpc.clone()).or_insert_with(|| "10.0.0.0/16".to_owned());
        network.subnets.insert(subnet.id.clone(), subnet);
    }

    /// Sets how many addresses of a subnet instances can take; no effect on a subnet that does not exist.
    pub fn set_addresses(&self, scope: &Scope, subnet: &str, addresses: usize) {
        let mut world = self.world();
        if let Some(subnet) = world.region(scope).network_mut().subnets.get_mut(subnet) {
            subnet.addresses = addresses;
        }
    }

    /// Adds or replaces a security group.
    pub fn put_security_group(&self, scope: &Scope, group: SecurityGroup) {
        let mut world = self.world();
        world.region(scope).network_mut().security_groups.insert(group.id.clone(), group);
    }

    /// Adds or replaces an image.
    pub fn put_image(&self, scope: &Scope, image: Image) {
        let mut world = self.world();
        world.region(scope).network_mut().images.insert(image.id.clone(), image);
    }

    /// Adds a snapshot of a volume of this size in GiB.
    pub fn put_snapshot(&self, scope: &Scope, id: &str, volume_size: u32) {
        let snapshot = Snapshot { id: id.to_owned(), volume_size };
        self.world().region(scope).network_mut().snapshots.insert(id.to_owned(), snapshot);
    }

    /// Deregisters an image: launches from it fail from now on.
    pub fn remove_image(&self, scope: &Scope, id: &str) {
        self.world().region(scope).network_mut().images.remove(id);
    }

    /// Somebody launches an instance like another one, outside of groups; its ID, if there is the other.
    #[must_use]
    pub fn launch_like(&self, scope: &Scope, other: &str) -> Option<String> {
        let mut world = self.world();
        let now = world.now;
        let region = world.region(scope);
        let mut instance = region.state.instances.get(other)?.clone();
        instance.id = region.ids.resource("i");
        instance.launched = now;
        instance.group = None;
        instance.tags.retain(|key, _| !key.starts_with("aws:"));
        let id = instance.id.clone();
        region.state.instances.insert(id.clone(), instance);
        Some(id)
    }

    /// Another type for an instance, as if it had been launched with it.
    pub fn set_instance_type(&self, scope: &Scope, id: &str, kind: &str) {
        let mut world = self.world();
        if let Some(instance) = world.region(scope).state.instances.get_mut(id) {
            kind.clone_into(&mut instance.kind);
        }
    }

    /// Adds or replaces an instance type.
    pub fn put_instance_type(&self, scope: &Scope, kind: InstanceType) {
        let mut world = self.world();
        world.region(scope).network_mut().instance_types.insert(kind.name.clone(), kind);
    }

    /// Adds an instance profile.
    pub fn put_instance_profile(&self, scope: &Scope, name: &str) {
        self.world().region(scope).network_mut().instance_profiles.insert(name.to_owned());
    }

    /// Adds a key pair.
    pub fn put_key_pair(&self, scope: &Scope, name: &str) {
        self.world().region(scope).network_mut().key_pairs.insert(name.to_owned());
    }

    /// Sets a parameter; its version counts up.
    pub fn put_parameter(&self, scope: &Scope, name: &str, value: &str) {
        let mut world = self.world();
        let modified = world.now;
        let parameters = Arc::make_mut(&mut world.region(scope).state.parameters);
        let version = parameters.get(name).map_or(1, |parameter| parameter.version + 1);
        parameters.insert(name.to_owned(), Parameter { value: value.to_owned(), version, modified });
    }

    /// All parameters and their values, by name.
    #[must_use]
    pub fn parameters(&self, scope: &Scope) -> BTreeMap<String, String> {
        let mut world = self.world();
        let parameters = &world.region(scope).state.parameters;
        parameters.iter().map(|(name, parameter)| (name.clone(), parameter.value.clone())).collect()
    }

    /// Removes a parameter.
    pub fn remove_parameter(&self, scope: &Scope, name: &str) {
        Arc::make_mut(&mut self.world().region(scope).state.parameters).remove(name);
    }

    /// Ends a machine out of band, as a person with EC2's console would; false if there is no such machine.
    pub fn kill(&self, scope: &Scope, id: &str) -> bool {
        self.out_of_band(scope, id, instances::shut_down)
    }

    /// Stops a machine, as a user with EC2's console would; false if it does not run.
    pub fn stop(&self, scope: &Scope, id: &str) -> bool {
        self.out_of_band(scope, id, instances::stop)
    }

    /// Changes a machine by no call; false if there is no such machine.
    fn out_of_band(&self, scope: &Scope, id: &str, change: fn(&mut Region, &str)) -> bool {
        let mut world = self.world();
        let region = world.region(scope);
        region.remember();
        let there = region.state.instances.get(id).is_some_and(Instance::exists);
        change(region, id);
        there
    }

    /// Warns of a spot interruption; the machine ends two minutes later ([`Settings::spot_warning_millis`]).
    pub fn interrupt(&self, scope: &Scope, id: &str) -> bool {
        let mut world = self.world();
        let region = world.region(scope);
        let there = region.state.instances.get(id).is_some_and(Instance::exists);
        if there {
            let detail = serde_json::json!({"instance-id": id, "instance-action": "terminate"});
            region.emit_ec2(id, "EC2 Spot Instance Interruption Warning", &detail);
            region.schedule(region.settings.spot_warning_millis, Event::Interrupted(id.to_owned()));
        }
        there
    }

    /// Recommends to replace a Spot machine; its group does so if it has `CapacityRebalance`.
    pub fn recommend(&self, scope: &Scope, id: &str) -> bool {
        let mut world = self.world();
        let region = world.region(scope);
        let there = region.state.instances.get(id).is_some_and(Instance::exists);
        if there {
            let detail = serde_json::json!({"instance-id": id});
            region.emit_ec2(id, "EC2 Instance Rebalance Recommendation", &detail);
            replacements::recommended(region, id);
        }
        there
    }

    /// Tells by an AWS Health event that a machine will be retired; nothing else happens to it.
    pub fn retire(&self, scope: &Scope, id: &str) -> bool {
        let mut world = self.world();
        let region = world.region(scope);
        let there = region.state.instances.get(id).is_some_and(Instance::exists);
        if there {
            let detail = serde_json::json!({
                "service": "EC2",
                "eventTypeCode": "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
                "eventTypeCategory": "scheduledChange",
                "statusCode": "upcoming",
                "affectedEntities": [{"entityValue": id}],
            });
            region.emit("aws.health", "AWS Health Event", &[id.to_owned()], &detail);
        }
        there
    }

    /// Makes a queue, if there is none of the name; gives its URL. No event comes to it without a rule.
    #[expect(clippy::must_use_candidate, reason = "it is called for its effect")]
    pub fn put_queue(&self, scope: &Scope, name: &str) -> String {
        self.world().region(scope).put_queue(name)
    }

    /// Deletes a queue with its messages and rules.
    pub fn remove_queue(&self, scope: &Scope, name: &str) {
        self.world().region(scope).bus.remove(name);
    }

    /// Sends the events that match an EventBridge pattern to a queue.
    pub fn put_rule(&self, scope: &Scope, queue: &str, pattern: serde_json::Value) {
        self.world().region(scope).bus.put_rule(queue, pattern);
    }

    /// Whether a receive would find a message now.
    #[must_use]
    pub fn has_messages(&self, scope: &Scope) -> bool {
        let mut world = self.world();
        let now = world.now;
        world.region(scope).bus.has_messages(now)
    }

    /// How many messages the queues hold, seen or hidden.
    #[must_use]
    pub fn messages(&self, scope: &Scope) -> usize {
        self.world().region(scope).bus.messages()
    }

    /// Makes a machine's status checks fail, or pass again.
    #[expect(clippy::must_use_candidate, reason = "it is called for its effect")]
    pub fn impair(&self, scope: &Scope, id: &str, impaired: bool) -> bool {
        let mut world = self.world();
        let region = world.region(scope);
        region.remember();
        let Some(instance) = region.state.instances.get_mut(id) else { return false };
        instance.impaired = impaired;
        if impaired {
            region.schedule(region.settings.impaired_millis, Event::HealthCheck(id.to_owned()));
        }
        true
    }

    /// Puts a `CloudWatch` alarm into the state ALARM, or back.
    pub fn set_alarm(&self, scope: &Scope, alarm: &str, on: bool) {
        let mut world = self.world();
        let alarms = &mut world.region(scope).alarms;
        if on {
            alarms.insert(alarm.to_owned());
        } else {
            alarms.remove(alarm);
        }
    }

    /// Makes the newest refresh of a group show another status than it has, or its own again; false if there is none.
    #[expect(clippy::must_use_candidate, reason = "it is called for its effect")]
    pub fn disguise_refresh(&self, scope: &Scope, group: &str, status: Option<&str>) -> bool {
        let mut world = self.world();
        let region = world.region(scope);
        let Some(refresh) = region.state.groups.get(group).and_then(|group| group.refreshes.last()) else {
            return false;
        };
        match status {
            Some(status) => region.disguises.insert(refresh.id.clone(), status.to_owned()),
            None => region.disguises.remove(&refresh.id),
        };
        true
    }

    /// The scope that an instance is in; ids are unique over all of them.
    #[must_use]
    pub fn scope_of(&self, instance: &str) -> Option<Scope> {
        let world = self.world();
        let region = world.regions.values().find(|region| region.state.instances.contains_key(instance));
        region.map(|region| region.scope.clone())
    }
}
