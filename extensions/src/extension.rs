//! The extension: finds the handler of a call, bounds its time, and answers whatever happens in it.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use tracing::{error, warn};

use crate::{
    blocks::Cause,
    call::{Limits, Services},
    handler::{Answer, AnyHandler, body_of},
    hooks,
    ports::Outcome,
    protocol::{API_VERSION, DiscoveryResponse, ExtensionHandler, Hook},
};

/// Of the time that core waits, this much is for the way of the answer.
const MARGIN: Duration = Duration::from_millis(500);
/// The least time of a handler, if core waits very briefly.
const LEAST: Duration = Duration::from_millis(100);
/// How long core waits unless the request says so.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(10);
/// The longest time that core waits for a handler.
pub const LONGEST_BUDGET: Duration = Duration::from_secs(30);

/// What became of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// The call was processed: the body of the response, whether the call succeeded or failed (R1).
    Processed(Vec<u8>),
    /// There is no such hook or handler.
    NotFound,
    /// The body is not a request of the hook: why.
    Malformed(String),
}

/// The handlers of this extension.
pub struct Extension {
    handlers: Vec<Arc<dyn AnyHandler>>,
    advertised: Vec<Hook>,
    services: Arc<Services>,
}

impl Extension {
    /// Serves every implemented hook, and advertises those of `advertised` (R12).
    #[must_use]
    pub fn new(services: Services, advertised: &[Hook]) -> Self {
        let handlers = hooks::all();
        let implemented = handlers.iter().map(|handler| handler.hook());
        let advertised = implemented.filter(|hook| advertised.contains(hook)).collect();
        Self { handlers, advertised, services: Arc::new(services) }
    }

    /// The hooks that have a handler.
    #[must_use]
    pub fn implemented() -> Vec<Hook> {
        hooks::all().iter().map(|handler| handler.hook()).collect()
    }

    /// What all calls share.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Answers discovery: what is implemented and advertised (R1, R3).
    #[must_use]
    pub fn discover(&self, body: &[u8]) -> Reply {
        if let Err(why) = check(body, "DiscoveryRequest") {
            return Reply::Malformed(why);
        }
        let handlers = self.advertised.iter().map(|hook| ExtensionHandler::of(*hook)).collect();
        let response = DiscoveryResponse { handlers, ..DiscoveryResponse::default() };
        Reply::Processed(body_of("DiscoveryResponse", &response))
    }

    /// The handler of a hook by the segments of a URL: the hook in lower case, and the name of the handler. A handler that
    /// is not advertised answers as well, since core may have discovered it before a restart.
    #[must_use]
    pub fn find(&self, hook: &str, handler: &str) -> Option<Hook> {
        let hooks = self.handlers.iter().map(|handler| handler.hook());
        let mut named = hooks.filter(|known| known.path() == hook && known.handler() == handler);
        named.next()
    }

    /// Calls the handler of a hook, for which core waits as long as `budget` (R7).
    pub async fn call(&self, hook: Hook, body: &[u8], budget: Duration) -> Reply {
        self.process(hook, body, budget, false).await
    }

    /// The same while too many calls are processed: a hook that waits for objects blocks, until its deadline, since they are
    /// not read; what users decided applies.
    pub async fn call_busy(&self, hook: Hook, body: &[u8], budget: Duration) -> Reply {
        if Cause::of(hook).is_empty() {
            return self.busy(hook, Duration::ZERO);
        }
        self.process(hook, body, budget, true).await
    }

    async fn process(&self, hook: Hook, body: &[u8], budget: Duration, busy: bool) -> Reply {
        let Some(handler) = self.handlers.iter().find(|handler| handler.hook() == hook) else {
            return Reply::NotFound;
        };
        if let Err(why) = check(body, &format!("{hook}Request")) {
            return Reply::Malformed(why);
        }
        let started = Instant::now();
        let until = started + budget.min(LONGEST_BUDGET).saturating_sub(MARGIN).max(LEAST);
        let answer = self.bounded(handler, body, Limits { until, busy }).await;
        self.services.observer.called(hook, answer.outcome, started.elapsed());
        Reply::Processed(answer.body)
    }

    /// What is answered if no capacity becomes free to read a call.
    #[must_use]
    pub fn busy(&self, hook: Hook, waited: Duration) -> Reply {
        let Some(handler) = self.handlers.iter().find(|handler| handler.hook() == hook) else {
            return Reply::NotFound;
        };
        let answer = handler.not_ready("the extension is processing too many requests");
        self.services.observer.called(hook, answer.outcome, waited);
        Reply::Processed(answer.body)
    }

    /// In a task of its own, so that neither a panic nor a late answer reaches the connection.
    async fn bounded(&self, handler: &Arc<dyn AnyHandler>, body: &[u8], limits: Limits) -> Answer {
        let answer = Arc::clone(handler).answer(body, Arc::clone(&self.services), limits);
        let mut task = tokio::spawn(answer);
        match timeout_at(limits.until, &mut task).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(failed)) => {
                error!(hook = handler.hook().name(), panicked = failed.is_panic(), "a handler failed");
                handler.failure("internal error; see the log of the extension", Outcome::Panicked)
            }
            Err(_) => {
                task.abort();
                warn!(hook = handler.hook().name(), "a handler was not ready in time");
                handler.not_ready("the answer was not ready in time")
            }
        }
    }
}

/// What is read of a body first.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    api_version: String,
    kind: String,
}

/// Checks version and kind of a body.
fn check(body: &[u8], kind: &str) -> Result<(), String> {
    match serde_json::from_slice::<Head>(body) {
        Ok(head) if head.api_version == API_VERSION && head.kind == kind => Ok(()),
        Err(error) if !error.is_data() => Err("the body is not JSON".to_owned()),
        _ => Err(format!("the body is not a {kind} of {API_VERSION}")),
    }
}

#[cfg(test)]
mod tests;
