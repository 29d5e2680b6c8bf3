//! Decides about processes that AWS itself suspended, as it does after a day without a successful launch. They are
//! resumed when a user has corrected the cause and edits the spec.

use capasg_cloud::{Group, Write};

use crate::machine_pool::model::{Input, Part};

/// Resumes them once a user changed something since they were first seen suspended. In a preview, where edits wait,
/// `spec.retryToken` alone counts.
#[must_use]
pub fn resume(input: &Input<'_>, group: &Group) -> Part {
    let Input { desired, memory, .. } = *input;
    let processes = group.suspended_by_aws(&desired.suspended_processes);
    if processes.is_empty() || !memory.suspension.is_to_be_resumed(desired) {
        return Part::default();
    }
    Part::of(Write::ResumeProcesses { group: desired.group.clone(), processes })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::machine_pool::decide::testing::Stage;

    fn resumed(stage: &Stage) -> Vec<Write> {
        let part = resume(&stage.input(), stage.observed.group.present().unwrap());
        part.writes().cloned().collect()
    }

    fn suspended(why: &str) -> Stage {
        let mut stage = Stage::new(1);
        stage.group().suspended_processes.insert("Launch".to_owned(), why.to_owned());
        *stage.memory.suspension.first_seen_mut() = Some(("a".to_owned(), None));
        *stage.memory.suspension.desired_key_mut() = "a".to_owned();
        stage
    }

    #[test]
    fn p46_what_aws_suspended_is_resumed_after_a_users_change() {
        let mut stage = suspended("Administratively suspended");
        assert!(resumed(&stage).is_empty(), "no change");
        *stage.memory.suspension.desired_key_mut() = "b".to_owned();
        let processes = BTreeSet::from(["Launch".to_owned()]);
        let expected = Write::ResumeProcesses { group: stage.desired.group.clone(), processes };
        assert_eq!(resumed(&stage), [expected]);
        stage.desired.suspended_processes.insert("Launch".to_owned());
        assert!(resumed(&stage).is_empty(), "the spec suspends it as well");
    }

    #[test]
    fn p46_p54_in_a_preview_an_edit_resumes_nothing_and_the_retry_token_does() {
        let mut stage = suspended("Administratively suspended");
        stage.desired.previews = true;
        *stage.memory.suspension.desired_key_mut() = "b".to_owned();
        assert!(resumed(&stage).is_empty(), "the edit waits");
        stage.desired.retry = Some("now".to_owned());
        assert_eq!(resumed(&stage).len(), 1);
    }

    #[test]
    fn what_a_user_suspended_stays_suspended() {
        let mut stage = suspended("User suspended at 2026-05-01T10:00:00Z");
        *stage.memory.suspension.desired_key_mut() = "b".to_owned();
        assert!(resumed(&stage).is_empty());
    }
}
