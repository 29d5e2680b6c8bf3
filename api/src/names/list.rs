//! Names in messages.

/// The most names in a message.
const MOST_NAMES: usize = 5;

/// `a, b and 3 more`: a message stays short however many objects it is about.
#[must_use]
pub fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_counted() {
        assert_eq!(listed(&["a", "b"]), "a, b");
        assert_eq!(listed(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}
