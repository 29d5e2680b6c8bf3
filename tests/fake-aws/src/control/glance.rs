//! Cheap looks at what is, for those who look at every step.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::{
    Scope, Simulator,
    autoscaling::{activities, members},
    ec2::{Ec2State, Instance},
};

/// An instance refresh as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshGlance {
    /// Its id.
    pub id: String,
    /// Its status, as a describe shows it.
    pub status: &'static str,
    /// When it was asked for.
    pub asked: DateTime<Utc>,
    /// When it was over.
    pub ended: Option<DateTime<Utc>>,
    /// When its cancellation was requested.
    pub cancelled: Option<DateTime<Utc>>,
    /// Percent of the instances that stay in service.
    pub kept: i64,
    /// Whether it has a desired configuration.
    pub configured: bool,
}

impl RefreshGlance {
    /// Whether it still takes instances away.
    #[must_use]
    pub fn replaces(&self) -> bool {
        matches!(self.status, "Pending" | "InProgress")
    }
}

impl Simulator {
    /// The instance refreshes of a group, the oldest first.
    #[must_use]
    pub fn refreshes(&self, scope: &Scope, group: &str) -> Vec<RefreshGlance> {
        let world = self.world();
        let group = world.regions.get(scope).and_then(|region| region.state.groups.get(group));
        let all = group.into_iter().flat_map(|group| &group.refreshes);
        all.map(|refresh| RefreshGlance {
            id: refresh.id.clone(),
            status: refresh.status.as_str(),
            asked: refresh.asked,
            ended: refresh.ended,
            cancelled: refresh.cancelled,
            kept: refresh.preferences.min,
            configured: refresh.desired.is_some(),
        })
        .collect()
    }

    /// The launches of a group that ended without success since the last that succeeded, oldest first: when each began, and
    /// the words of its activity.
    #[must_use]
    pub fn failed_launches(&self, scope: &Scope, group: &str) -> Vec<(DateTime<Utc>, String)> {
        let world = self.world();
        let group = world.regions.get(scope).and_then(|region| region.state.groups.get(group));
        group.map(activities::failed_launches).unwrap_or_default()
    }

    /// The desired capacity of a group.
    #[must_use]
    pub fn desired(&self, scope: &Scope, group: &str) -> Option<i64> {
        let world = self.world();
        Some(world.regions.get(scope)?.state.groups.get(group)?.desired)
    }

    /// The ids of a group's members that count toward its desired capacity.
    #[must_use]
    pub fn counted(&self, scope: &Scope, group: &str) -> Vec<String> {
        let world = self.world();
        let Some(region) = world.regions.get(scope) else { return Vec::new() };
        let Some(group) = region.state.groups.get(group) else { return Vec::new() };
        let counted = members(&region.state, group).filter(|(_, own)| own.lifecycle.counts());
        counted.map(|(instance, _)| instance.id.clone()).collect()
    }

    /// The launch template version that a group launches from: the template's id and the version's number.
    #[must_use]
    pub fn pinned(&self, scope: &Scope, group: &str) -> Option<(String, u64)> {
        let world = self.world();
        let state = &world.regions.get(scope)?.state;
        let source = state.groups.get(group)?.source.template();
        let (number, _) = state.template(Some(&source.id), None)?.version(&source.version)?;
        Some((source.id.clone(), number))
    }

    /// Whether a group names the version that it launches from by number, not as `$Latest` or `$Default`.
    #[must_use]
    pub fn is_pinned_by_number(&self, scope: &Scope, group: &str) -> bool {
        let world = self.world();
        let group = world.regions.get(scope).and_then(|region| region.state.groups.get(group));
        group.is_some_and(|group| group.source.template().version.parse::<u64>().is_ok())
    }

    /// The launch template version that a member of a group was launched from.
    #[must_use]
    pub fn launched_from(&self, scope: &Scope, id: &str) -> Option<(String, u64)> {
        let world = self.world();
        let own = world.regions.get(scope)?.state.instances.get(id)?.group.as_ref()?;
        own.template.as_ref().map(|from| (from.id.clone(), from.number))
    }

    /// The user data of a launch template version, in base64.
    #[must_use]
    pub fn user_data_of_version(&self, scope: &Scope, template: &str, number: u64) -> Option<String> {
        let world = self.world();
        let template = world.regions.get(scope)?.state.template(Some(template), None)?;
        let (_, version) = template.version(&number.to_string())?;
        version.data.text_of("UserData").map(str::to_owned)
    }

    /// The user data of a machine in any scope, in base64.
    #[must_use]
    pub fn user_data(&self, id: &str) -> Option<String> {
        let world = self.world();
        let instance = world.regions.values().find_map(|region| region.state.instances.get(id))?;
        instance.user_data.as_deref().map(str::to_owned)
    }

    /// The least and the most instances of a group.
    #[must_use]
    pub fn bounds(&self, scope: &Scope, group: &str) -> Option<(i64, i64)> {
        let world = self.world();
        let group = world.regions.get(scope)?.state.groups.get(group)?;
        Some((group.min, group.max))
    }

    /// Whether a group may launch replacements before it ends what they replace.
    #[must_use]
    pub fn launches_first(&self, scope: &Scope, group: &str) -> bool {
        let world = self.world();
        let group = world.regions.get(scope).and_then(|region| region.state.groups.get(group));
        group.is_some_and(|group| {
            group.flag("CapacityRebalance") || group.attributes.contains_key("InstanceMaintenancePolicy")
        })
    }

    /// Whether a group has a lifecycle hook of this name.
    #[must_use]
    pub fn has_hook(&self, scope: &Scope, group: &str, hook: &str) -> bool {
        let world = self.world();
        let group = world.regions.get(scope).and_then(|region| region.state.groups.get(group));
        group.is_some_and(|group| group.hooks.contains_key(hook))
    }

    /// The ids of machines that run and have user data, in any scope.
    #[must_use]
    pub fn running(&self) -> BTreeSet<String> {
        let world = self.world();
        let all = world.regions.values().flat_map(|region| region.state.instances.values());
        all.filter(|one| one.state == Ec2State::Running && one.user_data.is_some())
            .map(|one| one.id.clone())
            .collect()
    }

    /// Whether a machine is there: neither shutting down nor gone.
    #[must_use]
    pub fn runs(&self, scope: &Scope, id: &str) -> bool {
        let world = self.world();
        let instance = world.regions.get(scope).and_then(|region| region.state.instances.get(id));
        instance.is_some_and(Instance::exists)
    }

    /// The value of a tag of a group.
    #[must_use]
    pub fn tag_of(&self, scope: &Scope, group: &str, tag: &str) -> Option<String> {
        let world = self.world();
        let tags = &world.regions.get(scope)?.state.groups.get(group)?.tags;
        tags.get(tag).map(|tag| tag.value.clone())
    }

    /// The values of a tag on groups and on launch templates, sorted.
    #[must_use]
    pub fn owned(&self, scope: &Scope, tag: &str) -> (Vec<String>, Vec<String>) {
        let world = self.world();
        let Some(region) = world.regions.get(scope) else { return (Vec::new(), Vec::new()) };
        let groups = region.state.groups.values().filter_map(|group| group.tags.get(tag));
        let templates = region.state.templates.values().filter_map(|template| template.tags.get(tag));
        let mut groups: Vec<String> = groups.map(|tag| tag.value.clone()).collect();
        let mut templates: Vec<String> = templates.cloned().collect();
        groups.sort_unstable();
        templates.sort_unstable();
        (groups, templates)
    }
}
