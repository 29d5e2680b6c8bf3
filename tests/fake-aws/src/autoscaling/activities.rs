//! Scaling activities: the group's account of what it does and why something failed.

use chrono::{DateTime, Utc};

pub(crate) use super::activity::Status;
use super::{Group, activity::Activity, group_not_found};
use crate::{
    ApiError, Tree,
    pages::Page,
    region::{Region, View},
    time::timestamp,
};

/// Activities kept per group; AWS keeps six weeks.
const KEPT: usize = 500;

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::PreInService => "PreInService",
            Self::InProgress => "InProgress",
            Self::MidLifecycleAction => "MidLifecycleAction",
            Self::Successful => "Successful",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }

    fn running(self) -> bool {
        matches!(self, Self::PreInService | Self::InProgress | Self::MidLifecycleAction)
    }
}

impl Activity {
    pub(crate) fn render(&self, group: &Group) -> Tree {
        Tree::new()
            .with("ActivityId", &self.id)
            .with("AutoScalingGroupName", &group.name)
            .with("AutoScalingGroupARN", &group.arn)
            .with("Description", &self.description)
            .with("Cause", &self.cause)
            .with("StartTime", timestamp(self.start))
            .with_opt("EndTime", self.end.map(timestamp))
            .with("StatusCode", self.status.as_str())
            .with_opt("StatusMessage", self.message.as_deref())
            .with("Progress", if self.status.running() { 50 } else { 100 })
            .with("Details", &self.details)
    }
}

/// The usual cause: desired and actual capacity differ.
pub(crate) fn difference(now: DateTime<Utc>, what: &str, direction: &str) -> String {
    format!(
        "At {} {what} in response to a difference between desired and actual capacity, {direction} the capacity.",
        timestamp(now)
    )
}

/// Starts an activity; its sequence number is the handle.
pub(crate) fn begin(
    region: &mut Region,
    group: &str,
    description: &str,
    cause: &str,
    details: Option<&Tree>,
) -> u64 {
    let (now, id) = (region.now, region.ids.uuid());
    let Some(group) = region.state.groups.get_mut(group) else { return 0 };
    let sequence = group.activities.last_key_value().map_or(1, |(last, _)| last + 1);
    let status = if description.starts_with("Launching") { Status::PreInService } else { Status::InProgress };
    let activity = Activity {
        id,
        description: description.to_owned(),
        cause: cut(cause, 1023),
        start: now,
        end: None,
        status,
        message: None,
        details: details.map_or_else(|| "{}".to_owned(), |details| details.to_json().to_string()),
    };
    group.activities.insert(sequence, activity);
    while group.activities.len() > KEPT {
        group.activities.pop_first();
    }
    sequence
}

/// An activity waits for a lifecycle action.
pub(crate) fn waiting(region: &mut Region, group: &str, sequence: u64) {
    if let Some(activity) = find(region, group, sequence) {
        activity.status = Status::MidLifecycleAction;
    }
}

/// An activity is over.
pub(crate) fn finish(region: &mut Region, group: &str, sequence: u64, status: Status, message: Option<&str>) {
    let now = region.now;
    if let Some(activity) = find(region, group, sequence) {
        activity.status = status;
        activity.end = Some(now);
        activity.message = message.map(|message| cut(message, 255));
        region.emit_activity(group, sequence, status == Status::Successful);
    }
}

/// The launches that ended without success since the last that succeeded, oldest first: when each began, and its message.
pub(crate) fn failed_launches(group: &Group) -> Vec<(DateTime<Utc>, String)> {
    let all = group.activities.values().rev();
    let ended = all.filter(|one| one.description.starts_with("Launching") && !one.status.running());
    let failed = ended.take_while(|one| one.status != Status::Successful);
    let mut failed: Vec<_> = failed.map(|one| (one.start, one.message.clone().unwrap_or_default())).collect();
    failed.reverse();
    failed
}

fn find<'a>(region: &'a mut Region, group: &str, sequence: u64) -> Option<&'a mut Activity> {
    region.state.groups.get_mut(group)?.activities.get_mut(&sequence)
}

fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}

/// `DescribeScalingActivities`: running ones first, then the newest.
pub(crate) fn describe(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let wanted = params.texts_of("ActivityIds");
    if wanted.len() > 50 {
        return Err(ApiError::validation(
            "The number of activity ids that may be passed in is limited to 50",
        ));
    }
    let name = params.text_of("AutoScalingGroupName");
    if let Some(name) = name.filter(|name| !view.state.groups.contains_key(*name)) {
        return Err(group_not_found(name));
    }
    let page = Page::records(params, 100, 100)?;
    let mut entries = Vec::new();
    for group in view.state.groups.values().filter(|group| name.is_none_or(|name| name == group.name)) {
        for (sequence, activity) in &group.activities {
            if wanted.is_empty() || wanted.contains(&activity.id) {
                let over = u8::from(!activity.status.running());
                let age = i64::MAX - activity.start.timestamp_millis();
                let key = format!("{over}/{age:020}/{}/{:020}", group.name, u64::MAX - sequence);
                entries.push((key, activity.render(group)));
            }
        }
    }
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(page.reply(view.settings, "Activities", entries))
}
