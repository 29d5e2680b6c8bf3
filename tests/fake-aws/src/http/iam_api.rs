//! The control API of identities, and the endpoint of the agent of EKS Pod Identity.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use chrono::Utc;
use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use serde::Deserialize;
use serde_json::{Value, json};

use super::shared::Shared;
use crate::{Role, SessionDump, Tree};

type Front = State<Arc<Shared>>;

/// Below `/_sim/iam/`.
pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/roles", post(put_role).delete(remove_role))
        .route("/any-role", post(any_role))
        .route("/access-keys", post(put_access_key).delete(remove_access_key))
        .route("/associations", post(associate))
        .route("/sessions", get(sessions))
        .route("/sessions/revoke", post(revoke))
        .route("/sessions/expire", post(expire))
}

async fn put_role(State(shared): Front, Json(role): Json<Role>) -> Json<Value> {
    shared.simulator.put_role(role);
    Json(json!({}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfRole {
    role: String,
}

async fn remove_role(State(shared): Front, Json(body): Json<OfRole>) -> Json<Value> {
    shared.simulator.remove_role(&body.role);
    Json(json!({}))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AnyRole {
    can_be_assumed: bool,
}

async fn any_role(State(shared): Front, Json(body): Json<AnyRole>) -> Json<Value> {
    shared.simulator.set_any_role(body.can_be_assumed);
    Json(json!({}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessKey {
    key: String,
    #[serde(default)]
    user: String,
}

async fn put_access_key(State(shared): Front, Json(body): Json<AccessKey>) -> Json<Value> {
    shared.simulator.put_access_key(&body.key, &body.user);
    Json(json!({}))
}

async fn remove_access_key(State(shared): Front, Json(body): Json<AccessKey>) -> Json<Value> {
    shared.simulator.remove_access_key(&body.key);
    Json(json!({}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Association {
    subject: String,
    role: String,
}

async fn associate(State(shared): Front, Json(body): Json<Association>) -> Json<Value> {
    shared.simulator.associate(&body.subject, &body.role);
    Json(json!({}))
}

async fn sessions(State(shared): Front) -> Json<Vec<SessionDump>> {
    Json(shared.simulator.sessions())
}

async fn revoke(State(shared): Front, Json(body): Json<OfRole>) -> Json<Value> {
    Json(json!({"sessions": shared.simulator.revoke_sessions(&body.role)}))
}

async fn expire(State(shared): Front, Json(body): Json<OfRole>) -> Json<Value> {
    shared.pacer.catch_up(&shared.simulator);
    Json(json!({"sessions": shared.simulator.expire_sessions(&body.role)}))
}

/// `GET /v1/credentials`, to which `AWS_CONTAINER_CREDENTIALS_FULL_URI` points.
pub(super) async fn pod_credentials(State(shared): Front, headers: HeaderMap) -> Response {
    shared.pacer.catch_up(&shared.simulator);
    let token = headers.get(AUTHORIZATION).and_then(|token| token.to_str().ok()).unwrap_or_default();
    let now = Utc::now();
    match shared.simulator.pod_credentials(token, now) {
        Ok(mut reply) => {
            shared.tell_in_wall_time(&mut reply, now);
            let text = |path: &str| reply.at(path).and_then(Tree::text).unwrap_or_default().to_owned();
            let account = text("AssumedRoleUser.Arn").split(':').nth(4).unwrap_or_default().to_owned();
            Json(json!({
                "AccessKeyId": text("Credentials.AccessKeyId"),
                "SecretAccessKey": text("Credentials.SecretAccessKey"),
                "Token": text("Credentials.SessionToken"),
                "AccountId": account,
                "Expiration": text("Credentials.Expiration"),
            }))
            .into_response()
        }
        Err(error) => {
            let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::FORBIDDEN);
            (status, Json(json!({"code": error.code, "message": error.message}))).into_response()
        }
    }
}
