//! The pages in `docs` as a book: `docs/SUMMARY.md` has each of them once, and none is too long to be read at once.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::tree::{self, File};

/// The table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";
/// How many words a page has at most that a human wrote.
const WORDS: usize = 2_000;
/// Pages that are written by a program, by the beginnings of their paths.
const GENERATED: [&str; 6] = [
    "docs/contributors/addons-compared.md",
    "docs/contributors/compared.md",
    "docs/contributors/contract.md",
    "docs/reference/api/",
    "docs/reference/conditions.md",
    "docs/reference/kubernetes-events.md",
];
/// Pages on concepts, which have a picture.
const PICTURES: [&str; 11] = [
    "docs/contributors/architecture.md",
    "docs/users/addons-lifecycle.md",
    "docs/users/aws-account.md",
    "docs/users/clusterclass.md",
    "docs/users/concepts.md",
    "docs/users/events.md",
    "docs/users/migration.md",
    "docs/users/rollouts.md",
    "docs/users/runtime-extension.md",
    "docs/users/security.md",
    "docs/users/terminations.md",
];

/// What is wrong with the book.
///
/// # Errors
/// When a page cannot be read.
pub fn problems() -> Result<Vec<String>> {
    let pages = tree::files(&["docs"], "md")?;
    Ok(of(&pages, &tree::read(SUMMARY)?.text))
}

fn of(pages: &[File], summary: &str) -> Vec<String> {
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for target in summary.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
        *listed.entry(format!("docs/{}", target.0)).or_default() += 1;
    }
    let mut problems = Vec::new();
    for page in pages.iter().filter(|page| page.path != SUMMARY) {
        match listed.get(&page.path) {
            Some(1) => {}
            Some(times) => problems.push(format!("{SUMMARY} has {} {times} times", page.path)),
            None => problems.push(format!("{SUMMARY} does not have {}", page.path)),
        }
        let words = page.text.split_whitespace().count();
        if words > WORDS && !GENERATED.iter().any(|path| page.path.starts_with(path)) {
            problems.push(format!("{} has {words} words: split what has more than {WORDS}", page.path));
        }
    }
    for path in PICTURES {
        let page = pages.iter().find(|page| page.path == path);
        if !page.is_some_and(|page| page.text.contains("\n```mermaid\n")) {
            problems.push(format!("{path} has no picture"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_missing_twice_there_or_too_long_is_found() {
        let page = |path: &str, text: String| File { path: path.to_owned(), text };
        let mut pages = vec![
            page("docs/users/a.md", "word ".repeat(2_001)),
            page("docs/users/b.md", "word ".repeat(2_000)),
            page("docs/contributors/contract.md", "word ".repeat(2_001)),
            page("docs/users/c.md", String::new()),
        ];
        pages.extend(PICTURES.map(|path| page(path, "# A\n\n```mermaid\nx\n```\n".to_owned())));
        let pictures = PICTURES.map(|path| format!("[p]({})", &path[5..])).join(" ");
        let summary = format!(
            "[a](users/a.md) [b](users/b.md) [b](users/b.md) [c](contributors/contract.md) {pictures}"
        );
        assert_eq!(
            of(&pages, &summary),
            [
                "docs/users/a.md has 2001 words: split what has more than 2000",
                "docs/SUMMARY.md has docs/users/b.md 2 times",
                "docs/SUMMARY.md does not have docs/users/c.md"
            ]
        );
        pages.pop();
        assert!(of(&pages, &summary).contains(&"docs/users/terminations.md has no picture".to_owned()));
    }
}
