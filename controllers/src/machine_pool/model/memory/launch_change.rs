//! What a group launches by our last change of it, until a view shows that: reads of the group may fail for hours, while
//! tokens go on to rotate.

use capasg_cloud::{Launch, Write};
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::GroupView;

/// A later view may lag behind our change by this.
const SETTLES: TimeDelta = TimeDelta::seconds(5);

/// What AWS accepted last, and when it answered.
#[derive(Debug, Clone, Default)]
pub struct LaunchChange(Option<(Launch, DateTime<Utc>)>);

impl LaunchChange {
    /// What the group launches, if this view does not show it yet.
    #[must_use]
    pub fn unshown(&self, view: &GroupView) -> Option<&Launch> {
        let (launch, at) = self.0.as_ref()?;
        view.as_of().is_some_and(|as_of| as_of <= *at + SETTLES).then_some(launch)
    }

    /// Records a change that AWS accepted.
    pub(super) fn accept(&mut self, write: &Write, now: DateTime<Utc>) {
        match write {
            Write::UpdateGroup { change, .. } => {
                if let Some(launch) = &change.launch {
                    self.0 = Some((launch.clone(), now));
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

    /// Forgets a change that a view shows, or that lies ahead since the clock was set back.
    pub(super) fn observe(&mut self, view: &GroupView, now: DateTime<Utc>) {
        let is_shown = self.unshown(view).is_none();
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
        changed.accept(&Write::UpdateGroup { group: "g".to_owned(), change }, now());
        let mut view = |seconds: i64| {
            if let GroupView::Present { as_of, .. } = &mut stage.observed.group {
                *as_of = now() + TimeDelta::seconds(seconds);
            }
            stage.observed.group.clone()
        };
        assert_eq!(changed.unshown(&view(-60)), Some(&launch));
        assert_eq!(changed.unshown(&view(5)), Some(&launch), "reads may lag");
        assert_eq!(changed.unshown(&view(6)), None);
        let mut set_back = changed.clone();
        changed.observe(&view(6), now() + TimeDelta::seconds(6));
        set_back.observe(&view(-60), now() - TimeDelta::hours(1));
        assert!(changed.unshown(&view(-60)).is_none() && set_back.unshown(&view(-60)).is_none());
    }
}
