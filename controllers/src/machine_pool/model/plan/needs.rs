//! The facts that a decision is missing.

use std::collections::BTreeSet;

/// Facts that are read only when a decision needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each requested or not")]
pub struct Needs {
    /// A live LIST of Machines and ASGMachines.
    pub live_machines: bool,
    /// A read of this group alone.
    pub fresh_group: bool,
    /// What EC2 says about these instances.
    pub facts: BTreeSet<String>,
    /// The bootstrap data itself.
    pub user_data: bool,
    /// The account of the credentials.
    pub account: bool,
    /// Our hook.
    pub hook: bool,
    /// Our hook, as it is now.
    pub fresh_hook: bool,
    /// The group's instance refreshes.
    pub refreshes: bool,
}

impl Needs {
    /// Whether decide had all it needs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what another decision needs.
    pub fn merge(&mut self, other: Self) {
        let Self { live_machines, fresh_group, facts, user_data, account, hook, fresh_hook, refreshes } =
            other;
        self.live_machines |= live_machines;
        self.fresh_group |= fresh_group;
        self.facts.extend(facts);
        self.user_data |= user_data;
        self.account |= account;
        self.hook |= hook;
        self.fresh_hook |= fresh_hook;
        self.refreshes |= refreshes;
    }
}
