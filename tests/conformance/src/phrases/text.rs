//! A text that users read, and its words.

/// A text that users read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// From the root of the tree.
    pub path: String,
    /// A line, or the path of a field.
    pub place: String,
    /// The text itself.
    pub text: String,
}

/// The words of a text without code: neither `code`, nor {placeholders}.
pub fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (number, part) in text.split('`').enumerate() {
        // Every other part is code, unless a backtick is alone.
        if number % 2 == 1 {
            continue;
        }
        let mut rest = part;
        while let Some((before, after)) = rest.split_once('{') {
            words.extend(words_of(before));
            rest = after.split_once('}').map_or("", |(_, after)| after);
        }
        words.extend(words_of(rest));
    }
    words
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '\'')));
    parts.map(|part| part.trim_matches(['-', '\''])).filter(|word| !word.is_empty())
}
