//! Whether an instance that a group launched died before it was in service, and the reason that AWS quotes. Pure.

/// How Auto Scaling begins the message of a launch whose instance died.
const DIED: &str = "Instance became unhealthy while waiting for instance to be in InService state";
/// What the message of a launch has that a lifecycle hook of the group ended: its time passed, or it was completed with
/// `ABANDON`, as bootstrap scripts do that fail.
const ABANDONED: &str = "failed to complete user's Lifecycle Action";
/// What precedes EC2's code in that message.
const INTRODUCTION: &str = "Termination Reason:";

/// The codes of EC2's `StateReason` for a call of a user, or of this controller, to EC2 or to Auto Scaling.
pub(super) const BY_USER: [&str; 2] = ["Client.UserInitiatedHibernate", "Client.UserInitiatedShutdown"];

/// EC2's code and text, which Auto Scaling quotes.
pub(super) fn quoted(message: &str) -> Option<&str> {
    message.split_once(INTRODUCTION).map(|(_, reason)| reason.trim_start())
}

/// Whether an instance died by itself or by AWS; `false` if a user or this controller terminated it, `None` if the message
/// is not about the death of an instance. A code that is not documented is no call of a user.
pub(super) fn died(message: &str) -> Option<bool> {
    let Some(reason) = quoted(message) else {
        return (message.starts_with(DIED) || message.contains(ABANDONED)).then_some(true);
    };
    Some(!BY_USER.iter().any(|code| reason.strip_prefix(code).is_some_and(ends_code)))
}

/// Whether a code ends here, so that a longer code is another one.
fn ends_code(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.')
}
