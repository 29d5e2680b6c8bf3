//! The webhook server: receives an `AdmissionReview`, looks up what the rule needs, calls `capasg_api::admission`.
//!
//! It helps users and protects nothing: every rule has its counterpart in the controllers, so each replica serves it,
//! standby or not, and the API server continues without it.

mod bounded;
mod facts;
mod review;

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use capasg_api::{
    ASGMachine, ASGMachinePool,
    admission::{
        FieldError, is_access_validated, machine_deletion_warning, new_identity, pool_deletion_warning,
        validate_access, validate_group_name, validate_times,
    },
    capi::{machine_owner, owner_machine_pool},
    guard::Guards,
};
use capasg_cloud::Supervisor;
use kube::ResourceExt as _;
use tokio::{net::TcpListener, time::timeout};
use tracing::warn;

pub use self::facts::KubeFacts;
use self::{
    facts::Facts,
    review::{Answer, Review},
};
use crate::{
    errors,
    intake::{Budget, Intake, NotAccepted, Unread},
    server::{Bounds, serve_http},
    tls::{CertificateFolder, TlsListener, TlsParameters},
};

/// Where pools are validated; in `config/webhook` too.
const POOLS: &str = "/validate-infrastructure-cluster-x-k8s-io-v1alpha1-asgmachinepool";
/// Where ASGMachines are validated.
const MACHINES: &str = "/validate-infrastructure-cluster-x-k8s-io-v1alpha1-asgmachine";
/// A request holds an object twice, each of at most the 1.5 MiB that etcd accepts. What is parsed is in the memory of the
/// leader, too: the largest object that the API server accepts costs less than half of it.
const BUDGET: Budget = Budget {
    largest: 4 * 1024 * 1024,
    bodies: 16 * 1024 * 1024,
    parsed: 48 * 1024 * 1024,
    // Answers are small.
    replies: 0,
};
/// Open connections: the API server opens one for each request at the same time, and keeps some.
const CONNECTIONS: usize = 128;
/// How long a body may take, and how long a request waits for its turn.
const BRIEF: Duration = Duration::from_secs(1);
/// The API server waits 5 s, see `config/webhook`; an answer in time is worth more than the look-ups.
const LOOK_UP: Duration = Duration::from_secs(2);
/// Serves the webhooks with the certificate of a folder.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    certificate: Arc<CertificateFolder>,
    tls: &TlsParameters,
    facts: KubeFacts,
    supervisor: &Supervisor,
) -> Result<()> {
    let listener = TlsListener::new(listener, certificate.server(tls), supervisor)?;
    let bounds = Bounds::default().with_connections(CONNECTIONS);
    tokio::select! {
        () = serve_http(listener, router(facts), bounds) => Ok(()),
        () = certificate.follow() => Ok(()),
    }
}

/// What requests share.
struct Served<F> {
    facts: F,
    intake: Intake,
}

fn router<F: Facts>(facts: F) -> Router {
    Router::new()
        .route(POOLS, post(pools::<F>))
        .route(MACHINES, post(machines::<F>))
        .with_state(Arc::new(Served { facts, intake: Intake::new(BUDGET) }))
}

async fn pools<F: Facts>(State(served): State<Arc<Served<F>>>, body: Body) -> Response {
    reply(&served.intake, body, async |review| answer_for_pool(&served.facts, review).await).await
}

async fn machines<F: Facts>(State(served): State<Arc<Served<F>>>, body: Body) -> Response {
    reply(&served.intake, body, async |review| answer_for_machine(&served.facts, review).await).await
}

