//! Kubernetes versions, as Cluster API writes them.

use std::{cmp::Ordering, fmt, str::FromStr};

use thiserror::Error;

/// A Kubernetes version with its text. Build metadata is not ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    number: semver::Version,
    text: String,
}

/// A text that is not a version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a Kubernetes version such as v1.36.3")]
pub struct InvalidVersion(pub String);

impl Version {
    /// The major version.
    #[must_use]
    pub const fn major(&self) -> u64 {
        self.number.major
    }

    /// The minor version.
    #[must_use]
    pub const fn minor(&self) -> u64 {
        self.number.minor
    }

    /// Compares without build metadata, which have no order.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        self.number.cmp_precedence(&other.number)
    }

    /// Whether this is the same version, build metadata included.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.strip_prefix('v').unwrap_or(text);
        // Long texts would only end up in messages.
        let shown = || text.chars().take(64).collect();
        let number = semver::Version::parse(plain).map_err(|_| InvalidVersion(shown()))?;
        Ok(Self { number, text: format!("v{plain}") })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other).then_with(|| self.number.cmp(&other.number))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_ordered_without_build_metadata() {
        assert_eq!(version("v1.36.3").to_string(), "v1.36.3");
        assert_eq!(version("1.36.3").to_string(), "v1.36.3");
        assert_eq!(version("v1.36.3+a").compare(&version("v1.36.3+b")), Ordering::Equal);
        assert!(!version("v1.36.3+a").is_same(&version("v1.36.3+b")));
        assert!(version("v1.36.0-rc.1") < version("v1.36.0"));
        assert!(version("v1.9.9") < version("v1.10.0"));
        for text in ["", "v", "1.36", "latest", "v1.36.3.4", "v99999999999999999999.1.1"] {
            assert_eq!(text.parse::<Version>(), Err(InvalidVersion(text.to_owned())));
        }
    }
}
