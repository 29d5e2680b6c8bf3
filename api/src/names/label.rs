//! Label values for names of any length, as core writes and selects them (D3).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// The name itself if it is a valid label value, else `hash_<FNV-1a of 32 bits in base64url>_z` (D3).
#[must_use]
pub fn must_format_value(name: &str) -> String {
    if is_label_value(name) {
        return name.to_owned();
    }
    format!("hash_{}_z", URL_SAFE_NO_PAD.encode(fnv1a(name.as_bytes()).to_be_bytes()))
}

/// At most 63 characters of `[A-Za-z0-9_.-]`, alphanumeric at both ends; the empty value is valid.
fn is_label_value(text: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of `MustFormatValue` of Cluster API v1.14.2.
    // Rules: D3
    #[test]
    fn labels_are_those_that_core_looks_up() {
        let long = "very-long-pool-name-".repeat(4) + "x";
        for (name, label) in [
            ("", ""),
            ("workers", "workers"),
            ("a.b_c", "a.b_c"),
            (&"a".repeat(63), &"a".repeat(63)),
            (&"a".repeat(64), "hash_2W8PhQ_z"),
            (&"b".repeat(200), "hash_XRUcxQ_z"),
            ("-a", "hash_ZM2IGw_z"),
            ("a-", "hash_ACSMkw_z"),
            (".", "hash_KwyY8Q_z"),
            ("a/b", "hash_Oo51wQ_z"),
            ("ü", "hash_EZ3USg_z"),
            (&long, "hash_JJHi_w_z"),
        ] {
            assert_eq!(must_format_value(name), label, "{name}");
        }
    }
}
