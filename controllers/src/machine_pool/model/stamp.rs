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
    /// The bootstrap config's spec as it was, if that is not `bootstrap_spec`: it changed since, and the data did not.
    pub spec_seen: Option<SpecSeen>,
}

/// A changed spec of the bootstrap config, and whether its effect on the data is known. A new version of Cluster API may
/// add a field with its default, which is no edit of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecSeen {
    /// Hash of the spec, as [`Stamp::bootstrap_spec`].
    pub spec: String,
    /// Hash of the bootstrap data, tokens included, when the spec was first seen; `None` once the same data was rendered
    /// again since: then the spec has no effect on it.
    pub rendering: Option<String>,
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
        let stamp = Self {
            content: field("content")?,
            rollout: field("rollout")?,
            image_source: field("image")?,
            bootstrap_spec: field("spec")?,
            bootstrap_data: field("data")?,
            spec_seen: None,
        };
        Some(Self { spec_seen: words.next().and_then(SpecSeen::parse), ..stamp })
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
    /// rendered from, so that an edit that is not rendered yet counts once it is. A changed spec from which the same data
    /// was rendered is recorded; data that changes later does not change for its sake.
    #[must_use]
    pub fn following(mut self, previous: Option<&Self>) -> Self {
        let Some(previous) = previous else { return self };
        let known = previous.spec_seen.as_ref().filter(|seen| seen.spec == self.bootstrap_spec);
        let has_no_effect = known.is_some_and(|seen| seen.rendering.is_none());
        if previous.bootstrap_data != self.bootstrap_data && !has_no_effect {
            return self;
        }
        if self.content == previous.content {
            // Nothing is rendered again, and a record alone is worth no new version.
            self.spec_seen.clone_from(&previous.spec_seen);
        } else if let Some(known) = known {
            let rendered = self.spec_seen.and_then(|seen| seen.rendering);
            let is_rendered_again = rendered.is_some() && rendered != known.rendering;
            let rendering = known.rendering.clone().filter(|_| !is_rendered_again);
            self.spec_seen = Some(SpecSeen { spec: known.spec.clone(), rendering });
        }
        self.bootstrap_spec.clone_from(&previous.bootstrap_spec);
        self
    }

    /// What the description has to record of a changed spec.
    fn recorded_spec(&self) -> Option<&SpecSeen> {
        self.spec_seen.as_ref().filter(|seen| seen.spec != self.bootstrap_spec)
    }
}

impl SpecSeen {
    fn parse(word: &str) -> Option<Self> {
        if let Some(spec) = word.strip_prefix("same=") {
            return Some(Self { spec: spec.to_owned(), rendering: None });
        }
        let (spec, rendering) = word.strip_prefix("seen=")?.split_once(':')?;
        Some(Self { spec: spec.to_owned(), rendering: Some(rendering.to_owned()) })
    }
}

impl fmt::Display for SpecSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rendering {
            None => write!(f, "same={}", self.spec),
            Some(rendering) => write!(f, "seen={}:{rendering}", self.spec),
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{PREFIX}{SCHEME} content={} rollout={} image={} spec={} data={}",
            self.content, self.rollout, self.image_source, self.bootstrap_spec, self.bootstrap_data
        )?;
        self.recorded_spec().map_or(Ok(()), |seen| write!(f, " {seen}"))
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
    // The text of `value.to_string()`, whose formatting takes twice as long.
    hash_bytes(&serde_json::to_vec(value).unwrap_or_default())
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
            spec_seen: None,
        }
    }

    /// The stamp of a rendering of the config's spec.
    fn rendered(spec: &str, data: &str, rendering: &str) -> Stamp {
        let stamp = stamp("r", spec, data);
        let seen = SpecSeen {
            spec: stamp.bootstrap_spec.clone(),
            rendering: Some(hash_bytes(rendering.as_bytes())),
        };
        Stamp { content: hash_bytes(format!("c{rendering}").as_bytes()), spec_seen: Some(seen), ..stamp }
    }

    /// The stamps of versions that follow each other, as their descriptions hold them.
    fn versions(renderings: &[(&str, &str, &str)]) -> Vec<Stamp> {
        let mut all: Vec<Stamp> = Vec::new();
        for (spec, data, rendering) in renderings {
            let next = rendered(spec, data, rendering).following(all.last());
            let text = next.to_string();
            assert!(text.len() <= 255, "{} characters", text.len());
            let read = Stamp::parse(&text).unwrap();
            // The pool is reconciled with what it finds, and finds it again.
            let again = rendered(spec, data, rendering).following(Some(&read));
            assert_eq!(again.to_string(), text);
            all.push(read);
        }
        all
    }

    #[test]
    fn a_default_that_a_new_core_adds_is_no_edit_when_data_change_later() {
        let all = versions(&[
            ("s", "d", "token-1"),
            ("s+default", "d", "token-2"),
            ("s+default", "d", "token-3"),
            ("s+default", "another-ca", "token-4"),
            ("s+default", "another-ca", "token-5"),
            ("s+default", "a-third-ca", "token-6"),
        ]);
        for (number, stamp) in all.iter().enumerate() {
            assert!(!all[0].outdated_under(stamp), "version {number}: {stamp}");
        }
        // A user's edit counts, whatever was recorded before.
        let edited = rendered("s+default+edit", "a-third-ca+edit", "token-7").following(all.last());
        assert!(all.iter().all(|stamp| stamp.outdated_under(&edited)));
    }

    #[test]
    fn an_edit_counts_although_other_changes_create_versions_before_it_is_rendered() {
        let mut all = versions(&[("s", "d", "token-1"), ("s+edit", "d", "token-2")]);
        // Tags change twice; the bootstrap data is still that of the second token.
        for tag in ["a", "b"] {
            let next = Stamp { content: hash_bytes(tag.as_bytes()), ..rendered("s+edit", "d", "token-2") };
            all.push(Stamp::parse(&next.following(all.last()).to_string()).unwrap());
        }
        let edited = rendered("s+edit", "d+edit", "token-3").following(all.last());
        assert!(all.iter().all(|stamp| stamp.outdated_under(&edited)));
        // The spec is what it was again: nothing is left of the edit.
        let undone = rendered("s", "d", "token-4").following(all.last());
        assert!(!undone.to_string().contains("seen="), "{undone}");
        assert!(all.iter().all(|stamp| !stamp.outdated_under(&undone)));
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
