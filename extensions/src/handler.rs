//! The one trait that the handler of a hook implements, and its form without the types of the hook.

use std::{pin::Pin, sync::Arc};

use async_trait::async_trait;
use serde::Serialize;

use crate::{
    call::{Call, Limits, Services, shortened},
    claims::{self, Claims},
    names::{annotations, events},
    ports::{Notice, Outcome},
    protocol::{API_VERSION, Cluster, Hook, Request, Response, Status},
    settings::Settings,
};

/// The handler of a hook: idempotent, and as deterministic as the objects that it reads (R6).
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// The hook.
    const HOOK: Hook;
    /// Its request.
    type Request: Request;
    /// Its response.
    type Response: Response;

    /// Answers a request. A panic is answered as a failure.
    async fn handle(&self, request: Self::Request, call: &Call) -> Self::Response;
}

/// An answer, and how metrics count it.
pub(crate) struct Answer {
    pub(crate) body: Vec<u8>,
    pub(crate) outcome: Outcome,
}

/// An answer that is being made.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A [`Handler`] of any hook.
pub(crate) trait AnyHandler: Send + Sync {
    fn hook(&self) -> Hook;

    /// Answers the body of a request, whose kind was checked. The body is read before the future is returned.
    fn answer(self: Arc<Self>, body: &[u8], services: Arc<Services>, limits: Limits) -> Answering;

    /// The answer if there is none in time.
    fn not_ready(&self, message: &str) -> Answer;

    /// The answer if the call cannot succeed.
    fn failure(&self, message: &str, outcome: Outcome) -> Answer;
}

impl<H: Handler> AnyHandler for H {
    fn hook(&self) -> Hook {
        H::HOOK
    }

    fn answer(self: Arc<Self>, body: &[u8], services: Arc<Services>, limits: Limits) -> Answering {
        let request = serde_json::from_slice::<H::Request>(body);
        let request = request.map_err(|error| format!("the request is invalid: {error}"));
        Box::pin(async move {
            match request {
                Ok(request) => answer(&*self, request, &services, limits).await,
                Err(message) => self.failure(&message, Outcome::Failure),
            }
        })
    }

    fn not_ready(&self, message: &str) -> Answer {
        encode(H::HOOK, &H::Response::not_ready(shortened(message.to_owned())), Outcome::NotReady)
    }

    fn failure(&self, message: &str, outcome: Outcome) -> Answer {
        encode(H::HOOK, &H::Response::failure(shortened(message.to_owned())), outcome)
    }
}

async fn answer<H: Handler>(
    handler: &H,
    mut request: H::Request,
    services: &Arc<Services>,
    limits: Limits,
) -> Answer {
    let is_confirmed = match claims::check(&mut request, H::HOOK, services, limits).await {
        Claims::Refuted(why) => return AnyHandler::failure(handler, why, Outcome::Failure),
        claims => claims == Claims::Confirmed,
    };
    if let Some(cluster) = request.cluster().filter(|cluster| is_skipped(cluster, H::HOOK)) {
        if let Some(key) = cluster.key().filter(|_| is_confirmed) {
            let message = format!("{} is skipped by the annotation {}", H::HOOK, annotations::SKIP_HOOK);
            services.skipped(&key, H::HOOK, limits).await;
            let notice = Notice::new(key, H::HOOK, events::HOOK_SKIPPED, message);
            services.journal.publish(notice.warning(true));
        }
        return encode(H::HOOK, &H::Response::success(), Outcome::Skipped);
    }
    let settings = match Settings::parse(request.settings()) {
        Ok(settings) => settings,
        Err(error) => return AnyHandler::failure(handler, &error.to_string(), Outcome::InvalidSettings),
    };
    let call = Call { hook: H::HOOK, settings, limits, is_confirmed, services: Arc::clone(services) };
    let response = handler.handle(request, &call).await;
    let outcome = match response.status() {
        Status::Failure => Outcome::Failure,
        Status::Success if response.retry_after_seconds() > 0 => Outcome::Blocked,
        Status::Success => Outcome::Success,
    };
    encode(H::HOOK, &response, outcome)
}

/// Users skip a hook by an annotation, also if the settings are invalid. A plan has no step to skip.
fn is_skipped(cluster: &Cluster, hook: Hook) -> bool {
    let skipped = cluster.annotation(annotations::SKIP_HOOK).unwrap_or_default();
    hook != Hook::GenerateUpgradePlan && skipped.split(',').any(|name| name.parse() == Ok(hook))
}

fn encode(hook: Hook, response: &impl Response, outcome: Outcome) -> Answer {
    Answer { body: body_of(&format!("{hook}Response"), response), outcome }
}

/// The body of a response, with its kind (R2).
pub(crate) fn body_of(kind: &str, response: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&Body { api_version: API_VERSION, kind, response }).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a, R> {
    api_version: &'static str,
    kind: &'a str,
    #[serde(flatten)]
    response: &'a R,
}
