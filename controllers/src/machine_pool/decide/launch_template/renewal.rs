//! The content that a group launches, with new user data: for as long as no other content may be launched, or none is known.

use crate::machine_pool::model::launch_content::content_hash;
use crate::machine_pool::model::ownership::is_owned;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::template_versions::{pinned_content, pinned_stamp};
use crate::machine_pool::model::{Desired, DesiredLaunch, Input, Observed};

/// What the group launches, as [`renewed`]; unknown while the view is older than our last change of it: another content would
/// be launched again.
#[must_use]
pub fn renewed_as_shown(input: &Input<'_>) -> DesiredLaunch {
    let shown = input.observed.group.as_of();
    let changed = input.memory.recent_writes.launch_changed_at();
    let is_shown = changed.zip(shown).is_none_or(|(changed, shown)| changed < shown);
    if is_shown { renewed(input.desired, input.observed) } else { DesiredLaunch::Unknown }
}

/// The content of the pinned version of a group that the pool owns, with the current user data if these differ by their tokens
/// alone: new instances must be able to join. After an edit of the bootstrap config the previous user data stay, since those of
/// a version are never read back.
#[must_use]
pub fn renewed(desired: &Desired, observed: &Observed) -> DesiredLaunch {
    let is_owned = observed.group.present().is_some_and(|group| is_owned(desired, group));
    let pinned = pinned_content(observed).zip(pinned_stamp(observed)).filter(|_| is_owned);
    let (Some((content, pinned)), Some(bootstrap)) = (pinned, &desired.bootstrap) else {
        return DesiredLaunch::Unknown;
    };
    if pinned.bootstrap_data != bootstrap.data {
        return DesiredLaunch::Unknown;
    }
    let mut data = content.clone();
    data.user_data = bootstrap.user_data.clone();
    let stamp = Stamp { content: content_hash(&data, &bootstrap.content), ..pinned };
    DesiredLaunch::Known { data: Box::new(data), stamp, has_user_data: bootstrap.is_read }
}
