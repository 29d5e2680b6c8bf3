//! A small API server: namespaces, `ConfigMaps`, Secrets and custom resources, as much of them as Helm and a client use. The tests on the real
//! parts have a real one; this one shows the steps of a release in seconds.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Request, State},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::protobuf;

/// Objects by their paths, such as `/api/v1/namespaces/a/secrets/b`.
type Objects = BTreeMap<String, Value>;

/// The state of the server.
#[derive(Clone, Default)]
pub struct Cluster(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    objects: Objects,
    version: u64,
    /// Writes to paths with this part are never answered.
    stalled: Option<&'static str>,
    /// Requests to paths with this part are rejected, or the writes alone.
    forbidden: Option<(&'static str, bool)>,
    /// What happens to an object before the next write to its status.
    before_status: Option<(String, Change)>,
}

type Change = Box<dyn FnOnce(&mut Value) + Send>;

impl Cluster {
    /// The routes.
    pub fn routes(&self) -> Router {
        Router::new().fallback(handle).with_state(self.clone())
    }

    /// An object.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    /// Stops answering writes to paths with this part, or answers them again.
    pub fn stall(&self, part: Option<&'static str>) {
        self.lock().stalled = part;
    }

    /// Rejects requests to paths with this part, as without a role for them, or accepts them again.
    pub fn forbid(&self, part: Option<&'static str>) {
        self.lock().forbidden = part.map(|part| (part, false));
    }

    /// Rejects writes to paths with this part, as a quota does, or accepts them again.
    pub fn forbid_writes(&self, part: Option<&'static str>) {
        self.lock().forbidden = part.map(|part| (part, true));
    }

    /// Creates or replaces an object.
    pub fn put(&self, path: &str, mut object: Value) {
        let mut inner = self.lock();
        inner.version += 1;
        object["metadata"]["resourceVersion"] = json!(inner.version.to_string());
        inner.objects.insert(path.to_owned(), object);
    }

    /// Deletes an object.
    pub fn remove(&self, path: &str) {
        self.lock().objects.remove(path);
    }

    /// The number of writes.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// The paths of all objects that begin with this one.
    pub fn paths(&self, of: &str) -> Vec<String> {
        self.lock().objects.keys().filter(|path| path.starts_with(of)).cloned().collect()
    }

    /// Changes an object.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut inner = self.lock();
        inner.version += 1;
        let version = inner.version.to_string();
        if let Some(object) = inner.objects.get_mut(path) {
            change(object);
            object["metadata"]["resourceVersion"] = json!(version);
        }
    }

    /// Changes an object before the next write to its status, as another actor does.
    pub fn change_before_status(&self, path: &str, change: impl FnOnce(&mut Value) + Send + 'static) {
        self.lock().before_status = Some((path.to_owned(), Box::new(change)));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn status(code: StatusCode, reason: &str) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(), "reason": reason,
        "message": format!("{reason}: the object"),
    });
    (code, Json(body)).into_response()
}

fn resources() -> Value {
    let one = |name: &str, kind: &str, namespaced: bool| {
        let verbs = ["create", "delete", "get", "list", "patch", "update"];
        json!({"name": name, "singularName": "", "kind": kind, "namespaced": namespaced, "verbs": verbs})
    };
    let all = [
        one("namespaces", "Namespace", false),
        one("configmaps", "ConfigMap", true),
        one("secrets", "Secret", true),
    ];
    json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": all})
}

async fn handle(State(cluster): State<Cluster>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().trim_end_matches('/').to_owned();
    match path.as_str() {
        "/version" => {
            return Json(json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})).into_response();
        }
        "/api" => return Json(json!({"kind": "APIVersions", "versions": ["v1"]})).into_response(),
        "/apis" => {
            return Json(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})).into_response();
        }
        "/api/v1" => return Json(resources()).into_response(),
        "/api/v1/services" | "/api/v1/persistentvolumes" => {
            let resource = path.trim_start_matches("/api/v1");
            let inner = cluster.lock();
            let all = inner.objects.iter().filter(|(path, _)| path.contains(&format!("{resource}/")));
            let items: Vec<&Value> = all.map(|(_, object)| object).collect();
            let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items});
            return Json(list).into_response();
        }
        _ => {}
    }
    let Ok(body) = axum::body::to_bytes(body, 8 << 20).await else {
        return status(StatusCode::BAD_REQUEST, "BadRequest");
    };
    let Some((_, below)) = path.split_once("/namespaces") else { return found(cluster.get(&path).as_ref()) };
    // A namespace, a resource, a name, and a part of the object.
    let depth = below.split('/').filter(|segment| !segment.is_empty()).count();
    let path = if depth == 4 { path.rsplit_once('/').map_or(path.as_str(), |(path, _)| path) } else { &path };
    let is_collection = matches!(depth, 0 | 2);
    let is_stalled = cluster.lock().stalled.is_some_and(|part| path.contains(part));
    if is_stalled && parts.method != Method::GET {
        std::future::pending::<()>().await;
    }
    let is_write = parts.method != Method::GET;
    let forbidden = cluster.lock().forbidden;
    if forbidden.is_some_and(|(part, writes_alone)| path.contains(part) && (is_write || !writes_alone)) {
        return status(StatusCode::FORBIDDEN, "Forbidden");
    }
    if depth == 4 && parts.method != Method::GET {
        let before = cluster.lock().before_status.take_if(|(of, _)| of == path);
        if let Some((path, change)) = before {
            cluster.change(&path, change);
        }
    }
    let query = parts.uri.query().unwrap_or_default();
    answer(&mut cluster.lock(), &parts.method, path, is_collection, query, &body)
}

