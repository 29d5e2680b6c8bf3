//! The stamp in the description of a launch template version: hashes of its content, and of what makes instances
//! outdated.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The number of the scheme by which hashes are computed. A change of their input requires a new number: versions of
/// another scheme are replaced by new ones, and never make an instance outdated (docs/contributors/decisions.md).
pub const SCHEME: u32 = 1;

/// How the description of a version that we created begins.
const PREFIX: &str = "capasg/";

/// The hashes of one launch-template version, each 16 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Everything in the version, user data included: another value requires a new version.
    pub content: String,
    /// What makes an instance outdated, except bootstrap: image, machine settings, Kubernetes version; not tags.
    pub rollout: String,
    /// The source of the image (ID or parameter): while it is the same, the pinned image stays.
    pub image_source: String,
    /// The bootstrap config's spec without discovery, from which the data was rendered.
    pub bootstrap_spec: String,
    /// The bootstrap data with tokens masked.
    pub bootstrap_data: String,
}

impl Stamp {
    /// Parses a version's description; `None` for another scheme or any other text.
    #[must_use]
    pub fn parse(description: &str) -> Option<Self> {
        let mut words = description.split(' ');
        if words.next()? != format!("{PREFIX}{SCHEME}") {
            return None;
        }
        let mut field = |key: &str| {
            let value = words.next()?.strip_prefix(key)?.strip_prefix('=')?;
            (value.len() == 16).then(|| value.to_owned())
        };
        Some(Self {
            content: field("content")?,
            rollout: field("rollout")?,
            image_source: field("image")?,
            bootstrap_spec: field("spec")?,
            bootstrap_data: field("data")?,
        })
    }

    /// Whether a version's description is a stamp, of this or of another scheme: we created the version.
    #[must_use]
    pub fn is_stamp(description: &str) -> bool {
        description.starts_with(PREFIX)
    }

    /// Whether an instance launched from a version with this stamp is outdated if `desired` is desired.
    ///
    /// Bootstrap counts only if the spec and the rendered data both differ: a token rotation changes neither (or the
    /// data alone), and an edit by a user counts once it is rendered (H2).
    #[must_use]
    pub fn outdated_under(&self, desired: &Self) -> bool {
        let bootstrap =
            self.bootstrap_spec != desired.bootstrap_spec && self.bootstrap_data != desired.bootstrap_data;
        self.rollout != desired.rollout || bootstrap
    }

    /// The stamp of the next version after `previous`: if the data did not change, it keeps the spec that the data was
    /// rendered from, so that an edit that is not rendered yet counts once it is.
    #[must_use]
    pub fn following(mut self, previous: Option<&Self>) -> Self {
        if let Some(previous) = previous.filter(|one| one.bootstrap_data == self.bootstrap_data) {
            self.bootstrap_spec.clone_from(&previous.bootstrap_spec);
        }
        self
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{PREFIX}{SCHEME} content={} rollout={} image={} spec={} data={}",
            self.content, self.rollout, self.image_source, self.bootstrap_spec, self.bootstrap_data
        )
    }
}

/// The first 16 hexadecimal digits of the SHA-256 of a value's canonical JSON (object keys sorted).
#[must_use]
pub fn hash(value: &impl Serialize) -> String {
    hash_json(&serde_json::to_value(value).unwrap_or_default())
}

/// [`hash`] of a JSON value.
#[must_use]
pub fn hash_json(value: &Value) -> String {
    hash_bytes(value.to_string().as_bytes())
}

/// The first 16 hexadecimal digits of the SHA-256 of some bytes.
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> String {
    let first =
        Sha256::digest(bytes).into_iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(byte));
    format!("{first:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(rollout: &str, spec: &str, data: &str) -> Stamp {
        let of = |text: &str| hash_bytes(text.as_bytes());
        Stamp {
            content: of("c"),
            rollout: of(rollout),
            image_source: of("i"),
            bootstrap_spec: of(spec),
            bootstrap_data: of(data),
        }
    }

    #[test]
    fn a_stamp_survives_the_description_and_fits_it() {
        let stamp = stamp("r", "s", "d");
        let text = stamp.to_string();
        assert!(text.len() <= 255, "{} characters", text.len());
        assert_eq!(Stamp::parse(&text), Some(stamp));
        assert_eq!(Stamp::parse("capasg/2 content=0123456789abcdef"), None);
        assert!(Stamp::is_stamp("capasg/2 content=0123456789abcdef"));
        assert_eq!(Stamp::parse("made by hand"), None);
        assert!(!Stamp::is_stamp("made by hand"));
    }

    #[test]
    fn p37_bootstrap_counts_only_when_spec_and_data_both_differ() {
        let old = stamp("r", "s", "d");
        assert!(!old.outdated_under(&stamp("r", "s", "d2")), "a rotation");
        assert!(!old.outdated_under(&stamp("r", "s2", "d")), "an edit that is not rendered");
        assert!(old.outdated_under(&stamp("r", "s2", "d2")), "a rendered edit");
        assert!(old.outdated_under(&stamp("r2", "s", "d")), "another machine");
    }

    #[test]
    fn an_edit_recorded_before_it_is_rendered_still_counts_later() {
        let first = stamp("r", "s", "d");
        // Something else makes a version between the edit and its rendering.
        let second = stamp("r", "s2", "d").following(Some(&first));
        assert_eq!(second.bootstrap_spec, first.bootstrap_spec);
        let rendered = stamp("r", "s2", "d2").following(Some(&second));
        assert!(first.outdated_under(&rendered));
        assert!(second.outdated_under(&rendered));
    }

    #[test]
    fn p1_the_same_value_has_one_hash_whatever_the_order_of_its_keys() {
        let one: serde_json::Value = serde_json::json!({"a": 1, "b": {"c": 2, "d": 3}});
        let two: serde_json::Value = serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap();
        assert_eq!(hash(&one), hash(&two));
    }
}
