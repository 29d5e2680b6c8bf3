//! The charts of a repository as an OCI registry serves them: what Helm requests for a pull, with the same password.

use std::{fs, path::Path, sync::Arc};

use axum::{
    Router,
    extract::{Path as Segment, State},
    http::{
        HeaderMap, HeaderName, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE},
    },
    response::{IntoResponse as _, Response},
    routing::get,
};
use capasg_environment::basic_authorization;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::repository::LOGIN;

const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// The routes for the archives in a folder, as `<host>/charts/<chart>`.
pub fn routes(folder: &Path) -> Router {
    Router::new()
        .route(
            "/v2/",
            get(|headers: HeaderMap| async move { authorized(&headers, || json!({}).to_string()) }),
        )
        .route("/v2/charts/{chart}/tags/list", get(tags))
        .route("/v2/charts/{chart}/manifests/{reference}", get(manifest))
        .route("/v2/charts/{chart}/blobs/{digest}", get(blob))
        .with_state(Arc::from(folder))
}

fn authorized<R: axum::response::IntoResponse>(headers: &HeaderMap, answer: impl FnOnce() -> R) -> Response {
    if headers.get(AUTHORIZATION).is_some_and(|value| value == &basic_authorization(LOGIN)) {
        return answer().into_response();
    }
    let body = json!({"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]});
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Basic realm=\"test\"")], body.to_string()).into_response()
}

fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// The versions of a chart, with their archives.
fn versions(folder: &Path, chart: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let version =
        |name: &str| name.strip_prefix(chart)?.strip_prefix('-')?.strip_suffix(".tgz").map(str::to_owned);
    let archives = entries.filter_map(|entry| {
        let version = version(entry.file_name().to_str()?)?;
        Some((version, fs::read(entry.path()).ok()?))
    });
    archives.collect()
}

/// Manifest and configuration of one version.
fn artifact(chart: &str, version: &str, archive: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let config = json!({"name": chart, "version": version, "apiVersion": "v2"}).to_string().into_bytes();
    let descriptor =
        |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()});
    let manifest: Value = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": descriptor(CONFIG, &config), "layers": [descriptor(LAYER, archive)],
    });
    (manifest.to_string().into_bytes(), config)
}

async fn tags(
    State(folder): State<Arc<Path>>,
    Segment(chart): Segment<String>,
    headers: HeaderMap,
) -> Response {
    authorized(&headers, || {
        let tags: Vec<String> = versions(&folder, &chart).into_iter().map(|(version, _)| version).collect();
        json!({"name": format!("charts/{chart}"), "tags": tags}).to_string()
    })
}

async fn manifest(
    State(folder): State<Arc<Path>>,
    Segment((chart, reference)): Segment<(String, String)>,
    headers: HeaderMap,
) -> Response {
    authorized(&headers, || {
        let all = versions(&folder, &chart).into_iter();
        let mut all = all.map(|(version, archive)| (artifact(&chart, &version, &archive).0, version));
        let found = all.find(|(manifest, version)| *version == reference || digest(manifest) == reference);
        let Some((manifest, _)) = found else { return missing("MANIFEST_UNKNOWN") };
        ([(DIGEST, digest(&manifest)), (CONTENT_TYPE, MANIFEST.to_owned())], manifest).into_response()
    })
}

async fn blob(
    State(folder): State<Arc<Path>>,
    Segment((chart, wanted)): Segment<(String, String)>,
    headers: HeaderMap,
) -> Response {
    authorized(&headers, || {
        let all = versions(&folder, &chart).into_iter();
        let mut all = all.flat_map(|(version, archive)| [artifact(&chart, &version, &archive).1, archive]);
        match all.find(|bytes| digest(bytes) == wanted) {
            Some(bytes) => ([(DIGEST, wanted)], bytes).into_response(),
            None => missing("BLOB_UNKNOWN"),
        }
    })
}

fn missing(code: &str) -> Response {
    let body = json!({"errors": [{"code": code, "message": "not found"}]});
    (StatusCode::NOT_FOUND, body.to_string()).into_response()
}
