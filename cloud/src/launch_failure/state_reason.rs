//! Why an instance that a group launched died before it was in service: the codes of EC2's `StateReason`. Pure.

use super::LaunchBlocker as Is;
use super::blocker::LaunchBlocker;

/// How Auto Scaling begins the message of a launch whose instance died.
const DIED: &str = "Instance became unhealthy while waiting for instance to be in InService state";
/// What precedes EC2's code in that message.
const INTRODUCTION: &str = "Termination Reason:";

/// Every code that the EC2 API reference documents for `StateReason`, and what blocks a launch whose instance dies of it;
/// `None` for a call of a user, or of this controller, to EC2 or to Auto Scaling. An instance that shuts itself down, or
/// that EC2 terminates while an image of it is made, is lost to the group all the same.
pub(super) const CODES: [(&str, Option<LaunchBlocker>); 12] = [
    ("Server.InsufficientInstanceCapacity", Some(Is::Capacity)),
    ("Server.InternalError", Some(Is::Unknown)),
    ("Server.ScheduledStop", Some(Is::Unknown)),
    ("Server.SpotInstanceShutdown", Some(Is::Capacity)),
    ("Server.SpotInstanceTermination", Some(Is::Capacity)),
    ("Client.InstanceInitiatedShutdown", Some(Is::Unknown)),
    ("Client.InstanceTerminated", Some(Is::Unknown)),
    // EC2 says no more than this if the key of an encrypted volume cannot be used.
    ("Client.InternalError", Some(Is::Encryption)),
    ("Client.InvalidSnapshot.NotFound", Some(Is::Image)),
    ("Client.UserInitiatedHibernate", None),
    ("Client.UserInitiatedShutdown", None),
    ("Client.VolumeLimitExceeded", Some(Is::Quota)),
];

/// What blocks the launch, if the code is in the table and no user's call.
pub(super) fn blocker(code: &str) -> Option<LaunchBlocker> {
    CODES.iter().find(|(name, _)| *name == code)?.1
}

/// EC2's code and text, which Auto Scaling quotes.
pub(super) fn quoted(message: &str) -> Option<&str> {
    message.split_once(INTRODUCTION).map(|(_, reason)| reason.trim_start())
}

/// Whether an instance died by itself or by AWS; `false` if a user or this controller terminated it, `None` if the message
/// is not about the death of an instance. A code that is not in the table is no call of a user.
pub(super) fn died(message: &str) -> Option<bool> {
    let Some(reason) = quoted(message) else { return message.starts_with(DIED).then_some(true) };
    let by_user = CODES.iter().filter(|(_, blocker)| blocker.is_none());
    Some(!by_user.into_iter().any(|(code, _)| reason.strip_prefix(code).is_some_and(ends_code)))
}

/// Whether a code ends here, so that a longer code is another one.
fn ends_code(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.')
}
