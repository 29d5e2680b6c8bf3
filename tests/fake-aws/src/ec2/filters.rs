//! EC2's filters: all must match, each by any of its values, with `*` and `?` as wildcards
//! unless a backslash precedes them.

use std::collections::BTreeMap;

use crate::{ApiError, Tree};

/// The filters of a describe.
pub(crate) struct Filters(Vec<(String, Vec<String>)>);

impl Filters {
    /// Reads `Filters`, allowing the given names and `tag:<key>`/`tag-key`.
    pub(crate) fn read(params: &Tree, allowed: &[&str]) -> Result<Self, ApiError> {
        let mut filters = Vec::new();
        for filter in params.items_of("Filters") {
            let name = filter.text_of("Name").unwrap_or_default().to_owned();
            let values = filter.texts_of("Values");
            if !(allowed.contains(&name.as_str()) || name.starts_with("tag:") || name == "tag-key") {
                return Err(ApiError::refused(
                    "InvalidParameterValue",
                    format!("The filter '{name}' is invalid"),
                ));
            }
            if values.len() > 200 {
                return Err(ApiError::refused(
                    "FilterLimitExceeded",
                    "The maximum number of filter values specified on a single call is 200.",
                ));
            }
            filters.push((name, values));
        }
        Ok(Self(filters))
    }

    /// Whether an object matches, given its values by filter name and its tags.
    pub(crate) fn match_all(
        &self,
        tags: &BTreeMap<String, String>,
        values_of: impl Fn(&str) -> Vec<String>,
    ) -> bool {
        self.0.iter().all(|(name, wanted)| {
            let actual: Vec<String> = if let Some(key) = name.strip_prefix("tag:") {
                tags.get(key).cloned().into_iter().collect()
            } else if name == "tag-key" {
                tags.keys().cloned().collect()
            } else {
                values_of(name)
            };
            actual
                .iter()
                .any(|actual| wanted.iter().any(|pattern| glob(pattern.as_bytes(), actual.as_bytes())))
        })
    }
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some(b'*'), _) => glob(&pattern[1..], text) || (!text.is_empty() && glob(pattern, &text[1..])),
        (Some(b'?'), Some(_)) => glob(&pattern[1..], &text[1..]),
        (Some(b'\\'), Some(actual)) if pattern.len() > 1 => {
            pattern[1] == *actual && glob(&pattern[2..], &text[1..])
        }
        (Some(wanted), Some(actual)) if wanted == actual => glob(&pattern[1..], &text[1..]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn wildcards_match_as_in_ec2() {
        assert!(glob(b"a*c", b"abbc"));
        assert!(glob(b"*", b""));
        assert!(glob(b"a?c", b"abc"));
        assert!(!glob(b"a?c", b"ac"));
        assert!(!glob(b"abc", b"abcd"));
        assert!(glob(br"a\*\?\\c", br"a*?\c"));
        assert!(!glob(br"a\*c", b"abc"));
    }
}
