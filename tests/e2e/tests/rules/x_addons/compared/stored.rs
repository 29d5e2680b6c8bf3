//! Revisions of releases as Helm stores them, from which `helm history` and `helm get values` read.

use std::io::{Read as _, Write as _};

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use serde_json::{Value, json};

const KEY: &str = "release";

/// The revision in a Secret.
pub fn read(secret: &Secret) -> Result<Value> {
    let data = secret.data.as_ref().and_then(|data| data.get(KEY)).context("no release")?;
    let mut text = String::new();
    GzDecoder::new(&STANDARD.decode(&data.0)?[..]).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// The Secret with another state of its revision.
pub fn with_state(secret: &Secret, state: &str) -> Result<Secret> {
    let mut release = read(secret)?;
    release["info"]["status"] = json!(state);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(release.to_string().as_bytes())?;
    let data = ByteString(STANDARD.encode(encoder.finish()?).into_bytes());
    let mut changed = secret.clone();
    changed.data.get_or_insert_default().insert(KEY.to_owned(), data);
    changed.metadata.labels.get_or_insert_default().insert("status".to_owned(), state.to_owned());
    Ok(changed)
}
