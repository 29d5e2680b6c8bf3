//! A group, its instances and what belongs to them, as AWS would describe them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::DateTime;

use crate::{
    Capacity, Group, GroupSettings, HealthStatus, Instance, InstanceFacts, InstanceState, Launch,
    LaunchTemplateVersion, LifecycleState, PurchaseOption, TemplateRef,
};

pub(crate) fn group(name: &str, instances: &[&str]) -> Group {
    let launch = Launch { template: TemplateRef { id: "lt-1".to_owned(), version: Some(1) }, mixed: None };
    Group {
        name: name.to_owned(),
        arn: format!(
            "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:0:autoScalingGroupName/{name}"
        ),
        capacity: Capacity { min: 0, max: 10, desired: 3 },
        settings: GroupSettings {
            launch,
            subnets: BTreeSet::from(["subnet-1".to_owned()]),
            health_check_types: BTreeSet::from(["EC2".to_owned()]),
            health_check_grace_period: 300,
            default_cooldown: 300,
            default_instance_warmup: None,
            protect_new_instances: true,
            capacity_rebalance: false,
            maintenance_policy: None,
            retains_abandoned: false,
        },
        zones: BTreeSet::from(["eu-west-1a".to_owned()]),
        status: None,
        suspended_processes: BTreeMap::new(),
        tags: BTreeMap::new(),
        instances: instances.iter().map(|id| instance(id)).collect(),
    }
}

pub(crate) fn instance(id: &str) -> Instance {
    Instance {
        id: id.to_owned(),
        instance_type: Some("m7i.large".to_owned()),
        zone: "eu-west-1a".to_owned(),
        lifecycle: LifecycleState::InService,
        health: HealthStatus::Healthy,
        template: Some(("lt-1".to_owned(), 1)),
        protected: true,
    }
}

pub(crate) fn machine(id: &str) -> InstanceFacts {
    InstanceFacts {
        id: id.to_owned(),
        state: InstanceState::Running,
        private_ip: Some("10.0.0.7".to_owned()),
        ipv6: BTreeSet::new(),
        private_dns: Some("ip-10-0-0-7.internal".to_owned()),
        public_ip: None,
        public_dns: None,
        purchase: PurchaseOption::OnDemand,
        launched_at: None,
        tags: BTreeMap::from([("Name".to_owned(), "worker".to_owned())]),
    }
}

pub(crate) fn version(number: i64, description: &str, image: &str) -> LaunchTemplateVersion {
    LaunchTemplateVersion {
        number,
        description: Some(description.to_owned()),
        content: None,
        image_id: Some(image.to_owned()),
        created_at: DateTime::UNIX_EPOCH,
    }
}
