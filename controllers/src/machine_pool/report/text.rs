//! Parts of messages that several conditions share.

use capasg_api::names::{annotations, tags::OWNER_ID};
use capasg_cloud::{CloudError, ErrorClass, LaunchBlocker};

use crate::machine_pool::model::call_kind::{CallSubject, CallTopic};
use crate::machine_pool::model::memory::failed_calls::FailedCall;
use crate::machine_pool::model::other_tags::OtherTags;
use crate::machine_pool::model::{PoolInstance, PoolMemory};

/// At most this many names are listed in a message.
const NAMES: usize = 5;

/// When a call is retried that no edit of the spec corrects.
const PERIODICALLY: &str = "periodically";

/// When a call is retried that an edit of the spec may correct.
const ALSO_AFTER_AN_EDIT: &str = "periodically, and immediately after an edit";

/// The message for a call that AWS rejects, or that has failed for some time.
pub(super) fn failure_message(subject: &CallSubject, failed: &FailedCall) -> String {
    if failed.is_rejected { rejection_message(&failed.error) } else { subject.failure(&failed.error) }
}

/// The first failing call about this, and the message for it and the others.
pub(super) fn failures_message(memory: &PoolMemory, topic: CallTopic) -> Option<(&FailedCall, String)> {
    let (subject, failed) = memory.failed_calls.about(topic)?;
    Some((failed, failure_message(subject, failed) + &memory.failed_calls.in_addition(topic)))
}

/// The message for a call that AWS rejects, with what to do about it.
fn rejection_message(error: &CloudError) -> String {
    let (advice, when) = match error.class {
        ErrorClass::Denied => (
            "Check the AWS credentials of the controller and the permissions of its IAM role \
             (docs/iam-policy.json)",
            PERIODICALLY,
        ),
        ErrorClass::Quota => {
            ("Request a higher quota from AWS, or reduce what the spec requests", PERIODICALLY)
        }
        ErrorClass::Capacity => ("Add an instance type or a subnet, or wait for capacity", PERIODICALLY),
        ErrorClass::NotFound => {
            ("Create the missing resource again, or correct the spec", ALSO_AFTER_AN_EDIT)
        }
        _ => match LaunchBlocker::of_answer(&error.message) {
            None | Some(LaunchBlocker::Unknown | LaunchBlocker::Template) => {
                ("Correct the spec", ALSO_AFTER_AN_EDIT)
            }
            Some(blocker) => (blocker.advice(), ALSO_AFTER_AN_EDIT),
        },
    };
    let error = error.to_string();
    format!("{}. {advice}. The controller retries {when}.", error.trim_end_matches('.'))
}

/// How the tags of a group or a launch template that the pool does not own differ from those of this pool. The values
/// are another pool's, and not shown.
pub(super) fn tags_text(tags: &OtherTags) -> String {
    let named = |keys: &[&str]| {
        let plural = if keys.len() == 1 { "" } else { "s" };
        format!("tag{plural} {}", keys.join(", "))
    };
    match (tags.different.as_slice(), tags.missing.as_slice()) {
        _ if tags.is_untagged() => format!("has no tag {OWNER_ID}"),
        (different, []) => format!("has {} with a value of another pool", named(different)),
        ([], missing) => format!("does not have {}", named(missing)),
        (different, missing) => {
            format!("has {} with a value of another pool, and no {}", named(different), named(missing))
        }
    }
}

/// Which of these instances are kept because their ASGMachine or Machine is paused; empty if none is.
pub(super) fn paused_text<'a>(instances: impl Iterator<Item = (&'a String, &'a PoolInstance)>) -> String {
    let paused: Vec<String> =
        instances.filter(|(_, instance)| instance.is_paused()).map(|(id, _)| id.clone()).collect();
    if paused.is_empty() {
        return String::new();
    }
    format!(
        "; paused: {}. Remove annotation {} from the ASGMachine and the Machine to continue.",
        some_of(&paused),
        annotations::PAUSED
    )
}

/// The first few names, and how many more there are.
pub(super) fn some_of(names: &[String]) -> String {
    some_of_at_most(NAMES, names)
}

/// The first `most` names, and how many more there are.
pub(super) fn some_of_at_most(most: usize, names: &[String]) -> String {
    join_at_most(most, names, ", ")
}

/// The first few parts, and how many more there are.
pub(super) fn join_some(parts: &[String], separator: &str) -> String {
    join_at_most(NAMES, parts, separator)
}

fn join_at_most(most: usize, parts: &[String], separator: &str) -> String {
    let shown = parts.iter().take(most).cloned().collect::<Vec<_>>().join(separator);
    match parts.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
