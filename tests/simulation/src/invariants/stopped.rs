//! A rollout that was stopped for good stays so, until what is rolled out changes or a person lets it go on.

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

    /// What is rolled out, as the reconcile under way sees it.
    pub(super) fn rolled_out(&self, inner: &Inner) -> Option<String> {
        let (object, owner) = inner.begun.both()?;
        let pool = inner.pools.iter().find(|pool| pool.key == ObjectKey::of(object))?;
        let config = self.api.state().configs.get(&pool.config)?;
        let spec = &object.spec;
        let after = spec.rollout.as_ref().and_then(|rollout| rollout.after.as_ref());
        let bootstrap = config.data.get("spec");
        serde_json::to_string(&(&spec.machine, &spec.instance_types, after, owner.version(), bootstrap)).ok()
    }

    /// A reconcile begins: what is rolled out may have changed.
    pub(super) fn note_revision(&self, inner: &mut Inner, pool: &ObjectKey) {
        if let Some(stopped) = inner.stopped.0.get(pool).cloned()
            && self.rolled_out(inner).is_none_or(|now| now != stopped)
        {
            inner.stopped.0.remove(pool);
        }
    }

    /// Keeps when rollouts stop and when they are over.
    pub(super) fn note_stops(&self, inner: &mut Inner, write: &KubeWrite) {
        match write {
            KubeWrite::AnnotateRolloutStopped { pool, revision: Some(_), .. } => {
                if let Some(now) = self.rolled_out(inner) {
                    inner.stopped.0.insert(pool.clone(), now);
                }
            }
            KubeWrite::PatchPoolStatus { pool, status, .. } if status.rollout.is_none() => {
                inner.stopped.0.remove(pool);
            }
            _ => {}
        }
    }

    /// Nothing is deleted as outdated once the rollout was stopped, and the mark stays.
    ///
    /// Exempt: what is to be rolled out has changed since, nothing was left to be rolled out in between, or a person took
    /// the mark off.
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
