//! What a group says of its instance refreshes.

use super::{Group, refresh::Refresh, source::LaunchSource};
use crate::ApiError;

impl Group {
    /// The refresh that is under way.
    pub(crate) fn refresh(&self) -> Option<&Refresh> {
        self.refreshes.last().filter(|refresh| !refresh.status.is_over())
    }

    pub(crate) fn refresh_mut(&mut self) -> Option<&mut Refresh> {
        self.refreshes.last_mut().filter(|refresh| !refresh.status.is_over())
    }

    /// What is launched now: while a refresh replaces, its desired configuration, also for a scale-out.
    pub(crate) fn launches_from(&self) -> &LaunchSource {
        let desired = self.refresh().filter(|refresh| refresh.launches_desired());
        desired.and_then(|refresh| refresh.desired.as_ref()).map_or(&self.source, |(source, _)| source)
    }

    /// Instances beyond desired capacity that a refresh launched before others end.
    pub(crate) fn refresh_extra(&self) -> usize {
        self.refresh().map_or(0, |refresh| refresh.extra)
    }

    /// Refuses a change of what is launched while a refresh has a desired configuration.
    pub(crate) fn refuse_while_refreshed(&self) -> Result<(), ApiError> {
        if self.refresh().is_some_and(|refresh| refresh.desired.is_some()) {
            return Err(ApiError::validation(
                "An active instance refresh with a desired configuration exists. All configuration options derived \
                 from the desired configuration are not available for update while the instance refresh is active.",
            ));
        }
        Ok(())
    }
}
