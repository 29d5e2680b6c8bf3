//! The one trait that the handler of a hook implements, and its form without the types of the hook.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::{
    call::{Call, Limits, Services},
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

/// A [`Handler`] of any hook.
#[async_trait]
pub(crate) trait AnyHandler: Send + Sync {
    fn hook(&self) -> Hook;

    /// Answers the body of a request, whose kind was checked.
    async fn answer(&self, body: Value, services: &Arc<Services>, limits: Limits) -> Answer;

    /// The answer if there is none in time.
    fn not_ready(&self, message: &str) -> Answer;

    /// The answer if the call cannot succeed.
    fn failure(&self, message: &str, outcome: Outcome) -> Answer;
}

#[async_trait]
impl<H: Handler> AnyHandler for H {
    fn hook(&self) -> Hook {
        H::HOOK
    }

    async fn answer(&self, body: Value, services: &Arc<Services>, limits: Limits) -> Answer {
        let mut request = match serde_json::from_value::<H::Request>(body) {
            Ok(request) => request,
            Err(error) => {
                return self.failure(&format!("the request is invalid: {error}"), Outcome::Failure);
            }
        };
        let is_confirmed = match claims::check(&mut request, H::HOOK, services, limits).await {
            Claims::Refuted(why) => return self.failure(why, Outcome::Failure),
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
            Err(error) => return self.failure(&error.to_string(), Outcome::InvalidSettings),
        };
        let call = Call { hook: H::HOOK, settings, limits, is_confirmed, services: Arc::clone(services) };
        let response = self.handle(request, &call).await;
        let outcome = match response.status() {
            Status::Failure => Outcome::Failure,
            Status::Success if response.retry_after_seconds() > 0 => Outcome::Blocked,
            Status::Success => Outcome::Success,
        };
        encode(H::HOOK, &response, outcome)
    }

    fn not_ready(&self, message: &str) -> Answer {
        encode(H::HOOK, &H::Response::not_ready(message.to_owned()), Outcome::NotReady)
    }

    fn failure(&self, message: &str, outcome: Outcome) -> Answer {
        encode(H::HOOK, &H::Response::failure(message.to_owned()), outcome)
    }
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
pub(crate) fn body_of(kind: &str, response: &impl serde::Serialize) -> Vec<u8> {
    let mut body = serde_json::to_value(response).unwrap_or_default();
    if let Some(object) = body.as_object_mut() {
        object.insert("apiVersion".to_owned(), API_VERSION.into());
        object.insert("kind".to_owned(), kind.into());
    }
    body.to_string().into_bytes()
}
