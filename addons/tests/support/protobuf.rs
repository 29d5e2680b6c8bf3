//! Secrets in the protocol buffers of Kubernetes: Helm writes releases so.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

/// The beginning of an object.
const MAGIC: &[u8] = b"k8s\0";

/// The Secret in a body, if it is one in protocol buffers.
pub fn secret(body: &[u8]) -> Option<Value> {
    let envelope = fields(body.strip_prefix(MAGIC)?)?;
    let object = fields(first(&envelope, 2)?)?;
    let metadata = fields(first(&object, 1)?)?;
    let text = |fields: &[(u64, &[u8])], number| {
        first(fields, number).map(|text| String::from_utf8_lossy(text).into_owned())
    };
    let mut labels = Map::new();
    for entry in all(&metadata, 11) {
        let entry = fields(entry)?;
        labels.insert(text(&entry, 1)?, json!(text(&entry, 2).unwrap_or_default()));
    }
    let mut data = Map::new();
    for entry in all(&object, 2) {
        let entry = fields(entry)?;
        data.insert(text(&entry, 1)?, json!(STANDARD.encode(first(&entry, 2).unwrap_or_default())));
    }
    let mut names = json!({"name": text(&metadata, 1)?, "labels": labels});
    if let Some(version) = text(&metadata, 6).filter(|version| !version.is_empty()) {
        names["resourceVersion"] = json!(version);
    }
    Some(
        json!({"kind": "Secret", "apiVersion": "v1", "metadata": names, "data": data, "type": text(&object, 3)?}),
    )
}

fn first<'a>(fields: &[(u64, &'a [u8])], number: u64) -> Option<&'a [u8]> {
    all(fields, number).next()
}

fn all<'a>(fields: &[(u64, &'a [u8])], number: u64) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |(of, _)| *of == number).map(|(_, bytes)| *bytes)
}

/// The fields of a message with their numbers. Those of numbers are empty.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => {
                varint(&mut bytes)?;
                &[]
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                value
            }
            _ => return None,
        };
        all.push((key >> 3, value));
    }
    Some(all)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
