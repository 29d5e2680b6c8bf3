//! Compares a group with the wish, attribute by attribute. It is the one home of that: the calls that put a group right,
//! what conditions and events tell of it, and what a preview shows all come from this list.

mod carried;
pub mod content;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{Group, GroupChange, GroupSettings, GroupTag, LifecycleHook, Write};

use super::super::state::{Case, Difference, Plan, Step};
use super::launch_template::Pin;

/// `SetInstanceProtection` takes at most this many.
const PROTECT_AT_MOST: usize = 50;
/// Path of the template version that the group launches.
pub(super) const LAUNCH_TEMPLATE: &str = "launch template";
/// What stands for a value that is not there.
pub(super) const NOTHING: &str = "none";

/// One attribute, as it is wished and as it is seen.
#[derive(Debug, Clone)]
struct Attribute {
    path: String,
    seen: String,
    wanted: String,
    differs: bool,
    mends: Vec<Mend>,
}

/// A part of a call that makes an attribute what is wished.
#[derive(Debug, Clone)]
enum Mend {
    /// A member of `UpdateAutoScalingGroup`.
    Settings(fn(&mut GroupChange, &GroupSettings)),
    Tag(String, GroupTag),
    Untag(String),
    Suspend(BTreeSet<String>),
    Resume(BTreeSet<String>),
    Protect(BTreeSet<String>),
    PutHook(LifecycleHook),
    DeleteHook(String),
}

impl Mend {
    /// The call that it is a part of.
    fn call(&self) -> &'static str {
        match self {
            Self::Settings(_) => "UpdateAutoScalingGroup",
            Self::Tag(..) => "CreateOrUpdateTags",
            Self::Untag(_) => "DeleteTags",
            Self::Suspend(_) => "SuspendProcesses",
            Self::Resume(_) => "ResumeProcesses",
            Self::Protect(_) => "SetInstanceProtection",
            Self::PutHook(_) => "PutLifecycleHook",
            Self::DeleteHook(_) => "DeleteLifecycleHook",
        }
    }
}

/// A group held against the wish.
pub struct Comparison {
    attributes: Vec<Attribute>,
    wanted: GroupSettings,
}

/// Compares everything that the provider manages, capacity and bounds apart. With `held`, what the group launches stays as
/// it is: an instance refresh is to change it, or keeps it from being changed.
#[must_use]
pub fn compare(case: &Case<'_>, group: &Group, pin: &Pin, held: bool) -> Comparison {
    let Case { desired, observed, memory, .. } = *case;
    let template = match pin {
        Pin::Version(version) => version.clone(),
        Pin::Unchanged => group.settings.launch.template.clone(),
    };
    let mut wanted = desired.settings.with_template(template);
    if held {
        wanted.launch = group.settings.launch.clone();
    }
    let mut list = List::default();
    settings::compare(&mut list, &wanted, &group.settings);
    carried::group_tags(&mut list, desired, group);
    carried::processes(&mut list, desired, group, memory);
    if !desired.previews {
        carried::protection(&mut list, observed);
    }
    carried::hook(&mut list, desired, observed);
    Comparison { attributes: list.0, wanted }
}

impl Comparison {
    /// The one call that puts the settings right.
    #[must_use]
    pub fn settings(&self, group: &str) -> Option<Write> {
        let mut change = GroupChange::default();
        for mend in self.mends() {
            if let Mend::Settings(set) = mend {
                set(&mut change, &self.wanted);
            }
        }
        (!change.is_empty()).then(|| Write::UpdateGroup { group: group.to_owned(), change: Box::new(change) })
    }

    /// The calls that put right what the group carries beside its settings: tags, processes, protection, our hook.
    #[must_use]
    pub fn attachments(&self, group: &str) -> Vec<Write> {
        let name = || group.to_owned();
        let mut tags = BTreeMap::new();
        let mut stale = BTreeSet::new();
        let mut others = Vec::new();
        for mend in self.mends() {
            match mend.clone() {
                Mend::Settings(_) => {}
                Mend::Tag(key, tag) => {
                    tags.insert(key, tag);
                }
                Mend::Untag(key) => {
                    stale.insert(key);
                }
                Mend::Suspend(processes) => others.push(Write::SuspendProcesses { group: name(), processes }),
                Mend::Resume(processes) => others.push(Write::ResumeProcesses { group: name(), processes }),
                Mend::Protect(instances) => {
                    let instances: Vec<String> = instances.into_iter().collect();
                    others.extend(instances.chunks(PROTECT_AT_MOST).map(|some| {
                        let instances = some.iter().cloned().collect();
                        Write::SetInstanceProtection { group: name(), instances, protected: true }
                    }));
                }
                Mend::PutHook(hook) => others.push(Write::PutLifecycleHook { group: name(), hook }),
                Mend::DeleteHook(hook) => others.push(Write::DeleteLifecycleHook { group: name(), hook }),
            }
        }
        let tags = (!tags.is_empty()).then(|| Write::TagGroup { group: name(), tags });
        let stale = (!stale.is_empty()).then(|| Write::UntagGroup { group: name(), keys: stale });
        tags.into_iter().chain(stale).chain(others).collect()
    }

    /// Tells what differs, and whether somebody else changed it: it is wished as it was when the two last agreed.
    pub fn tell(self, case: &Case<'_>, plan: &mut Plan) {
        for Attribute { path, seen, wanted, differs, mends } in self.attributes {
            if !differs {
                plan.agreed.insert(path, wanted);
                continue;
            }
            let agreed = case.memory.agreed.get(&path);
            let outside = match agreed {
                Some(before) => *before == wanted,
                None => case.memory.agreed.is_empty() && case.memory.reported_whole,
            };
            let calls = mends.iter().map(Mend::call).collect();
            plan.differences.push(Difference { path, seen, wanted, calls, outside });
        }
    }

    fn mends(&self) -> impl Iterator<Item = &Mend> {
        self.attributes.iter().filter(|attribute| attribute.differs).flat_map(|attribute| &attribute.mends)
    }
}

/// Tells which bounds are about to be put right although nothing of ours moved them.
pub fn bounds(case: &Case<'_>, group: &Group, plan: &mut Plan) {
    let Some(known) = case.memory.bounds else { return };
    let planned = plan.steps.iter().find_map(|step| match step {
        Step::Cloud(Write::UpdateGroup { change, .. }) => change.min.zip(change.max),
        _ => None,
    });
    let Some((min, max)) = planned else { return };
    let have = group.capacity;
    for (path, known, seen, wanted) in
        [("group.minSize", known.min, have.min, min), ("group.maxSize", known.max, have.max, max)]
    {
        if seen != known && seen != wanted {
            plan.differences.push(Difference {
                path: path.to_owned(),
                seen: seen.to_string(),
                wanted: wanted.to_string(),
                calls: BTreeSet::from(["capacity"]),
                outside: true,
            });
        }
    }
}

#[derive(Default)]
struct List(Vec<Attribute>);

impl List {
    fn add<T: PartialEq + ?Sized>(
        &mut self,
        path: impl Into<String>,
        (wanted, seen): (&T, &T),
        text: impl Fn(&T) -> String,
        mend: Mend,
    ) {
        self.0.push(Attribute {
            path: path.into(),
            seen: text(seen),
            wanted: text(wanted),
            differs: wanted != seen,
            mends: vec![mend],
        });
    }
}

fn joined(items: &BTreeSet<String>) -> String {
    if items.is_empty() {
        return NOTHING.to_owned();
    }
    items.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn maybe<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), ToString::to_string)
}
