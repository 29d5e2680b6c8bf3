//! Compares a group with its desired state, attribute by attribute. The calls that correct a group, the conditions and
//! events about its differences, and the changes of a preview all follow from this list.

mod attachments;
mod attribute;
pub mod bounds;
pub mod content;
mod group;
pub mod hook_audit;
pub mod suspended_processes;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{Group, GroupChange, GroupSettings, MixedInstances, Write};

use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::settings::attribute::{Attribute, Correction, List};
use crate::machine_pool::model::memory::launch_change::Launched;
use crate::machine_pool::model::{Comparison, Difference, Input};

pub use group::template_text;
pub use text::{LAUNCH_TEMPLATE, MAX_SIZE, MIN_SIZE, NOTHING, tag_path};

/// `SetInstanceProtection` accepts at most this many instances.
const PROTECT_AT_MOST: usize = 50;

/// A group, compared with its desired state.
#[derive(Debug)]
pub struct Compared {
    attributes: Vec<Attribute>,
    wanted: GroupSettings,
    /// Whether the group launches something else by our last change, if the view does not show that.
    launch_differs: Option<bool>,
}

/// Compares everything that the controller manages, except capacity and bounds. With `held`, what the group launches is
/// not changed: an instance refresh will change it, or prevents the change.
#[must_use]
pub fn compare(input: &Input<'_>, group: &Group, pin: &Pin, held: bool) -> Compared {
    let Input { desired, observed, memory, .. } = *input;
    let change = memory.launch_change.launched(&observed.group);
    let launched = change.or(&group.settings.launch);
    let of_group = launched.unwrap_or(&group.settings.launch);
    let template = match pin {
        Pin::Version(version) | Pin::Previous(Some(version)) => version.clone(),
        Pin::Previous(None) | Pin::Unchanged => of_group.template.clone(),
    };
    let mut wanted = desired.settings.with_template(template);
    if let Pin::Previous(_) = pin {
        // AWS may reject the types or the purchase options, which it takes together with the version.
        wanted.launch.mixed = of_group.mixed.as_ref().map(MixedInstances::without_other_members);
    }
    let is_unknown = launched.is_none() && matches!(pin, Pin::Unchanged | Pin::Previous(None));
    if held || is_unknown {
        wanted.launch = group.settings.launch.clone();
    }
    let launch_differs = match change {
        Launched::Changed(launch) if !held => Some(*launch != wanted.launch),
        _ => None,
    };
    let mut list = List::default();
    group::compare(&mut list, &wanted, &group.settings);
    attachments::group_tags(&mut list, desired, group);
    attachments::processes(&mut list, desired, group, memory);
    if !desired.previews {
        attachments::protection(&mut list, observed);
    }
    attachments::hook(&mut list, desired, observed);
    Compared { attributes: list.0, wanted, launch_differs }
}

impl Compared {
    /// The call that corrects what the group launches. No other setting holds it up: without it new nodes may not join,
    /// since tokens expire.
    #[must_use]
    pub fn launch(&self, group: &str) -> Option<Write> {
        let differs = self.corrections().any(|correction| matches!(correction, Correction::Launch));
        let change = GroupChange { launch: Some(self.wanted.launch.clone()), ..GroupChange::default() };
        let differs = self.launch_differs.unwrap_or(differs);
        differs.then(|| Write::UpdateGroup { group: group.to_owned(), change: Box::new(change) })
    }

    /// The one call that corrects the other settings.
    #[must_use]
    pub fn settings(&self, group: &str) -> Option<Write> {
        let mut change = GroupChange::default();
        for correction in self.corrections() {
            if let Correction::Settings(set) = correction {
                set(&mut change, &self.wanted);
            }
        }
        (!change.is_empty()).then(|| Write::UpdateGroup { group: group.to_owned(), change: Box::new(change) })
    }

    /// The calls that correct what the group has in addition to its settings: tags, processes, protection, our hook.
    #[must_use]
    pub fn attachments(&self, group: &str) -> Vec<Write> {
        let name = || group.to_owned();
        let mut tags = BTreeMap::new();
        let mut stale = BTreeSet::new();
        let mut others = Vec::new();
        for correction in self.corrections() {
            match correction.clone() {
                Correction::Launch | Correction::Settings(_) => {}
                Correction::Tag(key, tag) => {
                    tags.insert(key, tag);
                }
                Correction::Untag(key) => {
                    stale.insert(key);
                }
                Correction::Suspend(processes) => {
                    others.push(Write::SuspendProcesses { group: name(), processes });
                }
                Correction::Resume(processes) => {
                    others.push(Write::ResumeProcesses { group: name(), processes });
                }
                Correction::Protect(instances) => {
                    let instances: Vec<String> = instances.into_iter().collect();
                    others.extend(instances.chunks(PROTECT_AT_MOST).map(|some| {
                        let instances = some.iter().cloned().collect();
                        Write::SetInstanceProtection { group: name(), instances, protected: true }
                    }));
                }
                Correction::PutHook(hook) => others.push(Write::PutLifecycleHook { group: name(), hook }),
                Correction::DeleteHook(hook) => {
                    others.push(Write::DeleteLifecycleHook { group: name(), hook });
                }
            }
        }
        let tags = (!tags.is_empty()).then(|| Write::TagGroup { group: name(), tags });
        let untag = (!stale.is_empty()).then(|| Write::UntagGroup { group: name(), keys: stale });
        untag.into_iter().chain(tags).chain(others).collect()
    }

    /// The differences. One is drift if the desired value is the one that desired state and group last agreed on.
    #[must_use]
    pub fn comparison(self, input: &Input<'_>) -> Comparison {
        let mut comparison = Comparison::default();
        for Attribute { path, seen, wanted, differs, corrections } in self.attributes {
            if !differs {
                comparison.agreed.insert(path, wanted);
                continue;
            }
            let is_drift = input.memory.drift.is_drift(&path, &wanted);
            let calls = corrections.iter().map(Correction::call).collect();
            comparison.differences.push(Difference { path, seen, wanted, calls, is_drift });
        }
        comparison
    }

    fn corrections(&self) -> impl Iterator<Item = &Correction> {
        self.attributes
            .iter()
            .filter(|attribute| attribute.differs)
            .flat_map(|attribute| &attribute.corrections)
    }
}
