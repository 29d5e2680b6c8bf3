//! Names that Kubernetes accepts, so that a name of a user never becomes another path of a request.

/// Whether Kubernetes accepts a text as the name of an object: a DNS subdomain ("Object Names and IDs" of the Kubernetes
/// documentation).
#[must_use]
pub fn is_object_name(name: &str) -> bool {
    name.len() <= 253 && is_dns_name(name)
}

/// Whether Kubernetes accepts a text as the name of a namespace: a DNS label.
#[must_use]
pub fn is_namespace_name(name: &str) -> bool {
    name.len() <= 63 && !name.contains('.') && is_dns_name(name)
}

/// Labels in lower case, joined by dots.
fn is_dns_name(name: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.split('.').all(|label| {
        let label = label.as_bytes();
        let ends = label.first().zip(label.last());
        ends.is_some_and(|(first, last)| inner(*first) && inner(*last))
            && label.iter().all(|c| inner(*c) || *c == b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_or_a_query_is_no_name() {
        for name in ["a", "a-b.c", "0", &"a".repeat(253)] {
            assert!(is_object_name(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "../a",
            "a/b",
            "a?watch=1",
            "a#b",
            "a%2f",
            "A",
            "-a",
            "a-",
            "a..b",
            &"a".repeat(254),
        ] {
            assert!(!is_object_name(name), "{name}");
        }
        assert!(
            is_namespace_name("team-a") && !is_namespace_name("a.b") && !is_namespace_name(&"a".repeat(64))
        );
    }
}
