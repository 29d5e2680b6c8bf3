//! Instance refreshes: started, cancelled, rolled back and described.

use std::collections::BTreeMap;

use super::{
    group_not_found,
    launch_source::LaunchSource,
    modifiable,
    refresh::{Preferences, Refresh, RefreshStatus},
    refresh_run,
};
use crate::{
    ApiError, Tree,
    events::Event,
    pages::Page,
    region::{Region, View},
};

/// Refreshes kept per group; AWS keeps six weeks.
const KEPT: usize = 100;

/// `StartInstanceRefresh`.
pub(crate) fn start(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    let group = modifiable(region, &name)?.clone();
    if group.refresh().is_some() {
        return Err(ApiError::refused(
            "InstanceRefreshInProgress",
            "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.",
        ));
    }
    if params.text_of("Strategy").is_some_and(|strategy| strategy != "Rolling") {
        return Err(ApiError::unsupported("strategy ReplaceRootVolume of StartInstanceRefresh"));
    }
    let preferences = Preferences::read(params.get("Preferences"))?;
    let desired = match params.get("DesiredConfiguration") {
        None => None,
        Some(given) => {
            let source = LaunchSource::read(&region.state, &region.settings, given, Some(&group.source))?;
            source.map(|source| (source, given.clone()))
        }
    };
    if preferences.auto_rollback {
        if desired.is_none() {
            return Err(ApiError::validation(
                "The AutoRollback parameter cannot be set to true when the DesiredConfiguration parameter is empty.",
            ));
        }
        if !can_return(region, &group.source) {
            return Err(ApiError::validation(
                "The AutoRollback parameter cannot be set to true when the Auto Scaling group uses $Latest, $Default or an \
                 image from a Systems Manager parameter.",
            ));
        }
    }
    let (now, id) = (region.now, region.ids.uuid());
    let refresh = Refresh {
        id: id.clone(),
        status: RefreshStatus::Pending,
        reason: None,
        asked: now,
        started: None,
        ended: None,
        cancelled: None,
        desired,
        preferences,
        old: std::collections::BTreeSet::new(),
        extra: 0,
        percentage: 0,
        left: 0,
        progressed: now,
        passed: 0,
        until: None,
        rollback: None,
    };
    let group = modifiable(region, &name)?;
    group.refreshes.push(refresh);
    if group.refreshes.len() > KEPT {
        group.refreshes.remove(0);
    }
    region.schedule(region.settings.refresh_millis, Event::Refresh(name, id.clone()));
    Ok(Tree::new().with("InstanceRefreshId", id))
}

/// Whether a group could go back to this configuration: its version is a number and its image an id.
fn can_return(region: &Region, source: &LaunchSource) -> bool {
    let specification = source.template();
    let version = region
        .state
        .template(Some(&specification.id), None)
        .and_then(|template| template.version(&specification.version));
    let image = version.and_then(|(_, version)| version.data.text_of("ImageId")).unwrap_or_default();
    !specification.version.starts_with('$') && !image.starts_with("resolve:ssm:")
}

fn none_active() -> ApiError {
    ApiError::refused("ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found.")
}

/// `CancelInstanceRefresh`: a rollback can be cancelled, too.
pub(crate) fn cancel(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    let wait = params.flag_of("WaitForTransitioningInstances") != Some(false);
    let now = region.now;
    let group = region.state.groups.get_mut(&name).ok_or_else(|| group_not_found(&name))?;
    let refresh = group
        .refresh_mut()
        .filter(|refresh| refresh.status != RefreshStatus::Cancelling)
        .ok_or_else(none_active)?;
    let id = refresh.id.clone();
    refresh.status = RefreshStatus::Cancelling;
    refresh.cancelled = Some(now);
    refresh.reason = Some("Cancelled due to user request.".to_owned());
    refresh.extra = 0;
    refresh_run::settle_cancel(region, &name, wait);
    Ok(Tree::new().with("InstanceRefreshId", id))
}

/// `RollbackInstanceRefresh`.
pub(crate) fn rollback(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    let group = region.state.groups.get(&name).ok_or_else(|| group_not_found(&name))?;
    let forward = [RefreshStatus::Pending, RefreshStatus::InProgress, RefreshStatus::Baking];
    let refresh =
        group.refresh().filter(|refresh| forward.contains(&refresh.status)).ok_or_else(none_active)?;
    if refresh.desired.is_none() || !can_return(region, &group.source) {
        return Err(ApiError::refused(
            "IrreversibleInstanceRefresh",
            "The instance refresh cannot be rolled back: there is no desired configuration, or the group has no \
             configuration to go back to.",
        ));
    }
    let id = refresh.id.clone();
    refresh_run::roll_back(region, &name, "Rollback was initiated by a user request.");
    Ok(Tree::new().with("InstanceRefreshId", id))
}

/// `DescribeInstanceRefreshes`: the newest first.
pub(crate) fn describe(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default();
    let group = view.state.groups.get(name).ok_or_else(|| group_not_found(name))?;
    let wanted = params.texts_of("InstanceRefreshIds");
    let page = Page::records(params, 50, 100)?;
    let all = group.refreshes.iter().enumerate().rev();
    let chosen = all.filter(|(_, own)| wanted.is_empty() || wanted.contains(&own.id));
    let entries = chosen.map(|(place, own)| {
        let age = i64::MAX - own.asked.timestamp_millis();
        (format!("{age:020}/{:04}", KEPT - place), own.render(name))
    });
    Ok(page.reply(view.settings, "InstanceRefreshes", entries.collect()))
}

/// Puts the statuses that a test made up in the place of the real ones, which the service model would refuse.
pub(crate) fn disguised(disguises: &BTreeMap<String, String>, mut reply: Tree) -> Tree {
    let items = reply.items_of("InstanceRefreshes").iter().map(|item| {
        let made_up = item.text_of("InstanceRefreshId").and_then(|id| disguises.get(id));
        made_up.map_or_else(|| item.clone(), |status| item.clone().with("Status", status))
    });
    let items = Tree::list(items.collect::<Vec<_>>());
    reply.set("InstanceRefreshes", items);
    reply
}
