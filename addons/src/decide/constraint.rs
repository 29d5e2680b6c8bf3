//! Constraints of versions, as Helm writes them.

use semver::{Version, VersionReq};

/// Parts are separated by spaces or commas, and `1.36` is any version of 1.36.
pub(super) fn constraint(text: &str) -> Result<VersionReq, semver::Error> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        match parts.last_mut() {
            // An operator that is separated from its version.
            Some(last) if last.ends_with(['<', '>', '=', '~', '^']) => last.push_str(word),
            _ if word.starts_with(|first: char| first.is_ascii_digit()) => parts.push(format!("={word}")),
            _ => parts.push(word.to_owned()),
        }
    }
    VersionReq::parse(&parts.join(","))
}

/// Whether a version satisfies a constraint; none if they cannot be compared, such as with `||`, or a pre-release, which Helm
/// accepts in other cases.
pub(super) fn satisfies(version: &str, of: &str) -> Option<bool> {
    let version = Version::parse(version.trim_start_matches('v')).ok()?;
    version.pre.is_empty().then_some(constraint(of).ok()?.matches(&version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_with_constraints_as_helm_writes_them() {
        for (version, of, expected) in [
            ("1.36.2", "1.36", Some(true)),
            ("v1.36.2", "~1.36.0", Some(true)),
            ("1.37.0", ">= 1.36 <1.37", Some(false)),
            ("1.36.2", ">=1.36, <1.37", Some(true)),
            ("1.36.2", "1.x", Some(true)),
            ("1.36.2", "^1 || ^2", None),
            ("one", "^1", None),
            ("1.2.0-rc.1", ">=0.0.0-0", None),
        ] {
            assert_eq!(satisfies(version, of), expected, "{version} {of}");
        }
    }
}
