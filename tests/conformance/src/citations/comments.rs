//! What comments cite.

use super::paths::{Paths, extension};
use crate::tree::File;

pub fn check(file: &File, paths: &Paths, report: &mut impl FnMut(usize, String)) {
    for (number, line) in (1..).zip(file.text.lines()) {
        let Some(comment) = comment(&file.path, line) else { continue };
        for word in comment.split_whitespace() {
            let inner = |c: char| c.is_ascii_alphanumeric() || "/*<>{}_".contains(c);
            let word =
                word.trim_start_matches(|c: char| !inner(c) && c != '.').trim_end_matches(|c| !inner(c));
            let is_document = extension(word) == Some("md");
            let cited = is_document || (word.contains('/') && in_backticks(comment, word));
            if cited && paths.looks_like_one(word) && !paths.exist(&file.path, word) {
                report(number, format!("there is no {word}"));
            }
        }
        if let Some(section) = section(comment) {
            report(number, format!("sections have no numbers here: {section}"));
        }
    }
}

fn in_backticks(comment: &str, word: &str) -> bool {
    comment.contains(&format!("`{word}`"))
}

/// The comment of a line: the rest of it from `//` or `#` on.
fn comment<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let mark = if matches!(extension(path), Some("rs" | "go" | "patch")) { "//" } else { "#" };
    if mark == "#" {
        return line.trim_start().strip_prefix(mark);
    }
    // Not the two slashes of an URL in a string.
    line.match_indices(mark).find(|(at, _)| !line[..*at].ends_with(':')).map(|(at, _)| &line[at..])
}

/// `section 4` and `design 4`, of whatever document; those of RFCs stay where they are.
fn section(comment: &str) -> Option<String> {
    if comment.contains("RFC") {
        return None;
    }
    let words: Vec<&str> = comment.split_whitespace().collect();
    words.windows(2).find_map(|pair| {
        let name = pair[0].trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let number = pair[1].starts_with(|c: char| c.is_ascii_digit());
        (number && ["section", "sections", "design", "contract"].contains(&name.as_str()))
            .then(|| pair.join(" "))
    })
}
