//! The control API: what [`Simulator`] offers in process, as JSON under `/_sim/`.
//!
//! Scoped requests take `?region=` and `?account=` (the default account if missing).

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use chrono::Duration;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{iam_api, shared::Shared};
use crate::{
    DEFAULT_ACCOUNT, Fault, LogFilter, Scope, Simulator,
    ec2::{Image, InstanceType, SecurityGroup, Snapshot, Subnet},
    timestamp,
};

const REGION: &str = "the parameter region is required";

type Front = State<Arc<Shared>>;

/// The scope of a request; without a region it is the whole world.
#[derive(Debug, Deserialize)]
struct Place {
    account: Option<String>,
    region: Option<String>,
}

impl Place {
    fn scope(&self) -> Option<Scope> {
        let account = self.account.as_deref().unwrap_or(DEFAULT_ACCOUNT);
        self.region.as_deref().map(|region| Scope::account(account, region))
    }
}

fn refused(words: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": words}))).into_response()
}

fn done() -> Response {
    Json(json!({})).into_response()
}

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/time", get(time))
        .route("/advance", post(advance))
        .route("/stop", post(stop))
        .route("/start", post(start))
        .route("/reset", post(reset))
        .route("/settings", get(settings).patch(set_settings))
        .route("/capacity", post(capacity))
        .route("/alarms", post(alarm))
        .route("/refreshes/{group}", post(disguise))
        .route("/faults", get(faults).post(add_fault).delete(clear_faults))
        .route("/resources/{kind}", post(resource))
        .route("/instances/{id}/{what}", post(mishap))
        .route("/queues/{name}", post(queue))
        .route("/queues/{name}/rules", post(rule))
        .route("/state", get(state))
        .route("/leftovers", get(leftovers))
        .route("/log", get(log).delete(clear_log))
        .route("/counts", get(counts))
        .nest("/iam", iam_api::router())
}

/// Every look at the world sees it as of now.
fn current(shared: &Shared) -> &Simulator {
    shared.pacer.catch_up(&shared.simulator);
    &shared.simulator
}

