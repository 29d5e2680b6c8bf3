//! Names that are derived from other names, never from UIDs or status, so that they survive a move (C8).

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The maximum length of a launch template name. A group name may have 255 characters, but the two names are equal.
const MAX_AWS_NAME_LENGTH: usize = 128;
/// The maximum length of host names and label values.
const MAX_MACHINE_NAME_LENGTH: usize = 63;
/// Hexadecimal digits that distinguish names such as `a-b` + `c` and `a` + `b-c`.
const HASH_LENGTH: usize = 8;
/// The length of the readable part.
const READABLE_LENGTH: usize = MAX_AWS_NAME_LENGTH - HASH_LENGTH - 1;

/// The name of a pool's launch template, and of its group unless the spec sets one: namespace, Cluster and pool, truncated
/// to fit, and a short hash of the three.
///
/// Names of Kubernetes objects consist of `[a-z0-9.-]`, which AWS accepts in both names (groups: ASCII 33 to 126 without a
/// colon; launch templates: `[a-zA-Z0-9().\-/_]`); any other character becomes a dash.
#[must_use]
pub fn aws_name(namespace: &str, cluster: &str, pool: &str) -> String {
    // No name contains NUL, so the hash is unambiguous.
    let hash = hash(&format!("{namespace}\0{cluster}\0{pool}"));
    let parts = [namespace, cluster, pool].map(|part| {
        part.chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' })
            .collect::<String>()
    });
    let readable = parts.join("-");
    if readable.len() <= READABLE_LENGTH {
        return format!("{readable}-{hash}");
    }
    // Every part keeps a third, so that the pool is still recognizable.
    let [namespace, cluster, pool] = parts.map(|mut part| {
        part.truncate((READABLE_LENGTH - 2) / 3);
        part
    });
    format!("{namespace}-{cluster}-{pool}-{hash}")
}

/// The name of the `ASGMachine`, and so of the Machine, of an instance: the pool's name, truncated to fit, and the
/// instance's ID, which makes it unique (D5).
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

/// Eight hexadecimal digits that distinguish names that are otherwise equal.
#[must_use]
pub fn hash(text: &str) -> String {
    let mut hex = String::with_capacity(HASH_LENGTH);
    for byte in &Sha256::digest(text)[..HASH_LENGTH / 2] {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const INSTANCE: &str = "i-0a1b2c3d4e5f60718";

    // Rules: C8
    #[test]
    fn aws_names_are_stable_over_releases() {
        // A change of these names orphans every existing group and launch template.
        assert_eq!(aws_name("default", "prod", "workers"), "default-prod-workers-df62d14d");
        assert_eq!(
            aws_name(&"n".repeat(63), &"c".repeat(63), &"p".repeat(253)),
            format!("{}-{}-{}-5798ab25", "n".repeat(39), "c".repeat(39), "p".repeat(39))
        );
    }

    // Rules: C8
    #[test]
    fn aws_names_fit_groups_and_templates() {
        for name in [aws_name("a", "b", "c.d"), aws_name(&"n".repeat(63), &"c".repeat(63), &"p".repeat(253))]
        {
            assert!((3..=128).contains(&name.len()), "{name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')),
                "{name}"
            );
        }
    }

    // Rules: C8
    // Pains: W14, P30
    #[test]
    fn what_reads_alike_is_told_apart() {
        let long = "p".repeat(200);
        let names = [
            aws_name("a", "b-c", "d"),
            aws_name("a-b", "c", "d"),
            aws_name("a", "b", "c-d"),
            aws_name("a", "b", &long),
            aws_name("a", "b", &(long.clone() + "q")),
        ];
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    // Rules: D5
    #[test]
    fn machine_names_are_short_host_names() {
        assert_eq!(machine_name("batch", INSTANCE), "batch-i-0a1b2c3d4e5f60718");
        assert_eq!(machine_name("", INSTANCE), INSTANCE);
        for pool in ["p".repeat(253), format!("{}-.{}", "p".repeat(42), "q".repeat(40)), "a.b".to_owned()] {
            let name = machine_name(&pool, INSTANCE);
            assert!(name.len() <= 63 && name.ends_with(&format!("-{INSTANCE}")), "{name}");
            assert!(!name.contains("--") && !name.contains(".-"), "{name}");
        }
    }

    // Rules: D5
    #[test]
    fn machine_names_differ_for_each_instance() {
        let pool = "p".repeat(253);
        assert_ne!(machine_name(&pool, INSTANCE), machine_name(&pool, "i-0a1b2c3d4e5f60719"));
    }

    // Rules: B2
    #[test]
    fn provider_ids_are_those_of_nodes() {
        assert_eq!(provider_id("eu-west-1a", INSTANCE), "aws:///eu-west-1a/i-0a1b2c3d4e5f60718");
    }
}
