//! What was launched for the desired state stays: a rollout ends.

use std::sync::Arc;

use capasg_api::{names::annotations, pool::ZoneRebalancePolicy};
use capasg_cloud::{LaunchTemplateData, Write};
use capasg_controllers::ObjectKey;
use capasg_fake_aws::TemplateDump;
use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::state::{Inner, Invariants};
use super::token::without_tokens;
use crate::api_server::Store;

const RULE: &str = "what_is_up_to_date_stays";

impl Invariants {
    /// What outdates instances (docs/users/rollouts.md, "Outdated instances") as the reconcile under way sees it: all but tokens,
    /// numbers of instances, and what applies in place. An edit of the bootstrap configuration counts once it is rendered.
    pub(super) fn desired_state(&self, inner: &Inner) -> Option<String> {
        self.state_of_secret(inner, Store::cached)
    }

    fn state_of_secret(
        &self,
        inner: &Inner,
        read: impl Fn(&Store<Secret>, &ObjectKey) -> Option<Arc<Secret>>,
    ) -> Option<String> {
        let (object, _) = inner.begun.both()?;
        let pool = inner.pools.iter().find(|pool| pool.key == ObjectKey::of(object))?;
        let data = read(&self.api.state().secrets, &pool.config).and_then(|own| own.data.clone());
        let data = data.and_then(|data| data.get("value").map(|value| value.0.clone())).unwrap_or_default();
        Self::state_with(inner, &data)
    }

    /// The same with these bootstrap data.
    fn state_with(inner: &Inner, data: &[u8]) -> Option<String> {
        let (object, owner) = inner.begun.both()?;
        let spec = &object.spec;
        let after = spec.rollout.as_ref().and_then(|rollout| rollout.after.as_ref());
        let data = String::from_utf8_lossy(data);
        let state = json!([spec.machine, spec.instance_types, after, owner.version(), without_tokens(&data)]);
        Some(state.to_string())
    }

    /// Keeps the desired state for which a version is requested, whether or not the call fails: it may have its effect
    /// later. Descriptions name the content of versions, so that the first state with one counts. Its bootstrap data
    /// are those of the version: they were read from the API server, and caches may show earlier ones.
    pub(super) fn note_version(&self, inner: &mut Inner, write: &Write) {
        let is_of = |template: &TemplateDump| match write {
            Write::CreateLaunchTemplate { name, .. } => template.name == *name,
            Write::CreateLaunchTemplateVersion { id, .. } => template.id == *id,
            _ => false,
        };
        let (Write::CreateLaunchTemplate { data, description, .. }
        | Write::CreateLaunchTemplateVersion { data, description, .. }) = write
        else {
            return;
        };
        let Some(template) = self.template(is_of) else { return };
        let mut made = template.versions.iter().filter(|(_, of_version)| *of_version == description);
        if let Some((number, _)) = made.next_back() {
            inner.preview.made((template.id.clone(), *number), data);
        }
        // A preview makes a version with the newest token and the content of before, and so does a pool whose next launch
        // template waits.
        let previews = inner.begun.previews();
        let renews = Self::renews(inner, &template, data, description);
        let state = Self::state_with(inner, data.user_data.expose()).filter(|_| !previews && !renews);
        inner.current.states.entry((template.id, description.clone())).or_insert(state);
    }

    /// Whether a version has the content of an earlier one, although another is desired.
    fn renews(inner: &Inner, template: &TemplateDump, data: &LaunchTemplateData, description: &str) -> bool {
        let Some((object, _)) = inner.begun.both() else { return false };
        let spec = &object.spec.machine;
        if spec.image.id.as_ref().is_some_and(|image| *image != data.image_id) {
            return true;
        }
        // All but the hash of the content, which has the tokens, and what follows those of the bootstrap data.
        let identity =
            |text: &str| text.split(' ').skip(2).take(4).map(str::to_owned).collect::<Vec<String>>();
        let same = template.versions.values().filter(|other| identity(other) == identity(description));
        let machine = |state: &String| serde_json::from_str::<Value>(state).ok()?.get(0).cloned();
        same.filter_map(|other| inner.current.states.get(&(template.id.clone(), other.clone())))
            .filter_map(|state| machine(state.as_ref()?))
            .any(|before| before != json!(spec))
    }

    fn template(&self, is_it: impl Fn(&TemplateDump) -> bool) -> Option<TemplateDump> {
        self.dump()?.templates.into_iter().find(is_it)
    }

    /// The desired state that a launch template version was requested for, if it was.
    fn state_of(&self, inner: &Inner, (template, number): &(String, u64)) -> Option<String> {
        let description = self.template(|own| own.id == *template)?.versions.remove(number)?;
        inner.current.states.get(&(template.clone(), description)).cloned().flatten()
    }

    /// No instance that was launched for the current desired state, and joined, is deleted as outdated.
    ///
    /// Exempt, since each outdates what the launch template does not: `rollout.after`, a lifetime, a user's annotation,
    /// what AWS announced, and zones that are out of balance where `spec.zoneRebalancePolicy` is `Replace`
    /// (docs/users/rollouts.md).
    pub(super) fn what_is_up_to_date_stays(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        machine: &ObjectKey,
    ) {
        let Some(state) = self.desired_state(inner) else { return };
        // The bootstrap data of a version are read from the API server: the cache may show earlier ones.
        let is_read = self.state_of_secret(inner, Store::get).as_ref() == Some(&state);
        let Some(id) = machine.name.rfind("-i-").and_then(|at| machine.name.get(at + 1..)) else { return };
        let Some(version) = self.simulator.launched_from(&self.at_instance(id), id) else { return };
        let launched = inner.capacity.launched.get(id).copied();
        let rollout =
            inner.begun.object.as_ref().and_then(|own| own.spec.rollout.clone()).unwrap_or_default();
        let after = rollout.after.as_deref().and_then(|after| DateTime::parse_from_rfc3339(after).ok());
        let is_before = after.is_some_and(|after| launched.is_none_or(|launched| launched < after));
        let lifetime = rollout.max_instance_lifetime_seconds.map(|seconds| {
            // Up to a tenth before its end, so that not all go together.
            TimeDelta::seconds(i64::from(seconds)) * 9 / 10
        });
        let known = now + inner.begun.off;
        let is_old =
            lifetime.is_some_and(|lifetime| launched.is_none_or(|launched| known - launched >= lifetime));
        // A removal goes by a live listing: the cache may not have the annotation yet.
        let asg_machines = &self.api.state().asg_machines;
        let is_asked = [asg_machines.cached(machine), asg_machines.get(machine)]
            .iter()
            .flatten()
            .any(|own| own.annotations().contains_key(annotations::REPLACE));
        let is_balanced = inner
            .begun
            .object
            .as_ref()
            .is_some_and(|own| own.spec.zone_rebalance_policy() == ZoneRebalancePolicy::Replace);
        let exempt = is_balanced || is_before || is_old || is_asked || inner.is_announced(&machine.name);
        if !exempt
            && is_read
            && inner.begun.joined.contains(&machine.name)
            && self.state_of(inner, &version) == Some(state)
        {
            inner.breaks(
                now,
                RULE,
                format!("{} of version {} was deleted as outdated", machine.name, version.1),
            );
        }
    }
}
