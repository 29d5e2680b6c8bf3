//! New instances can join: the launch template keeps up with the bootstrap token.

use base64::{Engine, engine::general_purpose::STANDARD};
use capasg_api::{ASGMachinePool, capi::pause_state, pool::ChangePolicy};
use capasg_fake_aws::Change;
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::state::{Inner, Invariants};
use crate::{Pool, cloud::MANAGER};

const RULE: &str = "the_launch_template_has_the_token";

/// How far the launch template may be behind the Secret.
const BEHIND: TimeDelta = TimeDelta::minutes(2);

/// What somebody else had the group launch from is seen by a poll: with events they are 5 min apart, since AWS tells of
/// no change of a group by an API call (docs/architecture.md, "The inventory").
const POLLED: TimeDelta = TimeDelta::minutes(5);

/// What a new version and its pin need: the calls, and what the launch template is made of.
const NEEDED: [&str; 10] = [
    "CreateLaunchTemplate",
    "CreateLaunchTemplateVersion",
    "CreateAutoScalingGroup",
    "UpdateAutoScalingGroup",
    "DescribeAutoScalingGroups",
    "DescribeLaunchTemplates",
    "DescribeLaunchTemplateVersions",
    "DescribeImages",
    "GetParameter",
    "GetCallerIdentity",
];

/// Whether a preview reports that bootstrap data changes.
fn previews_bootstrap_data(pool: &ASGMachinePool) -> bool {
    let mut changes = pool.status.iter().flat_map(|status| &status.pending_changes);
    pool.spec.change_policy() == ChangePolicy::Preview
        && changes.any(|change| change.path == "bootstrap data")
}

impl Invariants {
    /// The version that a group launches from holds a token that was the newest at most 2 minutes ago.
    ///
    /// Exempt: a pool that is paused or goes, or whose preview reports that bootstrap data changes (docs/operations.md,
    /// "Preview changes": user data are never read back, so that a new token cannot be put into the previous data); caches
    /// that do not show the Secret, or the end of a pause; calls that this needs while AWS fails or rejects them, until they
    /// are repeated; an instance refresh under way, during which AWS refuses another version (User Guide, "instance
    /// refresh", limitations); a version that somebody else chose, until a poll shows it.
    pub(super) fn the_launch_template_has_the_token(&self, inner: &mut Inner, now: DateTime<Utc>) {
        for pool in inner.pools.clone() {
            let behind = self.behind(inner, &pool, now);
            let name = pool.key.name.clone();
            if behind.is_none() {
                inner.token.fresh.insert(name, now);
                continue;
            }
            let made = self.core.state().newest.get(&pool.config).map(|(_, at)| *at);
            let since = [
                made,
                inner.token.fresh.get(&name).copied(),
                inner.failures.over(&NEEDED),
                inner.token.by_others.get(&pool.group).map(|at| *at + POLLED),
            ];
            let since = since.into_iter().flatten().max().unwrap_or(now);
            if now - since > BEHIND {
                let version = behind.unwrap_or_default();
                inner.token.fresh.insert(name, now);
                inner.breaks(now, RULE, format!("version {version} has an old token since {since}"));
            }
        }
    }

    /// Keeps when somebody else had a group launch from another version.
    pub(super) fn note_pins_of_others(inner: &mut Inner, change: &Change, at: DateTime<Utc>) {
        if let Some(group) = &change.group
            && change.action == "UpdateAutoScalingGroup"
            && change.by.as_deref() != Some(MANAGER)
        {
            inner.token.by_others.insert(group.clone(), at);
        }
    }

    /// The version that a group launches from, if it should hold the newest token and does not.
    fn behind(&self, inner: &mut Inner, pool: &Pool, now: DateTime<Utc>) -> Option<u64> {
        {
            let api = self.api.state();
            let (object, owner) = (api.pools.get(&pool.key)?, api.machine_pools.get(&pool.machine_pool)?);
            let (key, cluster) = api.clusters.all().into_iter().next()?;
            let goes = [&object.metadata, &owner.metadata, &cluster.metadata]
                .iter()
                .any(|metadata| metadata.deletion_timestamp.is_some());
            owner.bootstrap_config()?;
            if goes
                || pause_state(Some(&cluster), object.annotations()).is_paused()
                || previews_bootstrap_data(&object)
            {
                return None;
            }
            let cached = api.secrets.cached(&pool.config).and_then(|own| own.resource_version());
            let live = api.secrets.get(&pool.config).and_then(|own| own.resource_version());
            let shown = api.pools.cached(&pool.key)?;
            let known = api.clusters.cached(&key);
            let is_shown = cached == live
                && api.machine_pools.cached(&pool.machine_pool).is_some()
                && !pause_state(known.as_deref(), shown.annotations()).is_paused();
            if !is_shown {
                return None;
            }
        }
        let refreshes = self.simulator.refreshes(&self.scope, &pool.group);
        if refreshes.iter().any(|one| one.ended.is_none_or(|ended| now - ended < TimeDelta::minutes(1))) {
            return None;
        }
        let (template, number) = self.simulator.pinned(&self.scope, &pool.group)?;
        let token = self.core.state().newest.get(&pool.config).map(|(token, _)| token.clone())?;
        let seen = &mut inner.token.looked;
        let has = match seen.get(&pool.key.name) {
            Some((of, version, looked_for, has))
                if (of, version, looked_for) == (&template, &number, &token) =>
            {
                *has
            }
            _ => {
                let data = self.simulator.user_data_of_version(&self.scope, &template, number)?;
                let data = STANDARD.decode(data).ok()?;
                let has = String::from_utf8_lossy(&data).contains(&token);
                seen.insert(pool.key.name.clone(), (template, number, token, has));
                has
            }
        };
        (!has).then_some(number)
    }
}
