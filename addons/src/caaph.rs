//! Detects Cluster API Add-on Provider for Helm (CAAPH): it reconciles the same kinds, and two controllers of one release
//! would undo each other's work. It is detected by its Lease, in any namespace.

use std::{collections::BTreeMap, time::Duration};

use capasg_api::errors;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, Client, ResourceExt as _, api::ListParams};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// The name of its Lease. The role in `config/addons` allows to list exactly these.
pub const LEASE: &str = "controller-leader-election-caaph";
/// How often the Leases are listed: several times within the duration of one.
const PAUSE: Duration = Duration::from_secs(5);
/// The duration of a Lease that names none.
const DEFAULT_DURATION: Duration = Duration::from_secs(15);

/// What is known of the other provider.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The Leases could not be listed yet.
    Unknown,
    /// It does not run.
    Absent,
    /// It runs in this namespace.
    Runs(String),
}

/// Whether the other provider runs, kept up to date by [`Detector::watch`].
#[derive(Debug)]
pub struct Detector(watch::Sender<State>);

impl Default for Detector {
    fn default() -> Self {
        Self(watch::Sender::new(State::Unknown))
    }
}

impl Detector {
    /// Lists the Leases again and again, for as long as the future runs.
    pub async fn watch(&self, client: Client) {
        let (api, named) = (Api::<Lease>::all(client), format!("metadata.name={LEASE}"));
        let mut leases = Leases::default();
        loop {
            match api.list(&ListParams::default().fields(&named)).await {
                Ok(listed) => {
                    let holder = leases.observe(&listed.items, Instant::now());
                    self.set(holder.map_or(State::Absent, State::Runs));
                }
                // What was known remains: a short outage of the API server ends no controller.
                Err(error) => {
                    let error = errors::of_request(&error);
                    tracing::warn!(error, "cannot list the Leases of other add-on providers");
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Why the controllers must not run; none if they may.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match &*self.0.borrow() {
            State::Unknown => {
                Some("it is not known yet whether Cluster API Add-on Provider for Helm runs".to_owned())
            }
            State::Absent => None,
            State::Runs(namespace) => Some(format!(
                "Cluster API Add-on Provider for Helm runs in namespace {namespace} (Lease {LEASE}) and reconciles the same \
                 objects; scale it to 0 or delete it, and the controllers start once its Lease has expired"
            )),
        }
    }

    /// Waits until it is known that the other provider does not run.
    pub async fn absent(&self) {
        self.until(|state| *state == State::Absent).await;
    }

    /// Waits until the other provider runs.
    pub async fn present(&self) {
        self.until(|state| matches!(state, State::Runs(_))).await;
    }

    async fn until(&self, is_reached: impl FnMut(&State) -> bool) {
        // The sender is `self`, so that the channel does not close.
        let _ = self.0.subscribe().wait_for(is_reached).await;
    }

    fn set(&self, state: State) {
        let is_changed = self.0.send_if_modified(|known| {
            let is_changed = *known != state;
            *known = state;
            is_changed
        });
        if is_changed && let Some(problem) = self.problem() {
            tracing::warn!(problem, "the controllers do not run");
        }
    }
}

/// The Leases by their namespaces, and when each was observed to change. As in an election, clocks of two machines are not
/// compared.
#[derive(Debug, Default)]
struct Leases(BTreeMap<String, (LeaseSpec, Instant)>);

impl Leases {
    /// The namespace of a Lease that is held, if there is one.
    fn observe(&mut self, listed: &[Lease], now: Instant) -> Option<String> {
        let known = std::mem::take(&mut self.0);
        for lease in listed {
            let (namespace, spec) =
                (lease.namespace().unwrap_or_default(), lease.spec.clone().unwrap_or_default());
            let unchanged = known.get(&namespace).filter(|(known, _)| *known == spec);
            let at = unchanged.map_or(now, |(_, at)| *at);
            self.0.insert(namespace, (spec, at));
        }
        self.0.iter().find(|(_, (spec, at))| is_held(spec, *at, now)).map(|(namespace, _)| namespace.clone())
    }
}

fn is_held(spec: &LeaseSpec, changed: Instant, now: Instant) -> bool {
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let duration = seconds.map_or(DEFAULT_DURATION, Duration::from_secs);
    spec.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty()) && now < changed + duration
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(namespace: &str, holder: &str, renewed: u32) -> Lease {
        serde_json::from_value(json!({
            "metadata": {"name": LEASE, "namespace": namespace},
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": 15,
                "renewTime": format!("2026-01-01T00:00:{renewed:02}.000000Z"),
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_lease_is_held_while_it_is_renewed() {
        let (mut leases, start) = (Leases::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(leases.observe(&[], start), None);
        let held = Some("caaph-system".to_owned());
        assert_eq!(leases.observe(&[lease("caaph-system", "a", 0)], start), held);
        assert_eq!(leases.observe(&[lease("caaph-system", "a", 2)], after(10)), held);
        assert_eq!(leases.observe(&[lease("caaph-system", "a", 2)], after(24)), held);
        assert_eq!(leases.observe(&[lease("caaph-system", "a", 2)], after(25)), None, "it was not renewed");
        assert_eq!(leases.observe(&[lease("caaph-system", "a", 30)], after(26)), held, "it is back");
        assert_eq!(leases.observe(&[lease("caaph-system", "", 40)], after(27)), None, "it was released");
    }

    #[test]
    fn any_namespace_counts() {
        let (mut leases, start) = (Leases::default(), Instant::now());
        let listed = [lease("a", "", 0), lease("b", "x", 0)];
        assert_eq!(leases.observe(&listed, start), Some("b".to_owned()));
        assert_eq!(leases.observe(&listed[..1], start), None, "it was deleted");
    }

    #[tokio::test]
    async fn the_problem_names_the_namespace_and_what_to_do() {
        let detector = Detector::default();
        assert!(detector.problem().is_some_and(|problem| problem.contains("not known yet")));
        detector.set(State::Absent);
        detector.absent().await;
        assert_eq!(detector.problem(), None);
        detector.set(State::Runs("tools".to_owned()));
        detector.present().await;
        let problem = detector.problem().unwrap_or_default();
        assert!(problem.contains("namespace tools") && problem.contains("scale it to 0"), "{problem}");
    }
}
