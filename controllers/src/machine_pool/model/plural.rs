//! Numbers in messages, with the noun or verb that agrees with them.

use std::fmt::Display;

/// The number and the noun: `1 instance`, `2 instances`.
#[must_use]
pub fn counted<N: Copy + Display + PartialEq + From<bool>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(true) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The verb for this number of things.
#[must_use]
pub fn is_or_are<N: Copy + PartialEq + From<bool>>(count: N) -> &'static str {
    if count == N::from(true) { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_and_verbs_agree_with_the_number() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "change")), ["0 changes", "1 change", "2 changes"]);
        assert_eq!([0, 1, 2].map(is_or_are::<usize>), ["are", "is", "are"]);
    }
}