fn answer(
    inner: &mut Inner,
    method: &Method,
    path: &str,
    is_collection: bool,
    query: &str,
    body: &Bytes,
) -> Response {
    let sent = || protobuf::secret(body).or_else(|| serde_json::from_slice(body).ok()).unwrap_or_default();
    let is_dry_run = query.contains("dryRun=All");
    if *method != Method::GET && !is_dry_run {
        inner.version += 1;
    }
    let version = inner.version.to_string();
    match *method {
        Method::GET if is_collection => list(inner, path, query),
        Method::GET => found(inner.objects.get(path)),
        Method::POST => {
            let mut object = sent();
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let path = format!("{path}/{name}");
            if inner.objects.contains_key(&path) {
                return status(StatusCode::CONFLICT, "AlreadyExists");
            }
            object["metadata"]["resourceVersion"] = json!(version);
            object["metadata"]["uid"] = json!(format!("uid-{version}"));
            object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
            inner.objects.insert(path, object.clone());
            (StatusCode::CREATED, Json(object)).into_response()
        }
        Method::PUT | Method::PATCH => {
            let Some(known) = inner.objects.get_mut(path) else {
                return status(StatusCode::NOT_FOUND, "NotFound");
            };
            let sent = sent();
            if is_dry_run {
                let mut applied = known.clone();
                merge(&mut applied, &sent);
                return Json(applied).into_response();
            }
            let expected = &sent["metadata"]["resourceVersion"];
            if expected.is_string() && *expected != known["metadata"]["resourceVersion"] {
                return status(StatusCode::CONFLICT, "Conflict");
            }
            if *method == Method::PUT {
                let created = known["metadata"]["creationTimestamp"].take();
                *known = sent;
                known["metadata"]["creationTimestamp"] = created;
            } else {
                merge(known, &sent);
            }
            known["metadata"]["resourceVersion"] = json!(version);
            let known = known.clone();
            if is_deleted(&known) {
                inner.objects.remove(path);
            }
            Json(known).into_response()
        }
        Method::DELETE => match inner.objects.remove(path) {
            Some(mut object)
                if object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty()) =>
            {
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                object["metadata"]["resourceVersion"] = json!(version);
                inner.objects.insert(path.to_owned(), object.clone());
                Json(object).into_response()
            }
            Some(object) => Json(object).into_response(),
            None => status(StatusCode::NOT_FOUND, "NotFound"),
        },
        _ => status(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
    }
}

/// Whether an object is being deleted and has no finalizer.
fn is_deleted(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata["deletionTimestamp"].is_string() && metadata["finalizers"].as_array().is_none_or(Vec::is_empty)
}

fn found(object: Option<&Value>) -> Response {
    object.map_or_else(|| status(StatusCode::NOT_FOUND, "NotFound"), |object| Json(object).into_response())
}

fn list(inner: &Inner, path: &str, query: &str) -> Response {
    let selector = query.split('&').find_map(|part| part.strip_prefix("labelSelector=")).unwrap_or_default();
    let selector = selector.replace("%3D", "=").replace("%2C", ",").replace("%2F", "/");
    let labels: Vec<(&str, &str)> = selector.split(',').filter_map(|one| one.split_once('=')).collect();
    let is_selected =
        |object: &&Value| labels.iter().all(|(key, value)| object["metadata"]["labels"][key] == *value);
    let items: Vec<Value> = inner
        .objects
        .iter()
        .filter(|(name, _)| name.strip_prefix(path).is_some_and(|rest| rest.matches('/').count() == 1))
        .map(|(_, object)| object)
        .filter(is_selected)
        .cloned()
        .collect();
    let kind = if path.ends_with("/secrets") { "SecretList" } else { "List" };
    let metadata = json!({"resourceVersion": inner.version.to_string()});
    Json(json!({"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": items})).into_response()
}

/// A JSON merge patch; a strategic one of the kinds here is the same.
fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else { return *target = patch.clone() };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(key);
            }
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}
