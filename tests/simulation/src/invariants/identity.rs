//! Never a duplicate group, template or machine.

use capasg_api::ASGMachine;
use capasg_cloud::Clock;
use kube::ResourceExt as _;

use super::state::{Inner, Invariants};

#[cfg(test)]
mod tests;

impl Invariants {
    /// No pool ever has two groups or two launch templates.
    pub(super) fn no_second_group_or_template(&self, inner: &mut Inner) {
        let (mut groups, mut templates) = (Vec::new(), Vec::new());
        for scope in self.scopes() {
            let (more, templates_too) = self.simulator.owned(&scope, capasg_api::names::tags::OWNER_ID);
            groups.extend(more);
            templates.extend(templates_too);
        }
        groups.sort_unstable();
        templates.sort_unstable();
        for (what, names) in [("group", groups), ("launch template", templates)] {
            let twice = names.iter().zip(names.iter().skip(1)).find(|(one, next)| one == next);
            if let Some((owner, _)) = twice {
                let now = self.clock.now();
                inner.breaks(now, "no_second_group_or_template", format!("a second {what} of owner {owner}"));
            }
        }
    }

    /// No instance ever has two `ASGMachines`, whichever process created the first (D5).
    pub(super) fn no_second_machine(&self, inner: &mut Inner, created: &ASGMachine) {
        let instance = &created.spec.instance_id;
        let all = self.api.state().asg_machines.all().into_iter();
        let names: Vec<String> = all
            .filter(|(_, machine)| machine.spec.instance_id == *instance)
            .map(|(_, machine)| machine.name_any())
            .collect();
        if names.len() > 1 {
            inner.breaks(self.clock.now(), "no_second_machine", format!("{instance} has {names:?}"));
        }
    }
}
