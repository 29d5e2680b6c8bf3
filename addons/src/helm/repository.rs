//! Where charts come from: a chart repository (`https://`) or a registry (`oci://`).

use super::names::InvalidName;

/// Whether a repository without TLS is accepted: a flag of the operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// `http://` is rejected, and registries are reached over TLS.
    #[default]
    Rejected,
    /// `http://` is accepted.
    Accepted,
}

/// Where a chart comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Repository {
    /// A chart repository: an index and archives over HTTP.
    Index {
        /// The URL, without user information, query and a slash at the end.
        url: String,
    },
    /// A registry of OCI artifacts.
    Registry {
        /// The URL with `oci://`, without a slash at the end. The name of the chart follows it.
        url: String,
    },
}

impl Repository {
    /// Reads `spec.repoURL`.
    ///
    /// # Errors
    /// If the URL has another scheme, user information, a query, a fragment, `..` or unexpected characters.
    pub fn parse(url: &str, plain_http: PlainHttp) -> Result<Self, InvalidName> {
        let invalid = |rule| InvalidName { field: "repoURL", rule };
        let (scheme, rest) = url.split_once("://").ok_or(invalid("begin with https:// or oci://"))?;
        let is_index = match (scheme, plain_http) {
            ("https", _) | ("http", PlainHttp::Accepted) => true,
            ("oci", _) => false,
            ("http", PlainHttp::Rejected) => {
                return Err(invalid("begin with https:// or oci://; http:// requires a flag of the manager"));
            }
            _ => return Err(invalid("begin with https:// or oci://")),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(invalid("contain no user information; use spec.credentials"));
        }
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/._~%+-".contains(&byte);
        let begins =
            authority.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'[');
        if !begins || !authority.bytes().all(is_host) {
            return Err(invalid("name a host"));
        }
        if path.contains("..") || !path.bytes().all(is_path) {
            return Err(invalid(
                "have a path of letters, digits and ._~%+- without '..', and no query or fragment",
            ));
        }
        let url = url.trim_end_matches('/').to_owned();
        Ok(if is_index { Self::Index { url } } else { Self::Registry { url } })
    }

    /// The URL, for messages.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            Self::Index { url } | Self::Registry { url } => url,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Repository, InvalidName> {
        Repository::parse(url, PlainHttp::Rejected)
    }

    #[test]
    fn https_and_oci_are_accepted() {
        let index = |url: &str| Repository::Index { url: url.to_owned() };
        assert_eq!(parse("https://charts.example/stable/").unwrap(), index("https://charts.example/stable"));
        assert_eq!(parse("https://charts.example:8443").unwrap(), index("https://charts.example:8443"));
        assert_eq!(parse("https://[::1]:443/a").unwrap(), index("https://[::1]:443/a"));
        let registry = Repository::Registry { url: "oci://registry.example/charts".to_owned() };
        assert_eq!(parse("oci://registry.example/charts").unwrap(), registry);
    }

    #[test]
    fn plain_http_requires_the_flag() {
        let error = parse("http://charts.example").unwrap_err();
        assert!(error.to_string().contains("http:// requires a flag"), "{error}");
        Repository::parse("http://charts.example", PlainHttp::Accepted).unwrap();
    }

    #[test]
    fn files_flags_credentials_and_queries_are_rejected() {
        let hostile = [
            "",
            "charts",
            "/srv/charts",
            "file:///etc",
            "-https://x",
            "--repo=x",
            "s3://bucket",
            "git+https://x/y",
            "https://",
            "https:///path",
            "https://user:secret@charts.example",
            "https://-x",
            "https://a/../b",
            "https://a/b?token=1",
            "https://a/b#c",
            "https://a b",
            "https://a/b\nc",
            "oci://",
            "HTTPS://a",
            "https://a/%00\0",
        ];
        for url in hostile {
            assert!(Repository::parse(url, PlainHttp::Accepted).is_err(), "{url:?}");
        }
        let error = parse("https://user:secret@charts.example").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
