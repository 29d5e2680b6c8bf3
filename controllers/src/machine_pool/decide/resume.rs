//! Decides about processes that AWS itself suspended: after a day without a successful launch it stops trying. They stay so
//! until a person says that the cause is mended, by an edit of the spec or the retry annotation; nothing is fought over.

use std::collections::BTreeSet;

use capasg_cloud::{Group, Write};

use super::super::state::{Case, Plan};

/// What AWS writes where somebody's call suspended a process; anything else is AWS's own doing.
const BY_SOMEBODY: &str = "User suspended";

/// The processes that AWS suspended although the wish does not.
#[must_use]
pub fn suspended_by_aws(group: &Group, wished: &BTreeSet<String>) -> BTreeSet<String> {
    let own = group.suspended_processes.iter().filter(|(_, why)| !why.starts_with(BY_SOMEBODY));
    own.map(|(name, _)| name).filter(|name| !wished.contains(*name)).cloned().collect()
}

/// Resumes them once somebody changed something since they were first seen suspended. In a preview, where edits wait, the
/// annotation alone asks for it.
pub fn decide(case: &Case<'_>, group: &Group, plan: &mut Plan) {
    let Case { desired, memory, .. } = *case;
    let processes = suspended_by_aws(group, &desired.suspended_processes);
    let asked = memory.suspended_under.as_ref().is_some_and(|(wish, retry)| {
        if desired.previews { *retry != desired.retry } else { *wish != memory.wish_key }
    });
    if asked && !processes.is_empty() {
        plan.cloud(Write::ResumeProcesses { group: desired.group.clone(), processes });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stage, cloud};
    use super::*;

    fn resumed(stage: &Stage) -> Vec<Write> {
        let mut plan = Plan::default();
        let case = stage.case();
        decide(&case, stage.observed.group.present().unwrap(), &mut plan);
        cloud(&plan).into_iter().cloned().collect()
    }

    fn suspended(why: &str) -> Stage {
        let mut stage = Stage::new(1);
        stage.group().suspended_processes.insert("Launch".to_owned(), why.to_owned());
        stage.memory.suspended_under = Some(("a".to_owned(), None));
        stage.memory.wish_key = "a".to_owned();
        stage
    }

    #[test]
    fn p46_what_aws_suspended_is_resumed_once_somebody_changed_something() {
        let mut stage = suspended("Administratively suspended");
        assert!(resumed(&stage).is_empty(), "nobody asked");
        stage.memory.wish_key = "b".to_owned();
        let processes = BTreeSet::from(["Launch".to_owned()]);
        let expected = Write::ResumeProcesses { group: stage.desired.group.clone(), processes };
        assert_eq!(resumed(&stage), [expected]);
        stage.desired.suspended_processes.insert("Launch".to_owned());
        assert!(resumed(&stage).is_empty(), "the wish suspends it as well");
    }

    #[test]
    fn p46_p54_in_a_preview_an_edit_resumes_nothing_and_the_annotation_does() {
        let mut stage = suspended("Administratively suspended");
        stage.desired.previews = true;
        stage.memory.wish_key = "b".to_owned();
        assert!(resumed(&stage).is_empty(), "the edit waits");
        stage.desired.retry = Some("now".to_owned());
        assert_eq!(resumed(&stage).len(), 1);
    }

    #[test]
    fn what_a_person_suspended_is_left_alone() {
        let mut stage = suspended("User suspended at 2026-05-01T10:00:00Z");
        stage.memory.wish_key = "b".to_owned();
        assert!(resumed(&stage).is_empty());
    }
}
