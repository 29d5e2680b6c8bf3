//! Cheap looks at what is, for those who look at every step.

use std::collections::BTreeSet;

use crate::{
    Scope, Simulator,
    autoscaling::members,
    ec2::{Ec2State, Instance},
};

impl Simulator {
    /// The ids of a group's members that count toward its desired capacity.
    #[must_use]
    pub fn counted(&self, scope: &Scope, group: &str) -> Vec<String> {
        let world = self.world();
        let Some(region) = world.regions.get(scope) else { return Vec::new() };
        let Some(group) = region.state.groups.get(group) else { return Vec::new() };
        let counted = members(&region.state, group).filter(|(_, own)| own.lifecycle.counts());
        counted.map(|(instance, _)| instance.id.clone()).collect()
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
