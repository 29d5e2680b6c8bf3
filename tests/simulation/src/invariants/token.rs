//! New instances can join: the launch template keeps up with the bootstrap token.

use base64::{Engine, engine::general_purpose::STANDARD};
use capasg_api::{
    conditions::{self, LAUNCH_TEMPLATE_READY},
    names::{annotations, tags},
    pool::ChangePolicy,
};
use capasg_cloud::Clock;
use capasg_fake_aws::{Change, RefreshGlance};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::seen::preview::POLLED;
use super::state::{Inner, Invariants};
use crate::{Pool, cloud::MANAGER};

const RULE: &str = "the_launch_template_has_the_token";

/// How far the launch template may be behind the Secret.
const BEHIND: TimeDelta = TimeDelta::minutes(2);

/// The calls that a new version and its pin need. AWS may reject a version for what the spec names: that is no failure of the
/// call, since the group is pinned to another one. What is read of images, subnets and security groups is not needed: a group
/// continues to launch what it launches.
const NEEDED: [&str; 8] = [
    "CreateLaunchTemplate",
    "CreateLaunchTemplateVersion",
    "CreateAutoScalingGroup",
    "UpdateAutoScalingGroup",
    "DescribeAutoScalingGroups",
    "DescribeLaunchTemplates",
    "DescribeLaunchTemplateVersions",
    "GetCallerIdentity",
];

/// The length of a token, which differs between data that are otherwise the same.
const TOKEN: usize = 23;

/// Bootstrap data without the tokens that they hold.
pub(super) fn without_tokens(data: &str) -> Vec<&str> {
    data.split("token: ").map(|part| part.get(TOKEN..).unwrap_or(part)).collect()
}

impl Invariants {
    /// The version that a group launches from holds a token that was the newest at most 2 minutes ago.
    ///
    /// Exempt: a pool that is paused or goes, or whose group has the owner ID of another; a Secret that somebody else
    /// wrote, without a token; a pool that only previews bootstrap data which differ by more than a token, or what
    /// replaces the version of somebody else, `$Latest` or `$Default` (docs/users/drift.md, "Preview changes": user data
    /// are never read back, so that a new token cannot be put into the previous data), and neither can one whose launch
    /// template waits for what its spec names, or for a read of it; caches that do not show the
    /// Secret, or the end of a pause; calls that this needs while AWS fails or rejects them, until they are repeated;
    /// writes that the API server does not answer, for which a reconcile waits; an instance refresh under way that has
    /// a desired configuration, during which AWS refuses another version (`StartInstanceRefresh`,
    /// `DesiredConfiguration`); a version that somebody else chose, until a poll shows it.
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
                self.api.state().waits_for_lost,
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
    pub(super) fn note_choice_of_others(&self, inner: &mut Inner, change: &Change, at: DateTime<Utc>) {
        let by_others = change.by.as_deref() != Some(MANAGER);
        let Some(group) =
            change.group.as_ref().filter(|_| by_others && change.action == "UpdateAutoScalingGroup")
        else {
            return;
        };
        let pin = self.simulator.pinned(&self.at(group), group);
        if pin.is_some_and(|pin| inner.preview.pinned(group).is_some_and(|before| *before != pin)) {
            inner.token.by_others.insert(group.clone(), at);
        }
    }

    /// Keeps what each group launches from: calls change it, and so does an instance refresh with a desired
    /// configuration when it succeeds.
    pub(super) fn note_pins(&self, inner: &mut Inner) {
        let Inner { pools, preview, .. } = inner;
        for pool in pools.iter() {
            if let Some(pin) = self.simulator.pinned(&self.at(&pool.group), &pool.group)
                && preview.pinned(&pool.group) != Some(&pin)
            {
                preview.pins(&pool.group, pin, self.clock.now());
            }
        }
    }

    /// The version that a group launches from, if it should hold the newest token and does not.
    fn behind(&self, inner: &mut Inner, pool: &Pool, now: DateTime<Utc>) -> Option<u64> {
        if !self.is_reconciled(pool) {
            return None;
        }
        let (previews, waits, wanted, owner) = {
            let api = self.api.state();
            let (object, shown) = (api.pools.get(&pool.key)?, api.pools.cached(&pool.key)?);
            api.machine_pools.get(&pool.machine_pool)?.bootstrap_config()?;
            let cached = api.secrets.cached(&pool.config).and_then(|own| own.resource_version());
            let live = api.secrets.get(&pool.config).and_then(|own| own.resource_version());
            if cached != live || api.machine_pools.cached(&pool.machine_pool).is_none() {
                return None;
            }
            let wanted = api.secrets.get(&pool.config).and_then(|own| own.data.clone());
            let previews =
                [&object, &shown].iter().any(|own| own.spec.change_policy() == ChangePolicy::Preview);
            let wanted = wanted.and_then(|data| data.get("value").map(|value| value.0.clone()));
            let told = object.status.as_ref().map(|status| status.conditions.as_slice());
            let waits = told
                .and_then(|told| conditions::get(told, LAUNCH_TEMPLATE_READY))
                .is_some_and(|one| one.status != "True");
            (
                previews,
                waits,
                wanted.unwrap_or_default(),
                object.annotations().get(annotations::OWNER_ID).cloned(),
            )
        };
        if owner.is_none()
            || owner != self.simulator.tag_of(&self.at(&pool.group), &pool.group, tags::OWNER_ID)
        {
            return None;
        }
        let refreshes = self.simulator.refreshes(&self.at(&pool.group), &pool.group);
        let refuses = |one: &RefreshGlance| {
            one.configured && one.ended.is_none_or(|ended| now - ended < TimeDelta::minutes(1))
        };
        if refreshes.iter().any(refuses) {
            return None;
        }
        let (template, number) = self.simulator.pinned(&self.at(&pool.group), &pool.group)?;
        let is_ours = inner.preview.contents.contains_key(&(template.clone(), number));
        if previews && !(is_ours && self.simulator.is_pinned_by_number(&self.at(&pool.group), &pool.group)) {
            return None;
        }
        let token = self.core.state().newest.get(&pool.config).map(|(token, _)| token.clone())?;
        let wanted = String::from_utf8_lossy(&wanted);
        if !wanted.contains(&token) {
            return None;
        }
        let seen = &mut inner.token.looked;
        let (has, differs) = match seen.get(&pool.key.name) {
            Some((of, version, looked_for, found))
                if (of, version, looked_for) == (&template, &number, &token) =>
            {
                *found
            }
            _ => {
                let data = self.simulator.user_data_of_version(&self.at(&pool.group), &template, number)?;
                let data = STANDARD.decode(data).ok()?;
                let data = String::from_utf8_lossy(&data);
                let differs = without_tokens(&data) != without_tokens(&wanted);
                let found = (data.contains(&token), differs);
                seen.insert(pool.key.name.clone(), (template, number, token, found));
                found
            }
        };
        (!(has || (previews || waits) && differs)).then_some(number)
    }
}
