//! The content that a group launches, with new user data: for as long as no other content may be launched, or none is known.

use capasg_cloud::{Group, Launch, LaunchTemplateData};

use crate::machine_pool::model::launch_content::content_hash;
use crate::machine_pool::model::ownership::is_owned;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::template_versions::stamps;
use crate::machine_pool::model::{DesiredLaunch, Input, Known, ObservedTemplate};

/// What a group launches: as the view shows it, or by our last change since; `None` if AWS did not answer that.
#[must_use]
pub fn launched<'a>(input: &Input<'a>, group: &'a Group) -> Option<&'a Launch> {
    input.memory.launch_change.launched(&input.observed.group).or(&group.settings.launch)
}

/// The content of the version that a group of the pool launches, with the current user data if these differ by their tokens
/// alone: new instances must be able to join. After an edit of the bootstrap config the previous user data stay, since those of
/// a version are never read back.
#[must_use]
pub fn renewed(input: &Input<'_>) -> DesiredLaunch {
    let desired = input.desired;
    let (Some((content, pinned)), Some(bootstrap)) = (pinned(input), &desired.bootstrap) else {
        return DesiredLaunch::Unknown;
    };
    if pinned.bootstrap_data != bootstrap.data {
        return DesiredLaunch::Unknown;
    }
    let mut data = content;
    data.user_data = bootstrap.user_data.clone();
    let stamp = Stamp { content: content_hash(&data, &bootstrap.content), ..pinned };
    DesiredLaunch::Known { data: Box::new(data), stamp, has_user_data: bootstrap.is_read }
}

/// Content and stamp of that version; `None` if it is not one of ours or not known, or the pool does not own the group.
fn pinned(input: &Input<'_>) -> Option<(LaunchTemplateData, Stamp)> {
    let group = input.observed.group.present().filter(|group| is_owned(input.desired, group))?;
    let Known::Present(ObservedTemplate { id, versions, .. }) = &input.observed.template else { return None };
    let template = &launched(input, group)?.template;
    let version = template.version.filter(|_| template.id == *id)?;
    let content = versions.get(&version)?.content.as_deref()?;
    Some((content.clone(), stamps(input.observed).remove(&version)?))
}
