//! A look at what there is: groups, templates and instances, for simulated kubelets and for "nothing is left".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Scope, Simulator, autoscaling,
    ec2::{Instance, Template, Volume},
    region::Region,
    time::timestamp,
};

/// What exists in a scope, as it is now (reads that lag do not concern it).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dump {
    /// Whose and where.
    #[serde(flatten)]
    pub scope: Scope,
    /// Groups by name, those being deleted included.
    pub groups: Vec<GroupDump>,
    /// Launch templates by id.
    pub templates: Vec<TemplateDump>,
    /// Instances by id, those that ended less than an hour ago included.
    pub instances: Vec<InstanceDump>,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupDump {
    /// Its name.
    pub name: String,
    /// Its ARN.
    pub arn: String,
    /// `MinSize`.
    pub min: i64,
    /// `MaxSize`.
    pub max: i64,
    /// `DesiredCapacity`.
    pub desired: i64,
    /// Set while it is being deleted.
    pub status: Option<String>,
    /// The launch template's id and the version as the group names it.
    pub template: (String, String),
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Suspended processes.
    pub suspended: Vec<String>,
    /// Names of its lifecycle hooks.
    pub hooks: Vec<String>,
    /// Ids of its instances.
    pub instances: Vec<String>,
}

/// A launch template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateDump {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The default version.
    pub default_version: u64,
    /// Every version that is left, with its description.
    pub versions: BTreeMap<u64, String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceDump {
    /// Its id.
    pub id: String,
    /// EC2's state: `pending`, `running`, `stopping`, `stopped`, `shutting-down` or `terminated`.
    pub state: String,
    /// Its zone; `aws:///<zone>/<id>` is its provider id.
    pub zone: String,
    /// Its subnet.
    pub subnet: String,
    /// Its type.
    pub instance_type: String,
    /// Its image.
    pub image: String,
    /// `on-demand` or `spot`.
    pub market: String,
    /// Its private address.
    pub private_ip: String,
    /// Its private DNS name.
    pub private_dns_name: String,
    /// When it was launched.
    pub launch_time: String,
    /// Its group, while it is in one.
    pub group: Option<String>,
    /// The group's view, for example `InService` or `Terminating:Wait`.
    pub lifecycle_state: Option<String>,
    /// The group's view, `Healthy` or `Unhealthy`.
    pub health: Option<String>,
    /// Protected from scale-in.
    pub protected: bool,
    /// Launch template id and version number it came from, while it is in a group.
    pub template: Option<(String, u64)>,
    /// User data in base64, as its template version had it.
    pub user_data: Option<String>,
    /// Its EBS volumes, by device name.
    #[serde(default)]
    pub volumes: Vec<Volume>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

impl Simulator {
    /// What exists, in one region or everywhere, by account and region.
    #[must_use]
    pub fn dump(&self, region: Option<&str>) -> Vec<Dump> {
        let world = self.world();
        let chosen = world.regions.values().filter(|own| region.is_none_or(|name| own.scope.region == name));
        chosen.map(dump).collect()
    }

    /// What a pool could leave behind in a region: groups, templates, and machines that are not ended or ending.
    /// Empty means that nothing is left in the cloud.
    #[must_use]
    pub fn leftovers(&self, region: Option<&str>) -> Vec<String> {
        let mut left = Vec::new();
        for dump in self.dump(region) {
            left.extend(dump.groups.into_iter().map(|group| group.arn));
            left.extend(
                dump.templates.into_iter().map(|template| format!("{} ({})", template.id, template.name)),
            );
            let is_left = |state: &str| ["pending", "running", "stopping", "stopped"].contains(&state);
            let alive = dump.instances.into_iter().filter(|one| is_left(&one.state));
            left.extend(alive.map(|instance| instance.id));
        }
        left
    }
}

fn dump(region: &Region) -> Dump {
    Dump {
        scope: region.scope.clone(),
        groups: region.state.groups.values().map(group).collect(),
        templates: region.state.templates.values().map(template).collect(),
        instances: region.state.instances.values().map(|one| instance(region, one)).collect(),
    }
}

fn group(group: &autoscaling::Group) -> GroupDump {
    let template = group.source.template();
    GroupDump {
        name: group.name.clone(),
        arn: group.arn.clone(),
        min: group.min,
        max: group.max,
        desired: group.desired,
        status: group.status.clone(),
        template: (template.id.clone(), template.version.clone()),
        tags: group.tags.iter().map(|(key, tag)| (key.clone(), tag.value.clone())).collect(),
        suspended: group.suspended.keys().cloned().collect(),
        hooks: group.hooks.keys().cloned().collect(),
        instances: group.members.iter().cloned().collect(),
    }
}

fn template(template: &Template) -> TemplateDump {
    let versions = template.versions.iter();
    TemplateDump {
        id: template.id.clone(),
        name: template.name.clone(),
        default_version: template.default_version,
        versions: versions
            .map(|(number, one)| (*number, one.description.clone().unwrap_or_default()))
            .collect(),
        tags: template.tags.clone(),
    }
}

fn instance(region: &Region, instance: &Instance) -> InstanceDump {
    let own = instance.group.as_ref();
    InstanceDump {
        id: instance.id.clone(),
        state: instance.state.as_str().to_owned(),
        zone: instance.zone.clone(),
        subnet: instance.subnet.clone(),
        instance_type: instance.kind.clone(),
        image: instance.image.clone(),
        market: match instance.market {
            crate::ec2::Market::OnDemand => "on-demand".to_owned(),
            crate::ec2::Market::Spot => "spot".to_owned(),
        },
        private_ip: instance.address.clone(),
        private_dns_name: instance.dns_name(&region.scope.region),
        launch_time: timestamp(instance.launched),
        group: own.map(|own| own.group.clone()),
        lifecycle_state: own.map(|own| own.lifecycle.as_str().to_owned()),
        health: own.map(|own| if own.healthy { "Healthy" } else { "Unhealthy" }.to_owned()),
        protected: own.is_some_and(|own| own.protected),
        template: own.and_then(|own| own.template.as_ref()).map(|from| (from.id.clone(), from.number)),
        user_data: instance.user_data.as_deref().map(str::to_owned),
        volumes: instance.volumes.clone(),
        tags: instance.tags.clone(),
    }
}
