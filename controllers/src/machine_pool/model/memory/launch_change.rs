//! What a group launches by our last change of it, until a view shows that: reads of the group may fail for hours, while
//! tokens go on to rotate.

use capasg_cloud::{Launch, Write};
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::GroupView;

/// A later view may lag behind our change by this.
const SETTLES: TimeDelta = TimeDelta::seconds(5);

impl<'a> Launched<'a> {
    /// The same if the view shows this; `None` if it is not known.
    #[must_use]
    pub fn or(self, shown: &'a Launch) -> Option<&'a Launch> {
        match self {
            Self::AsShown => Some(shown),
            Self::Changed(launch) => Some(launch),
            Self::Unknown => None,
        }
    }
}

/// What AWS accepted last, `None` if it did not answer, and when.
#[derive(Debug, Clone, Default)]
pub struct LaunchChange(Option<(Option<Launch>, DateTime<Utc>)>);

/// What a group launches, by a view and our last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launched<'a> {
    /// The view is later than our last change.
    AsShown,
    /// AWS accepted a change that the view does not show.
    Changed(&'a Launch),
    /// AWS did not answer a change that the view does not show.
    Unknown,
}

impl LaunchChange {
    /// What the group of this view launches.
    #[must_use]
    pub fn launched(&self, view: &GroupView) -> Launched<'_> {
        let is_unshown = |at: DateTime<Utc>| view.as_of().is_some_and(|as_of| as_of <= at + SETTLES);
        match &self.0 {
            Some((launch, at)) if is_unshown(*at) => {
                launch.as_ref().map_or(Launched::Unknown, Launched::Changed)
            }
            _ => Launched::AsShown,
        }
    }

    /// Records a change that AWS accepted.
    pub(super) fn accept(&mut self, write: &Write, now: DateTime<Utc>) {
        match write {
            Write::UpdateGroup { change, .. } => {
                if let Some(launch) = &change.launch {
                    self.0 = Some((Some(launch.clone()), now));
                }
            }
            Write::CreateGroup(_)
            | Write::StartInstanceRefresh(_)
            | Write::RollbackInstanceRefresh { .. } => {
                self.0 = None;
            }
            _ => {}
        }
    }

    /// Records a call that AWS did not answer: it may have had its effect.
    pub(super) fn fail(&mut self, write: &Write, now: DateTime<Utc>) {
        if matches!(write, Write::UpdateGroup { change, .. } if change.launch.is_some()) {
            self.0 = Some((None, now));
        }
    }

    /// Forgets a change that a view shows, or that lies ahead since the clock was set back.
    pub(super) fn observe(&mut self, view: &GroupView, now: DateTime<Utc>) {
        let is_shown = self.launched(view) == Launched::AsShown;
        self.0.take_if(|(_, at)| is_shown || *at > now + SETTLES);
    }
}

#[cfg(test)]
mod tests {
    use capasg_cloud::GroupChange;

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};

    #[test]
    fn a_change_counts_until_a_later_view_shows_the_group() {
        let mut stage = Stage::new(1);
        let launch = stage.group().settings.launch.clone();
        let change = Box::new(GroupChange { launch: Some(launch.clone()), ..GroupChange::default() });
        let mut changed = LaunchChange::default();
        let write = Write::UpdateGroup { group: "g".to_owned(), change };
        changed.accept(&write, now());
        let mut view = |seconds: i64| {
            if let GroupView::Present { as_of, .. } = &mut stage.observed.group {
                *as_of = now() + TimeDelta::seconds(seconds);
            }
            stage.observed.group.clone()
        };
        assert_eq!(changed.launched(&view(-60)), Launched::Changed(&launch));
        assert_eq!(changed.launched(&view(5)), Launched::Changed(&launch), "reads may lag");
        assert_eq!(changed.launched(&view(6)), Launched::AsShown);
        let (mut set_back, mut failed) = (changed.clone(), changed.clone());
        failed.fail(&write, now());
        assert_eq!(failed.launched(&view(5)), Launched::Unknown);
        changed.observe(&view(6), now() + TimeDelta::seconds(6));
        set_back.observe(&view(-60), now() - TimeDelta::hours(1));
        assert_eq!([changed, set_back].map(|it| it.launched(&view(-60)) == Launched::AsShown), [true; 2]);
    }
}
