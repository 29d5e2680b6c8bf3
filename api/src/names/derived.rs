//! Names that follow from other names alone: never from UIDs or status, so that they survive a move (C8).

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The longest launch template name; a group's may have 255, but the two are one.
const MAX_AWS_NAME_LENGTH: usize = 128;
/// The longest host name and label value.
const MAX_MACHINE_NAME_LENGTH: usize = 63;
/// Hexadecimal digits that tell apart what reads alike, such as `a-b` + `c` and `a` + `b-c`.
const HASH_LENGTH: usize = 8;

/// The name of a pool's launch template, and of its group unless the user gave one: namespace, Cluster and pool, cut to
/// fit, and a short hash of the three.
///
/// Names of Kubernetes objects are of `[a-z0-9.-]`, which both AWS names take (groups: ASCII 33 to 126 without a colon;
/// templates: `[a-zA-Z0-9().\-/_]`); any other character becomes a dash.
#[must_use]
pub fn aws_name(namespace: &str, cluster: &str, pool: &str) -> String {
    // NUL is in no name, so the hash cannot confuse where one ends.
    let hash = hash(&format!("{namespace}\0{cluster}\0{pool}"));
    let mut readable: String = format!("{namespace}-{cluster}-{pool}")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' })
        .collect();
    readable.truncate(MAX_AWS_NAME_LENGTH - HASH_LENGTH - 1);
    format!("{readable}-{hash}")
}

/// The name of the `ASGMachine`, and so of the Machine, for an instance: the pool's name, cut to fit, and the
/// instance's ID, which alone makes it unique (D5).
#[must_use]
pub fn machine_name(pool: &str, instance_id: &str) -> String {
    let room = MAX_MACHINE_NAME_LENGTH.saturating_sub(instance_id.len() + 1);
    let prefix = pool[..pool.floor_char_boundary(room.min(pool.len()))].trim_end_matches(['-', '.']);
    if prefix.is_empty() { instance_id.to_owned() } else { format!("{prefix}-{instance_id}") }
}

/// `aws:///<zone>/<instance ID>`, byte for byte as AWS's cloud controller writes it on Nodes (B2).
#[must_use]
pub fn provider_id(availability_zone: &str, instance_id: &str) -> String {
    format!("aws:///{availability_zone}/{instance_id}")
}

fn hash(text: &str) -> String {
    let mut hex = String::with_capacity(HASH_LENGTH);
    for byte in &Sha256::digest(text)[..HASH_LENGTH / 2] {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
