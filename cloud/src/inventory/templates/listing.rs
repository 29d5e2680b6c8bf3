//! The listing of all launch templates that have our tag, each with its latest version: a restart with many pools, and the
//! hourly reads of their launch templates, cost a few calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Clock, Gateway, LaunchTemplate, Result, Template};

/// For how long a listing serves reads.
const SERVES_FOR: Duration = Duration::from_mins(2);

pub(super) struct Listing {
    tag_key: &'static str,
    /// Held while the calls are under way: a caller that waits for it finds them made.
    turn: tokio::sync::Mutex<()>,
    listed: Mutex<Listed>,
}

#[derive(Default)]
struct Listed {
    /// When the listing ended, or failed; `None` before the first one.
    at: Option<Instant>,
    /// What it showed and no read took, by name.
    templates: BTreeMap<String, Template>,
}

impl Listing {
    pub(super) fn new(tag_key: &'static str) -> Self {
        Self { tag_key, turn: tokio::sync::Mutex::default(), listed: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A launch template by name, once for each listing. The first read of all begins a listing, and so does one that
    /// repeats an earlier read; a new launch template, and one that was changed, are read by themselves.
    pub(super) async fn take(
        &self,
        clock: &Arc<dyn Clock>,
        gateway: &Gateway,
        name: &str,
        repeats: bool,
    ) -> Option<Template> {
        if let ControlFlow::Break(answer) = self.take_recent(name, repeats) {
            return answer;
        }
        let _turn = self.turn.lock().await;
        if let ControlFlow::Break(answer) = self.take_recent(name, repeats) {
            return answer;
        }
        let templates = self.list(clock, gateway).await.unwrap_or_else(|error| {
            // Each launch template is read by itself, and reports the failure if it persists.
            tracing::debug!(api = error.api, code = %error.code, "launch templates cannot be listed");
            BTreeMap::new()
        });
        *self.lock() = Listed { at: Some(Instant::now()), templates };
        self.lock().templates.remove(name)
    }

    /// Breaks with the answer, unless another listing has to begin.
    fn take_recent(&self, name: &str, repeats: bool) -> ControlFlow<Option<Template>> {
        let mut listed = self.lock();
        match listed.at {
            Some(at) if at.elapsed() < SERVES_FOR => ControlFlow::Break(listed.templates.remove(name)),
            Some(_) if !repeats => ControlFlow::Break(None),
            _ => ControlFlow::Continue(()),
        }
    }

    async fn list(&self, clock: &Arc<dyn Clock>, gateway: &Gateway) -> Result<BTreeMap<String, Template>> {
        let as_of = clock.now();
        let templates = gateway.launch_templates(self.tag_key).await?;
        let ids: BTreeSet<String> = templates.iter().map(|template| template.id.clone()).collect();
        let mut versions = gateway.latest_versions(ids).await?;
        let listed = templates.into_iter().filter_map(|template| {
            // A version may be missing, or be created meanwhile.
            let latest = versions.remove(&template.id)?;
            (latest.number == template.latest_version).then(|| {
                let (name, has_all_versions) = (template.name.clone(), latest.number == 1);
                let versions = BTreeMap::from([(latest.number, latest)]);
                (name, Template { template, versions, has_all_versions, as_of })
            })
        });
        Ok(listed.collect())
    }

    /// What was listed of launch templates that match is no longer true.
    pub(super) fn forget(&self, matches: impl Fn(&LaunchTemplate) -> bool) {
        self.lock().templates.retain(|_, listed| !matches(&listed.template));
    }

    /// Drops a listing that serves no read any more.
    pub(super) fn prune(&self, now: Instant) {
        let mut listed = self.lock();
        if listed.at.is_some_and(|at| now.duration_since(at) >= SERVES_FOR) {
            listed.templates.clear();
        }
    }
}
