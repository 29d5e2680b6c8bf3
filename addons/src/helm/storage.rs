//! Releases as Helm stores them in the workload cluster: a Secret for each revision (X10). They are read from there, since
//! Helm prints no labels and a process for each read would be costly; and the state of a revision is set there, since Helm
//! has no command for an interrupted operation.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use serde_json::{Value, json};

use super::{
    names::ReleaseName,
    release::{Release, parse_manifest},
};

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// The key of the release in a Secret.
const KEY: &str = "release";
/// The label with the state.
const STATUS: &str = "status";
/// The label with the revision.
const VERSION: &str = "version";
/// The label with the time of the last change.
const MODIFIED_AT: &str = "modifiedAt";
/// The largest release that is read. A tenant can write the Secret, and compressed data can grow a thousandfold.
const LARGEST: u64 = 64 << 20;
/// The beginning of data that is compressed.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];

/// A Secret that is no release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The data is missing.
    #[error("the Secret of the release has no data; uninstall the release by helm uninstall --no-hooks")]
    NoData,
    /// The data cannot be decoded.
    #[error("the Secret of the release cannot be decoded; delete the Secret of this revision")]
    Encoding,
    /// The data is no release.
    #[error("the Secret of the release has unexpected content; delete the Secret of this revision")]
    Content,
}

/// A revision in the storage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The revision.
    pub release: Release,
    /// The labels of users: all except those of Helm.
    pub labels: BTreeMap<String, String>,
    /// When the Secret was created.
    pub created_at: DateTime<Utc>,
    /// The name of the Secret.
    pub secret: String,
}

/// The label selector of all revisions of a release.
#[must_use]
pub fn selector(name: &ReleaseName) -> String {
    format!("owner=helm,name={name}")
}

/// The name of the Secret of a revision.
#[must_use]
pub fn secret_name(name: &ReleaseName, revision: i64) -> String {
    format!("sh.helm.release.v1.{name}.v{revision}")
}

/// Whether the revision of a Secret is pending.
///
/// # Errors
/// If the Secret cannot be decoded.
pub fn is_pending(secret: &Secret) -> Result<bool, StorageError> {
    let release = Release::parse(&decoded(secret)?).map_err(|_| StorageError::Content)?;
    Ok(release.state.is_pending())
}

/// The manifest of the revision of a Secret: YAML, which may contain values.
///
/// # Errors
/// If the Secret cannot be decoded.
pub fn manifest(secret: &Secret) -> Result<String, StorageError> {
    parse_manifest(&decoded(secret)?).map_err(|_| StorageError::Content)
}

/// The newest revision among Secrets that [`selector`] selects.
///
/// # Errors
/// If its Secret cannot be decoded.
pub fn newest(secrets: &[Secret]) -> Result<Option<Stored>, StorageError> {
    let revision = |secret: &Secret| {
        let label = secret.metadata.labels.as_ref().and_then(|labels| labels.get(VERSION));
        label.and_then(|label| label.parse::<i64>().ok())
    };
    let releases = secrets.iter().filter(|secret| secret.type_.as_deref() == Some(SECRET_TYPE));
    let Some(secret) = releases.max_by_key(|secret| revision(secret)) else { return Ok(None) };
    let release = Release::parse(&decoded(secret)?).map_err(|_| StorageError::Content)?;
    let system = ["name", "owner", STATUS, VERSION, "createdAt", MODIFIED_AT];
    let mut labels = secret.metadata.labels.clone().unwrap_or_default();
    labels.retain(|key, _| !system.contains(&key.as_str()));
    let created_at = secret.metadata.creation_timestamp.as_ref().map(capasg_api::time::from_kubernetes);
    Ok(Some(Stored {
        release,
        labels,
        created_at: created_at.unwrap_or_default(),
        secret: secret.metadata.name.clone().unwrap_or_default(),
    }))
}

/// The Secret with the state failed, from which an upgrade of Helm continues. Its resource version stays, so that a Secret
/// that has changed in between is not overwritten.
///
/// # Errors
/// If the Secret cannot be decoded.
pub fn marked_failed(secret: &Secret, now: DateTime<Utc>) -> Result<Secret, StorageError> {
    let mut release: Value = serde_json::from_slice(&decoded(secret)?).map_err(|_| StorageError::Content)?;
    let info = release.get_mut("info").and_then(Value::as_object_mut).ok_or(StorageError::Content)?;
    info.insert("status".to_owned(), json!("failed"));
    info.insert("description".to_owned(), json!("The operation was interrupted."));
    let mut failed = secret.clone();
    let labels = failed.metadata.labels.get_or_insert_default();
    labels.insert(STATUS.to_owned(), "failed".to_owned());
    labels.insert(MODIFIED_AT.to_owned(), now.timestamp().to_string());
    let encoded = ByteString(encoded(&release).into_bytes());
    failed.data.get_or_insert_default().insert(KEY.to_owned(), encoded);
    Ok(failed)
}

