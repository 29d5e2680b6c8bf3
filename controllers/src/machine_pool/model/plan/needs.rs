//! The facts that a decision requires, and that are not known.

use std::collections::BTreeSet;

/// Facts that are read only if a decision requires them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each requested or not")]
pub struct Needs {
    /// A live LIST of Machines and ASGMachines.
    pub live_machines: bool,
    /// A read of the group alone.
    pub fresh_group: bool,
    /// A read of the launch template and its versions.
    pub fresh_template: bool,
    /// EC2's description of these instances.
    pub facts: BTreeSet<String>,
    /// The bootstrap data itself.
    pub user_data: bool,
    /// The account of the credentials.
    pub account: bool,
    /// Our hook.
    pub hook: bool,
    /// Our hook, read now.
    pub fresh_hook: bool,
    /// The group's instance refreshes.
    pub refreshes: bool,
}

impl Needs {
    /// Whether decide had all facts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the facts that another decision requires.
    pub fn merge(&mut self, other: Self) {
        let Self {
            live_machines,
            fresh_group,
            fresh_template,
            facts,
            user_data,
            account,
            hook,
            fresh_hook,
            refreshes,
        } = other;
        self.live_machines |= live_machines;
        self.fresh_group |= fresh_group;
        self.fresh_template |= fresh_template;
        self.facts.extend(facts);
        self.user_data |= user_data;
        self.account |= account;
        self.hook |= hook;
        self.fresh_hook |= fresh_hook;
        self.refreshes |= refreshes;
    }
}