/// Answers a request. A failed look-up is no reason to reject it.
async fn reply(
    intake: &Intake,
    body: Body,
    answer: impl AsyncFnOnce(&Review<'_>) -> Result<Answer>,
) -> Response {
    let received = match intake.read(body, BUDGET.largest, BRIEF, BRIEF).await {
        Ok(received) => received,
        Err(Unread::TooLarge) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(Unread::Late) => return StatusCode::REQUEST_TIMEOUT.into_response(),
        Err(Unread::Busy) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
    };
    let cost = match intake.cost(&received.bytes) {
        Ok(cost) => cost,
        Err(NotAccepted::TooMany) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(NotAccepted::NotJson) => return not_a_review(),
    };
    let Some(_room) = intake.room(cost, BRIEF).await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let Some(review) = Review::of(&received.bytes) else { return not_a_review() };
    let answer = match timeout(LOOK_UP, answer(&review)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => unknown(&review, &errors::line(&error)),
        Err(_) => unknown(&review, "the API server did not answer in time"),
    };
    Json(answer.to(review.uid)).into_response()
}

fn not_a_review() -> Response {
    (StatusCode::BAD_REQUEST, "not an AdmissionReview of admission.k8s.io/v1").into_response()
}

fn unknown(review: &Review<'_>, error: &str) -> Answer {
    warn!(operation = review.operation, error, "failed to validate an object; the request is allowed");
    Answer {
        warnings: vec![
            "CAPASG could not validate this object and allowed the request; check the conditions of the \
             object"
                .to_owned(),
        ],
        ..Answer::default()
    }
}

async fn answer_for_pool(facts: &impl Facts, review: &Review<'_>) -> Result<Answer> {
    let errors = match review.operation.as_str() {
        "CREATE" => {
            let pool: ASGMachinePool = review.object()?;
            validate_pool(facts, &pool, None).await?
        }
        "UPDATE" => {
            let (pool, before): (ASGMachinePool, ASGMachinePool) = (review.object()?, review.old_object()?);
            validate_pool(facts, &pool, Some(&before)).await?
        }
        "DELETE" => {
            let pool: ASGMachinePool = review.old_object()?;
            let owner = match (pool.namespace(), owner_machine_pool(&pool)) {
                (Some(namespace), Some(owner)) => facts.machine_pool(&namespace, &owner.name).await?,
                _ => None,
            };
            return Ok(warning(pool_deletion_warning(&pool, owner.as_ref())));
        }
        _ => Vec::new(),
    };
    Ok(Answer { errors, ..Answer::default() })
}

async fn validate_pool(
    facts: &impl Facts,
    pool: &ASGMachinePool,
    before: Option<&ASGMachinePool>,
) -> Result<Vec<FieldError>> {
    let errors = validate_times(&pool.spec, before.map(|before| &before.spec));
    // An object that is rejected anyway needs no look-up, which may fail.
    if !errors.is_empty() {
        return Ok(errors);
    }
    let group = async {
        // The name cannot change, and an old pair must stay editable.
        if before.is_some() || pool.spec.group_name().is_none() {
            return Ok(Vec::new());
        }
        Ok(validate_group_name(pool, &facts.pools().await?))
    };
    // One that fails does not prevent the other.
    let (group, access) = tokio::join!(group, what_operators_deny(facts, pool, before));
    match (group, access) {
        (Ok(group), Ok(access)) => Ok([group, access].concat()),
        (Ok(found), Err(error)) | (Err(error), Ok(found)) if found.is_empty() => Err(error),
        (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
        (Err(error), Err(_)) => Err(error),
    }
}

async fn what_operators_deny(
    facts: &impl Facts,
    pool: &ASGMachinePool,
    before: Option<&ASGMachinePool>,
) -> Result<Vec<FieldError>> {
    let Some(namespace) = pool.namespace().filter(|_| is_access_validated(pool, before)) else {
        return Ok(Vec::new());
    };
    let identity = async {
        match new_identity(pool, before) {
            Some(name) => facts.identity(name).await,
            None => Ok(None),
        }
    };
    let (guards, identity) = tokio::try_join!(facts.guards(), identity)?;
    let allowed = identity.iter().filter_map(|identity| identity.spec.allowed_namespaces.as_ref());
    let mut selections = guards.iter().map(|guard| &guard.spec.namespaces).chain(allowed);
    let labels = if selections.any(|selection| selection.selector.is_some()) {
        facts.namespace_labels(&namespace).await?
    } else {
        None
    };
    let guards = Guards::of_namespace(guards.iter().cloned(), &namespace, labels.as_deref());
    Ok(validate_access(pool, before, &guards, identity.as_deref(), labels.as_deref()))
}

async fn answer_for_machine(facts: &impl Facts, review: &Review<'_>) -> Result<Answer> {
    if review.operation != "DELETE" {
        return Ok(Answer::default());
    }
    let object: ASGMachine = review.old_object()?;
    let machine = match (object.namespace(), machine_owner(&object)) {
        (Some(namespace), Some(owner)) => facts.machine(&namespace, &owner.name).await?,
        _ => None,
    };
    Ok(warning(machine_deletion_warning(&object, machine.as_ref())))
}

fn warning(text: Option<String>) -> Answer {
    Answer { warnings: text.into_iter().collect(), ..Answer::default() }
}

#[cfg(test)]
mod tests;
