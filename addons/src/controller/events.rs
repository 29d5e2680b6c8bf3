//! Events of a `HelmReleaseProxy`: what happened to its release. Nothing depends on them.

use capasg_api::errors;
use kube::{
    Resource as _, ResourceExt as _,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use super::Context;
use crate::{HelmReleaseProxy, decide::release::Step, names::events};

/// The longest note that the API accepts.
const LONGEST_NOTE: usize = 1024;
/// The name of the controller in events.
const CONTROLLER: &str = "capasg-addons";

/// The reason of an event, and the word for what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Words {
    done: &'static str,
    failed: &'static str,
    verb: &'static str,
}

/// None for steps that are no operation, and for the correction of an interrupted one, which is followed by another.
fn words(step: &Step) -> Option<Words> {
    let words = |done, failed, verb| Some(Words { done, failed, verb });
    match step {
        Step::Install { .. } => words(events::INSTALLED, events::INSTALL_FAILED, "installed"),
        Step::Upgrade(_) => words(events::UPGRADED, events::UPGRADE_FAILED, "upgraded"),
        Step::Uninstall(_) => words(events::UNINSTALLED, events::UNINSTALL_FAILED, "uninstalled"),
        _ => None,
    }
}

/// Reason and note. A failure has the message of the condition, and so has the end of an object that leaves something.
fn event(object: &HelmReleaseProxy, step: &Step, failure: Option<&str>) -> Option<Event> {
    let spec = &object.spec;
    let of = format!(
        "release {} of chart {} in namespace {} of Cluster {}",
        spec.release_name, spec.chart_name, spec.release_namespace, spec.cluster_ref.name
    );
    let (reason, mut note) = match (failure, step) {
        (Some(message), Step::Release) => (events::LEFT, format!("{of}: {message}")),
        (Some(message), _) => {
            let words = words(step)?;
            (words.failed, format!("{of} is not {}: {message}", words.verb))
        }
        (None, _) => {
            let words = words(step)?;
            let change = if let Step::Upgrade(change) = step { format!(": {change}") } else { String::new() };
            (words.done, format!("{} {of}{change}", words.verb))
        }
    };
    note.truncate(note.floor_char_boundary(LONGEST_NOTE));
    Some(Event {
        type_: if failure.is_some() { EventType::Warning } else { EventType::Normal },
        reason: reason.to_owned(),
        note: Some(note),
        action: "Reconcile".to_owned(),
        secondary: None,
    })
}

/// Publishes the outcome of a step. An error of the API server is only logged.
pub(super) async fn publish(
    context: &Context,
    object: &HelmReleaseProxy,
    step: &Step,
    failure: Option<&str>,
) {
    if let Some(event) = event(object, step, failure) {
        send(context, object, &event).await;
    }
}

/// Publishes that resources of the release were changed. `message` is that of the condition.
pub(super) async fn publish_drift(context: &Context, object: &HelmReleaseProxy, message: &str) {
    let note = message[..message.floor_char_boundary(LONGEST_NOTE)].to_owned();
    let event = Event {
        type_: EventType::Warning,
        reason: events::DRIFTED.to_owned(),
        note: Some(note),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    send(context, object, &event).await;
}

async fn send(context: &Context, object: &HelmReleaseProxy, event: &Event) {
    let reporter = Reporter { controller: CONTROLLER.to_owned(), instance: Some(context.identity.clone()) };
    // A recorder of its own for each event: a series would keep the first note.
    let recorder = Recorder::new(context.client.clone(), reporter);
    if let Err(error) = recorder.publish(event, &object.object_ref(&())).await {
        let error = errors::of_request(&error);
        tracing::debug!(error, object = object.name_any(), "cannot publish an event");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        HelmReleaseProxySpec,
        decide::release::{Change, Removal},
        kinds::ObjectReference,
    };

    fn proxy() -> HelmReleaseProxy {
        let cluster_ref = ObjectReference { name: "prod".to_owned(), ..ObjectReference::default() };
        let spec = HelmReleaseProxySpec {
            cluster_ref,
            chart_name: "cilium".to_owned(),
            release_name: "cni".to_owned(),
            release_namespace: "kube-system".to_owned(),
            values: "password: s3cret".to_owned(),
            ..HelmReleaseProxySpec::default()
        };
        HelmReleaseProxy::new("cni-prod", spec)
    }

    #[test]
    fn events_say_what_happened_to_which_release() {
        let of = "release cni of chart cilium in namespace kube-system of Cluster prod";
        let change = Change::Version { from: "1.0.0".to_owned(), to: "1.1.0".to_owned() };
        for (step, failure, reason, note) in [
            (Step::Install { replaces: false }, None, "HelmReleaseInstalled", format!("installed {of}")),
            (
                Step::Upgrade(change),
                None,
                "HelmReleaseUpgraded",
                format!("upgraded {of}: version 1.0.0 is now 1.1.0"),
            ),
            (
                Step::Uninstall(Removal::Deleted),
                Some("it timed out"),
                "HelmUninstallFailed",
                format!("{of} is not uninstalled: it timed out"),
            ),
            (Step::Release, Some("Services remain"), "HelmReleaseLeft", format!("{of}: Services remain")),
        ] {
            let event = event(&proxy(), &step, failure).unwrap();
            assert_eq!((event.reason.as_str(), event.note), (reason, Some(note)));
        }
        assert!(event(&proxy(), &Step::Nothing, None).is_none());
        assert!(event(&proxy(), &Step::Release, None).is_none());
        assert!(event(&proxy(), &Step::MarkFailed { revision: 1 }, None).is_none());
    }

    #[test]
    fn a_long_message_is_cut() {
        let event = event(&proxy(), &Step::Install { replaces: false }, Some(&"ü".repeat(2000))).unwrap();
        let note = event.note.unwrap_or_default();
        assert!(note.len() <= LONGEST_NOTE && note.len() > LONGEST_NOTE - 2, "{}", note.len());
    }
}