/// The JSON of the release. Releases of early versions of Helm are not compressed.
fn decoded(secret: &Secret) -> Result<Vec<u8>, StorageError> {
    let data = secret.data.as_ref().and_then(|data| data.get(KEY)).ok_or(StorageError::NoData)?;
    let bytes = STANDARD.decode(&data.0).map_err(|_| StorageError::Encoding)?;
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut json = Vec::new();
    let read = GzDecoder::new(bytes.as_slice()).take(LARGEST + 1).read_to_end(&mut json);
    match read {
        Ok(length) if u64::try_from(length).is_ok_and(|length| length <= LARGEST) => Ok(json),
        _ => Err(StorageError::Encoding),
    }
}

fn encoded(release: &Value) -> String {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let _ = gzip.write_all(release.to_string().as_bytes());
    STANDARD.encode(gzip.finish().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helm::ReleaseState;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn secret(revision: i64, state: &str, data: &str) -> Secret {
        serde_json::from_value(json!({
            "metadata": {
                "name": format!("sh.helm.release.v1.cni.v{revision}"), "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {
                    "name": "cni", "owner": "helm", "status": state, "version": revision.to_string(),
                    "createdAt": "1", "a.example/b": "c",
                },
            },
            "type": SECRET_TYPE,
            "data": {"release": STANDARD.encode(data)},
        }))
        .unwrap()
    }

    fn release(revision: i64, state: &str) -> Value {
        json!({
            "name": "cni", "version": revision, "info": {"status": state, "description": "s3cret", "notes": "n"},
            "chart": {"metadata": {"name": "cilium", "version": "1.17.0"}, "templates": [{"name": "a", "data": "Qg=="}]},
            "config": {"large": 9_007_199_254_740_993_i64, "ratio": 1.5}, "manifest": "m", "hooks": [],
        })
    }

    fn stored(revision: i64, state: &str) -> Secret {
        secret(revision, state, &encoded(&release(revision, state)))
    }

    #[test]
    fn the_newest_revision_is_read() {
        let all = [stored(9, "superseded"), stored(10, "pending-upgrade"), stored(8, "superseded")];
        let newest = newest(&all).unwrap().unwrap();
        assert_eq!((newest.release.revision, newest.release.state), (10, ReleaseState::PendingUpgrade));
        assert_eq!(newest.labels, [("a.example/b".to_owned(), "c".to_owned())].into());
        assert_eq!(newest.secret, "sh.helm.release.v1.cni.v10");
        assert_eq!(super::newest(&[]).unwrap(), None);
        assert_eq!(manifest(&all[1]).unwrap(), "m");
        let other = Secret { type_: Some("Opaque".to_owned()), ..stored(11, "deployed") };
        assert_eq!(super::newest(&[other]).unwrap(), None, "a Secret with the same labels");
    }

    #[test]
    fn only_the_state_of_an_interrupted_revision_changes() {
        let before = stored(3, "pending-install");
        let after = marked_failed(&before, at(5)).unwrap();
        let mut expected = release(3, "failed");
        expected["info"]["description"] = json!("The operation was interrupted.");
        let json: Value = serde_json::from_slice(&decoded(&after).unwrap()).unwrap();
        assert_eq!(json, expected);
        let labels = after.metadata.labels.as_ref().unwrap();
        assert_eq!((labels["status"].as_str(), labels["modifiedAt"].as_str()), ("failed", "5"));
        assert_eq!(labels["a.example/b"], "c");
        assert_eq!(after.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(newest(&[after]).unwrap().unwrap().release.state, ReleaseState::Failed);
    }

    #[test]
    fn a_release_that_is_not_compressed_is_read() {
        let plain = secret(1, "deployed", &STANDARD.encode(release(1, "deployed").to_string()));
        assert_eq!(newest(&[plain]).unwrap().unwrap().release.revision, 1);
    }

    #[test]
    fn data_of_another_kind_is_an_error() {
        let of = |data: &str| newest(&[secret(1, "deployed", data)]).unwrap_err();
        assert_eq!(of("?"), StorageError::Encoding);
        assert_eq!(of(&STANDARD.encode(b"\x1f\x8b\x08 no gzip")), StorageError::Encoding);
        assert_eq!(of(&encoded(&json!({}))), StorageError::Content);
        let empty = Secret { data: None, ..stored(1, "deployed") };
        assert_eq!(newest(&[empty]).unwrap_err(), StorageError::NoData);
        assert_eq!(marked_failed(&stored(1, "x"), at(0)).map(drop), Ok(()));
        let no_info = secret(1, "deployed", &encoded(&json!({"version": 1})));
        assert_eq!(marked_failed(&no_info, at(0)).unwrap_err(), StorageError::Content);
    }

    #[test]
    fn a_bomb_is_not_expanded() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let zeros = vec![0_u8; 1 << 20];
        for _ in 0..65 {
            gzip.write_all(&zeros).unwrap();
        }
        let bomb = secret(1, "deployed", &STANDARD.encode(gzip.finish().unwrap()));
        assert_eq!(newest(&[bomb]).unwrap_err(), StorageError::Encoding);
    }
}