async fn time(State(shared): Front) -> Json<Value> {
    let simulator = current(&shared);
    Json(json!({"now": timestamp(simulator.now()), "nextEvent": simulator.next_event().map(timestamp)}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    millis: i64,
}

async fn advance(State(shared): Front, Json(body): Json<Advance>) -> Json<Value> {
    let simulator = current(&shared);
    simulator.advance(Duration::milliseconds(body.millis));
    Json(json!({"now": timestamp(simulator.now())}))
}

async fn stop(State(shared): Front) -> Response {
    current(&shared).stop_world();
    done()
}

async fn start(State(shared): Front) -> Response {
    current(&shared).start_world();
    done()
}

async fn reset(State(shared): Front, Query(place): Query<Place>) -> Response {
    current(&shared).reset(place.region.as_deref());
    done()
}

async fn settings(State(shared): Front, Query(place): Query<Place>) -> Response {
    Json(current(&shared).settings(place.scope().as_ref())).into_response()
}

async fn set_settings(
    State(shared): Front,
    Query(place): Query<Place>,
    Json(changes): Json<Value>,
) -> Response {
    let scope = place.scope();
    let simulator = current(&shared);
    match simulator.settings(scope.as_ref()).merged(&changes) {
        Ok(settings) => {
            simulator.set_settings(scope.as_ref(), &settings);
            Json(settings).into_response()
        }
        Err(error) => refused(&error.to_string()),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CapacityLimit {
    instance_type: String,
    zone: String,
    limit: Option<usize>,
}

async fn capacity(
    State(shared): Front,
    Query(place): Query<Place>,
    Json(body): Json<CapacityLimit>,
) -> Response {
    let Some(scope) = place.scope() else { return refused(REGION) };
    current(&shared).set_capacity(&scope, &body.instance_type, &body.zone, body.limit);
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alarm {
    name: String,
    state: String,
}

async fn alarm(State(shared): Front, Query(place): Query<Place>, Json(body): Json<Alarm>) -> Response {
    let Some(scope) = place.scope() else { return refused(REGION) };
    if !["ALARM", "OK"].contains(&body.state.as_str()) {
        return refused("the state of an alarm is ALARM or OK");
    }
    current(&shared).set_alarm(&scope, &body.name, body.state == "ALARM");
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Disguise {
    status: Option<String>,
}

/// Another status for the newest refresh of a group.
async fn disguise(
    State(shared): Front,
    Path(group): Path<String>,
    Query(place): Query<Place>,
    Json(body): Json<Disguise>,
) -> Response {
    let Some(scope) = place.scope() else { return refused(REGION) };
    let hit = current(&shared).disguise_refresh(&scope, &group, body.status.as_deref());
    Json(json!({"hit": hit})).into_response()
}

async fn faults(State(shared): Front) -> Json<Vec<Fault>> {
    Json(shared.simulator.faults())
}

async fn add_fault(State(shared): Front, Json(fault): Json<Fault>) -> Response {
    shared.simulator.add_fault(fault);
    done()
}

async fn clear_faults(State(shared): Front, Query(place): Query<Place>) -> Response {
    shared.simulator.clear_faults(place.region.as_deref());
    done()
}

/// A thing that exists besides groups, templates and instances.
async fn resource(
    State(shared): Front,
    Path(kind): Path<String>,
    Query(place): Query<Place>,
    Json(body): Json<Value>,
) -> Response {
    let Some(scope) = place.scope() else { return refused(REGION) };
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let simulator = current(&shared);
    let result =
        match kind.as_str() {
            "subnets" => serde_json::from_value::<Subnet>(body).map(|own| simulator.put_subnet(&scope, own)),
            "security-groups" => serde_json::from_value::<SecurityGroup>(body)
                .map(|own| simulator.put_security_group(&scope, own)),
            "images" => serde_json::from_value::<Image>(body).map(|own| simulator.put_image(&scope, own)),
            "snapshots" => serde_json::from_value::<Snapshot>(body)
                .map(|own| simulator.put_snapshot(&scope, &own.id, own.volume_size)),
            "instance-types" => serde_json::from_value::<InstanceType>(body)
                .map(|own| simulator.put_instance_type(&scope, own)),
            "instance-profiles" => {
                simulator.put_instance_profile(&scope, &text("name"));
                Ok(())
            }
            "key-pairs" => {
                simulator.put_key_pair(&scope, &text("name"));
                Ok(())
            }
            "parameters" => {
                simulator.put_parameter(&scope, &text("name"), &text("value"));
                Ok(())
            }
            _ => return refused("no such kind of resource"),
        };
    match result {
        Ok(()) => done(),
        Err(error) => refused(&error.to_string()),
    }
}

/// Makes a queue.
async fn queue(State(shared): Front, Path(name): Path<String>, Query(place): Query<Place>) -> Response {
    let Some(scope) = place.scope() else { return refused(REGION) };
    Json(json!({"url": current(&shared).put_queue(&scope, &name)})).into_response()
}

/// Sends the events that match a pattern to a queue.
async fn rule(
    State(shared): Front,
    Path(name): Path<String>,
    Query(place): Query<Place>,
    Json(pattern): Json<Value>,
) -> Response {
    let Some(scope) = place.scope() else { return refused(REGION) };
    current(&shared).put_rule(&scope, &name, pattern);
    done()
}

/// `kill`, `interrupt`, `recommend`, `retire`, `impair` or `repair` an instance, in whatever scope it is.
async fn mishap(State(shared): Front, Path((id, what)): Path<(String, String)>) -> Response {
    let simulator = current(&shared);
    let Some(scope) = simulator.scope_of(&id) else {
        return (StatusCode::NOT_FOUND, Json(json!({"error": "no such instance"}))).into_response();
    };
    let hit = match what.as_str() {
        "kill" => simulator.kill(&scope, &id),
        "interrupt" => simulator.interrupt(&scope, &id),
        "recommend" => simulator.recommend(&scope, &id),
        "retire" => simulator.retire(&scope, &id),
        "impair" => simulator.impair(&scope, &id, true),
        "repair" => simulator.impair(&scope, &id, false),
        _ => {
            return refused(
                "an instance can be killed, interrupted, recommended, retired, impaired and repaired",
            );
        }
    };
    Json(json!({"hit": hit})).into_response()
}

async fn state(State(shared): Front, Query(place): Query<Place>) -> Response {
    Json(current(&shared).dump(place.region.as_deref())).into_response()
}

async fn leftovers(State(shared): Front, Query(place): Query<Place>) -> Json<Vec<String>> {
    Json(current(&shared).leftovers(place.region.as_deref()))
}

async fn log(State(shared): Front, Query(filter): Query<LogFilter>) -> Response {
    Json(current(&shared).log(&filter)).into_response()
}

async fn clear_log(State(shared): Front) -> Response {
    shared.simulator.clear_log();
    done()
}

async fn counts(State(shared): Front, Query(filter): Query<LogFilter>) -> Response {
    Json(current(&shared).counts(&filter)).into_response()
}
