//! Where the code says that it keeps a rule: `(B6)` in a comment of the product.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::{
    ids,
    tree::{self, File},
};

/// A comment that names a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From the root of the tree.
    pub path: String,
    /// What the comment is about: a function, a type, a field; empty where it is about the whole file.
    pub item: String,
    /// The rules.
    pub ids: BTreeSet<String>,
}

/// All such comments, by path.
///
/// # Errors
/// When a file cannot be read.
pub fn places() -> Result<Vec<Place>> {
    let folders =
        ["addons/src", "api/src", "cloud/src", "cloud/aws/src", "controllers/src", "extensions/src", "src"];
    let rust = tree::files(&folders, "rs")?;
    let product = rust.iter().filter(|file| {
        !file.path.ends_with("tests.rs") && !file.path.contains("/tests/") && !file.path.contains("/testing")
    });
    let mut places: Vec<Place> = product.flat_map(in_rust).collect();
    for file in tree::files(&["config", "templates"], "yaml")? {
        places.extend(in_yaml(&file));
    }
    Ok(places)
}

fn in_rust(file: &File) -> Vec<Place> {
    let mut places = Vec::new();
    let mut comment = Comment::default();
    let mut function = String::new();
    let mut in_attribute = false;
    for line in file.text.lines().map(str::trim) {
        // Tests are at the end of a file, and found by their names.
        if line == "#[cfg(test)]" {
            break;
        }
        if let Some((mark, text)) = comment_of(line) {
            if mark != comment.mark {
                comment.end(file, &function, &mut places);
                comment.mark = mark;
            }
            comment.text.push(' ');
            comment.text.push_str(text);
            continue;
        }
        // Attributes stand between a comment and its item.
        if in_attribute || line.starts_with("#[") {
            in_attribute = !line.ends_with(']');
            continue;
        }
        let item = item_of(line);
        if let Some(Item { name, is_function: true }) = &item {
            function.clone_from(name);
        }
        let about = match comment.mark {
            "///" => item.map(|item| item.name).unwrap_or_default(),
            "//" => function.clone(),
            _ => String::new(),
        };
        comment.end(file, &about, &mut places);
    }
    places
}

fn in_yaml(file: &File) -> Vec<Place> {
    let comments: Vec<&str> = file.text.lines().filter_map(|line| line.trim().strip_prefix('#')).collect();
    let ids: BTreeSet<_> = ids::in_parentheses(&comments.join(" ")).into_iter().collect();
    if ids.is_empty() {
        return Vec::new();
    }
    vec![Place { path: file.path.clone(), item: String::new(), ids }]
}

/// The lines of one comment together, since a line may end within parentheses.
#[derive(Default)]
struct Comment {
    mark: &'static str,
    text: String,
}

impl Comment {
    fn end(&mut self, file: &File, about: &str, places: &mut Vec<Place>) {
        let Self { mark, text } = std::mem::take(self);
        let ids: BTreeSet<_> = ids::in_parentheses(&text).into_iter().collect();
        if !ids.is_empty() {
            let item = if mark == "//!" { String::new() } else { about.to_owned() };
            places.push(Place { path: file.path.clone(), item, ids });
        }
    }
}

fn comment_of(line: &str) -> Option<(&'static str, &str)> {
    ["///", "//!", "//"].into_iter().find_map(|mark| Some((mark, line.strip_prefix(mark)?)))
}

struct Item {
    name: String,
    is_function: bool,
}

/// The function, type, constant, field or variant that a line declares.
fn item_of(line: &str) -> Option<Item> {
    let mut words = line.split_whitespace().skip_while(|word| {
        matches!(*word, "pub" | "async" | "unsafe" | "default") || word.starts_with("pub(")
    });
    let first = words.next()?;
    let kinds = ["fn", "const", "static", "struct", "enum", "trait", "type", "mod", "macro_rules!", "union"];
    let (declared, is_function) = match first {
        "const" => match words.next()? {
            "fn" => (words.next()?, true),
            name => (name, false),
        },
        kind if kinds.contains(&kind) => (words.next()?, kind == "fn"),
        "impl" | "use" | "let" | "}" | "{" => return None,
        field_or_variant => (field_or_variant, false),
    };
    let name: String = declared.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(Item { name, is_function })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, Vec<String>)> {
        let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
        in_rust(&file).into_iter().map(|place| (place.item, place.ids.into_iter().collect())).collect()
    }

    fn place(item: &str, ids: &[&str]) -> (String, Vec<String>) {
        (item.to_owned(), ids.iter().map(|id| (*id).to_owned()).collect())
    }

    #[test]
    fn comments_are_about_what_follows_them() {
        let text = "//! A module (A1).\n\n/// A kind (B1,\n/// B2).\n#[derive(\n    Debug,\n)]\npub struct Kind {\n    \
                    /// A field (B3).\n    pub field: u8,\n}\n\n/// A call (C1).\npub(crate) async fn call() {\n    \
                    // Here (C2).\n    work();\n}\n/// Fixed (C3).\npub const fn fixed() {}\n/// (C4)\nconst N: u8 = 1;\n\
                    #[cfg(test)]\nmod tests { /* (Z1) */\n// (D1)\nfn t() {}\n}\n";
        let expected = [
            place("", &["A1"]),
            place("Kind", &["B1", "B2"]),
            place("field", &["B3"]),
            place("call", &["C1"]),
            place("call", &["C2"]),
            place("fixed", &["C3"]),
            place("N", &["C4"]),
        ];
        assert_eq!(found(text), expected);
    }

    #[test]
    fn comments_of_yaml_are_about_the_file() {
        let file = File { path: "a.yaml".to_owned(), text: "# One (K4).\nkind: Namespace\n".to_owned() };
        assert_eq!(in_yaml(&file)[0].ids, BTreeSet::from(["K4".to_owned()]));
    }
}
