//! The prose of a document: neither blocks of code, nor the targets of links.

use super::Text;

pub fn texts(path: &str, document: &str) -> Vec<Text> {
    let mut texts = Vec::new();
    let mut in_code = false;
    for (number, line) in document.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            texts.push(Text {
                path: path.to_owned(),
                place: (number + 1).to_string(),
                text: without_targets(line),
            });
        }
    }
    texts
}

/// `[what](where)` is what is shown: `what`.
fn without_targets(line: &str) -> String {
    let mut parts = line.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push(']');
        text.push_str(part.split_once(')').map_or(part, |(_, after)| after));
    }
    text
}
