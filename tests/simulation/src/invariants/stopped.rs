//! A rollout that was stopped for good stays so, until what is rolled out changes or a person lets it go on.

use capasg_cloud::Clock;
use capasg_controllers::{ObjectKey, kubernetes::KubeWrite};
use chrono::{DateTime, Utc};

use super::state::{Inner, Invariants};

const RULE: &str = "a_stopped_rollout_stays_stopped";

impl Invariants {
    /// A person takes the mark off.
    pub(crate) fn goes_on(&self, pool: &ObjectKey) {
        let mut inner = self.inner();
        inner.stopped.0.remove(pool);
        Self::refreshes_go_on(&mut inner, pool);
    }

    /// A reconcile begins: what is rolled out may have changed.
    pub(super) fn note_revision(&self, inner: &mut Inner, pool: &ObjectKey) {
        if let Some(stopped) = inner.stopped.0.get(pool).cloned()
            && self.desired_state(inner).is_none_or(|now| now != stopped)
        {
            inner.stopped.0.remove(pool);
        }
    }

    /// Keeps when rollouts stop and when they are over.
    pub(super) fn note_stops(&self, inner: &mut Inner, write: &KubeWrite) {
        match write {
            KubeWrite::AnnotateRolloutStopped { pool, revision: Some(_), .. } => {
                if let Some(now) = self.desired_state(inner) {
                    inner.stopped.0.insert(pool.clone(), now);
                }
            }
            KubeWrite::PatchPoolStatus { pool, status, .. }
                if status.rollout.is_none()
                    && inner.stopped.is_stopped(pool)
                    && (inner.begun.previews() || !self.has_another_image(inner, pool)) =>
            {
                inner.stopped.0.remove(pool);
            }
            _ => {}
        }
    }

    /// Whether the group has an instance in service of another image than the spec names: something is left, whatever the
    /// status reports.
    ///
    /// Exempt: an instance that was launched after the read that the status reports.
    pub(super) fn has_another_image(&self, inner: &Inner, key: &ObjectKey) -> bool {
        let image = inner.begun.object.as_ref().and_then(|own| own.spec.machine.image.id.clone());
        let pool = inner.pools.iter().find(|pool| pool.key == *key);
        let (Some(image), Some(pool)) = (image, pool) else { return false };
        let now = self.clock.now();
        self.dump().into_iter().flat_map(|dump| dump.instances).any(|one| {
            one.group.as_deref() == Some(pool.group.as_str())
                && one.lifecycle_state.as_deref() == Some("InService")
                && one.image != image
                && inner.capacity.launched.get(&one.id).is_none_or(|then| now - *then > self.last_read())
        })
    }

    /// Nothing is deleted as outdated once the rollout was stopped, and the mark stays.
    ///
    /// Exempt: what is to be rolled out has changed since (a token is no change), changes were only previewed in between,
    /// nothing was left to be rolled out, or a person took the mark off.
    pub(super) fn a_stopped_rollout_stays_stopped(
        inner: &mut Inner,
        now: DateTime<Utc>,
        machine: &ObjectKey,
    ) {
        let object = inner.begun.object.as_ref().map(|own| ObjectKey::of(own.as_ref()));
        if object.is_some_and(|pool| inner.stopped.0.contains_key(&pool)) {
            inner.breaks(now, RULE, format!("{} was deleted as outdated", machine.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::*;
    use crate::{World, run};

    #[test]
    fn a_stop_outlasts_a_token_but_no_rendered_edit() -> Result<()> {
        run(async {
            let mut world = World::judged();
            let pool = world.add_pool("workers", 1);
            let is_stopped = |world: &World| {
                world.api.state().deliver();
                let invariants = world.invariants().unwrap();
                invariants.reconcile_begins(&pool.key, false);
                invariants.inner().stopped.is_stopped(&pool.key)
            };
            assert!(!is_stopped(&world));
            let stop = KubeWrite::AnnotateRolloutStopped {
                pool: pool.key.clone(),
                resource_version: None,
                revision: Some("revision".to_owned()),
                reason: String::new(),
                rolled_back: false,
            };
            let invariants = world.invariants().unwrap();
            invariants.note_stops(&mut invariants.inner(), &stop);
            assert!(is_stopped(&world));
            world.rotate_token(&pool);
            assert!(is_stopped(&world), "a token is no other wish");
            world.core.edit_config(&pool.config, "9");
            assert!(is_stopped(&world), "an edit that is not rendered is none");
            world.rotate_token(&pool);
            assert!(!is_stopped(&world), "a rendered edit is");
        })
    }
}
