//! The webhook server: receives an `AdmissionReview`, looks up what the rule needs, calls `capasg_api::admission`.
//!
//! It helps users and protects nothing: every rule has its counterpart in the controllers, so each replica serves it,
//! standby or not, and the API server continues without it.

mod facts;
mod review;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use capasg_api::{
    ASGMachine, ASGMachinePool,
    admission::{machine_deletion_warning, pool_deletion_warning, validate_group_name, validate_times},
    capi::{machine_owner, owner_machine_pool},
};
use capasg_cloud::Supervisor;
use kube::ResourceExt as _;
use serde::Deserialize as _;
use tokio::{net::TcpListener, time::timeout};
use tracing::warn;

pub use self::facts::KubeFacts;
use self::{
    facts::Facts,
    review::{Answer, Asked, Request},
};
use crate::tls::{CertificateFolder, TlsListener};

/// Where pools are validated; in `config/webhook` too.
const POOLS: &str = "/validate-infrastructure-cluster-x-k8s-io-v1alpha1-asgmachinepool";
/// Where ASGMachines are validated.
const MACHINES: &str = "/validate-infrastructure-cluster-x-k8s-io-v1alpha1-asgmachine";
/// A request holds an object twice, each of at most the 1.5 MiB that etcd accepts.
const LARGEST: usize = 4 * 1024 * 1024;
/// The API server waits 5 s, see `config/webhook`; an answer in time is worth more than the look-up.
const LOOK_UP: Duration = Duration::from_secs(3);

/// Serves the webhooks with the certificate of a folder.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    certificate: Arc<CertificateFolder>,
    facts: KubeFacts,
    supervisor: &Supervisor,
) -> Result<()> {
    let listener = TlsListener::new(listener, certificate.server(), supervisor)?;
    let serve = async { axum::serve(listener, router(Arc::new(facts))).await.context("the listener failed") };
    tokio::select! {
        ended = serve => ended,
        () = certificate.follow() => Ok(()),
    }
}

fn router<F: Facts>(facts: Arc<F>) -> Router {
    Router::new()
        .route(POOLS, post(pools::<F>))
        .route(MACHINES, post(machines::<F>))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(facts)
}

async fn pools<F: Facts>(State(facts): State<Arc<F>>, Json(asked): Json<Asked>) -> Response {
    reply(asked, async |request| answer_for_pool(&*facts, request).await).await
}

async fn machines<F: Facts>(State(facts): State<Arc<F>>, Json(asked): Json<Asked>) -> Response {
    reply(asked, async |request| answer_for_machine(&*facts, request).await).await
}

/// Answers a request. A failed look-up is no reason to reject it.
async fn reply(asked: Asked, answer: impl AsyncFnOnce(&Request) -> Result<Answer>) -> Response {
    let Some(request) = asked.question() else {
        return (StatusCode::BAD_REQUEST, "not an AdmissionReview of admission.k8s.io/v1").into_response();
    };
    let answer = match timeout(LOOK_UP, answer(&request)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => unknown(&request, &format!("{error:#}")),
        Err(_) => unknown(&request, "the API server did not answer in time"),
    };
    Json(answer.to(request.uid)).into_response()
}

fn unknown(request: &Request, error: &str) -> Answer {
    warn!(operation = request.operation, error, "failed to validate an object; the request is allowed");
    Answer {
        warnings: vec![
            "CAPASG could not validate this object and allowed the request; check the conditions of the \
             object"
                .to_owned(),
        ],
        ..Answer::default()
    }
}

async fn answer_for_pool(facts: &impl Facts, request: &Request) -> Result<Answer> {
    match request.operation.as_str() {
        "CREATE" => {
            let pool = ASGMachinePool::deserialize(&request.object).context("not a valid ASGMachinePool")?;
            let mut errors = validate_times(&pool.spec, None);
            // An object that is rejected anyway needs no look-up, which may fail.
            if errors.is_empty() && pool.spec.group_name().is_some() {
                errors = validate_group_name(&pool, &facts.pools().await?);
            }
            Ok(Answer { errors, ..Answer::default() })
        }
        "UPDATE" => {
            let pool = ASGMachinePool::deserialize(&request.object).context("not a valid ASGMachinePool")?;
            let before =
                ASGMachinePool::deserialize(&request.old_object).context("not a valid ASGMachinePool")?;
            let errors = validate_times(&pool.spec, Some(&before.spec));
            Ok(Answer { errors, ..Answer::default() })
        }
        "DELETE" => {
            let pool =
                ASGMachinePool::deserialize(&request.old_object).context("not a valid ASGMachinePool")?;
            let owner = match (pool.namespace(), owner_machine_pool(&pool)) {
                (Some(namespace), Some(owner)) => facts.machine_pool(&namespace, &owner.name).await?,
                _ => None,
            };
            Ok(warning(pool_deletion_warning(&pool, owner.as_ref())))
        }
        _ => Ok(Answer::default()),
    }
}

async fn answer_for_machine(facts: &impl Facts, request: &Request) -> Result<Answer> {
    if request.operation != "DELETE" {
        return Ok(Answer::default());
    }
    let object = ASGMachine::deserialize(&request.old_object).context("not a valid ASGMachine")?;
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
