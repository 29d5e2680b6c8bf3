//! Never a duplicate group or template.

use super::state::{Inner, Invariants};

impl Invariants {
    /// No pool ever has two groups or two launch templates.
    pub(super) fn no_second_group_or_template(&self, inner: &mut Inner) {
        let (groups, templates) = self.simulator.owned(&self.scope, capasg_api::names::tags::OWNER_ID);
        for (what, names) in [("group", groups), ("launch template", templates)] {
            let twice = names.iter().zip(names.iter().skip(1)).find(|(one, next)| one == next);
            if let Some((owner, _)) = twice {
                let now = capasg_cloud::Clock::now(self.clock.as_ref());
                inner.breaks(now, "no_second_group_or_template", format!("a second {what} of owner {owner}"));
            }
        }
    }
}
