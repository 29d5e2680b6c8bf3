//! Names and versions that become arguments of Helm. A valid one begins with a letter or a digit, so that it is no flag, and
//! contains neither `/` nor `..`, so that it is no path.

use std::fmt;

use crate::names::CHART_ARCHIVE;

/// The longest name of a chart: the limit of the definition.
const LONGEST_CHART: usize = 253;
/// The longest name of a release that Helm accepts.
const LONGEST_RELEASE: usize = 53;
/// The longest name of a namespace.
const LONGEST_NAMESPACE: usize = 63;
/// The longest name of an object.
const LONGEST_OBJECT: usize = 253;
/// The longest version or constraint: the limit of the definition.
const LONGEST_VERSION: usize = 256;

/// A name that does not become an argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is invalid: it must {rule}")]
pub struct InvalidName {
    /// The field of the spec.
    pub field: &'static str,
    /// What is expected. The value itself is not repeated: a user reads it in the spec.
    pub rule: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $parse:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Validates the text.
            ///
            /// # Errors
            /// If the text is not a valid name.
            pub fn parse(text: &str) -> Result<Self, InvalidName> {
                $parse(text).map(|()| Self(text.to_owned()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The name of a chart in its repository.
    ChartName, chart
);
name!(
    /// The name of a release.
    ReleaseName, release
);
name!(
    /// A namespace of the workload cluster.
    Namespace, namespace
);
name!(
    /// The name of a `ConfigMap` or a Secret. It becomes a part of a URL.
    ObjectName, object
);
name!(
    /// A version of a chart, or a constraint.
    Version, version
);

fn chart(text: &str) -> Result<(), InvalidName> {
    let rule = "have 1 to 253 letters, digits, '.', '_' and '-', begin and end with a letter or a digit, and not contain '..'";
    let is_valid = text.len() <= LONGEST_CHART
        && is_enclosed(text, |byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !text.contains("..");
    check(is_valid, "chartName", rule)
}

fn release(text: &str) -> Result<(), InvalidName> {
    let rule = "have 1 to 53 lowercase letters, digits, '-' and '.', and each part between dots begin and end with a letter or a digit";
    let is_valid = text.len() <= LONGEST_RELEASE && text.split('.').all(is_label);
    check(is_valid, "releaseName", rule)
}

fn namespace(text: &str) -> Result<(), InvalidName> {
    let rule = "have 1 to 63 lowercase letters, digits and '-', and begin and end with a letter or a digit";
    check(text.len() <= LONGEST_NAMESPACE && is_label(text), "namespace", rule)
}

fn object(text: &str) -> Result<(), InvalidName> {
    let rule = "be configmap/<name> or secret/<name>, with the name of an object in the same namespace";
    check(text.len() <= LONGEST_OBJECT && text.split('.').all(is_label), CHART_ARCHIVE, rule)
}

fn version(text: &str) -> Result<(), InvalidName> {
    let rule = "be a version or a constraint of at most 256 characters, such as 1.2.3, ^1.2 or '>=1.0 <2.0'";
    let begins = |byte: u8| byte.is_ascii_alphanumeric() || b"*^~<>=!".contains(&byte);
    let is_valid = text.len() <= LONGEST_VERSION
        && text.bytes().next().is_some_and(begins)
        && text.bytes().all(|byte| begins(byte) || b" .,|+_-".contains(&byte))
        && !text.contains("..");
    check(is_valid, "version", rule)
}

/// A label of DNS, of any length.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_enclosed(text, is_inner) && text.bytes().all(|byte| is_inner(byte) || byte == b'-')
}

fn is_enclosed(text: &str, by: impl Fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(&by) && text.bytes().next_back().is_some_and(&by)
}

fn check(is_valid: bool, field: &'static str, rule: &'static str) -> Result<(), InvalidName> {
    if is_valid { Ok(()) } else { Err(InvalidName { field, rule }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_real_charts_and_releases_are_valid() {
        for name in ["cilium", "aws-ebs-csi-driver", "tigera-operator", "my_chart", "Chart2", "a.b"] {
            ChartName::parse(name).unwrap();
        }
        for name in ["cilium", "cilium-1712", "a.b", "0"] {
            ReleaseName::parse(name).unwrap();
        }
        Namespace::parse("kube-system").unwrap();
        for version in
            ["1.2.3", "v1.2.3-rc.1+build", "^1.2", ">=1.0.0 <2", "1.x || 2.x", "*", "~1.2.3, !=1.2.4"]
        {
            Version::parse(version).unwrap();
        }
    }

    #[test]
    fn flags_paths_and_urls_are_rejected() {
        let hostile = [
            "",
            "-x",
            "--post-renderer=/bin/sh",
            "../up",
            "a/../b",
            "a..b",
            "/etc/passwd",
            "./chart",
            "a/b",
            "https://charts.example/c.tgz",
            "a b\nc",
            "ü",
            "a\0b",
            "a\\b",
            "$HOME",
            "a,b=c",
        ];
        for text in hostile {
            assert!(ChartName::parse(text).is_err(), "chart {text:?}");
            assert!(ReleaseName::parse(text).is_err(), "release {text:?}");
            assert!(Namespace::parse(text).is_err(), "namespace {text:?}");
            assert!(ObjectName::parse(text).is_err(), "object {text:?}");
        }
        for text in ["", "-1", "--devel", "../1", "1/2", "1..2", "1\n2", "1;2", "1$2", "'1'", "1\t2"] {
            assert!(Version::parse(text).is_err(), "version {text:?}");
        }
        assert!(ReleaseName::parse(&"a".repeat(54)).is_err());
        assert!(Namespace::parse("a.b").is_err());
    }

    #[test]
    fn an_error_names_the_field_and_the_rule() {
        let error = Namespace::parse("-n").unwrap_err();
        assert_eq!(error.field, "namespace");
        assert!(
            error.to_string().starts_with("namespace is invalid: it must have 1 to 63 lowercase"),
            "{error}"
        );
    }
}
