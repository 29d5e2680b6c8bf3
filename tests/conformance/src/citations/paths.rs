//! The paths of the tree, and what in a text looks like one of them.

use std::collections::BTreeSet;

/// The files of the tree and their folders.
pub struct Paths {
    files: BTreeSet<String>,
    folders: BTreeSet<String>,
}

/// The ends of names that are files of this tree even without a folder in front.
const OF_THE_TREE: [&str; 2] = ["rs", "md"];
/// The ends of names that are files of this tree with a folder in front.
const IN_FOLDERS: [&str; 8] = ["rs", "md", "yaml", "toml", "json", "patch", "py", "go"];

impl Paths {
    /// Of these files.
    pub fn new(files: Vec<String>) -> Self {
        let parents = |file: &str| -> Vec<String> {
            file.match_indices('/').map(|(at, _)| file[..at].to_owned()).collect()
        };
        let folders = files.iter().flat_map(|file| parents(file)).collect();
        Self { files: files.into_iter().collect(), folders }
    }

    /// All files, sorted.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// Whether a text in backticks is meant to be a path of the tree.
    pub fn looks_like_one(&self, text: &str) -> bool {
        let known = |c: char| c.is_ascii_alphanumeric() || "_./{},*<>-".contains(c);
        let Some((first, _)) = text.split_once('/') else {
            return text.chars().all(known) && extension(text).is_some_and(|end| OF_THE_TREE.contains(&end));
        };
        text.chars().all(known)
            && (self.folders.contains(first) || extension(text).is_some_and(|end| IN_FOLDERS.contains(&end)))
    }

    /// Whether a path exists: from the root, from the folder of the text that names it, or as the end of a path.
    pub fn exist(&self, named_in: &str, path: &str) -> bool {
        if path.starts_with("out/") || path == "out" {
            return true;
        }
        let folder = named_in.rsplit_once('/').map_or("", |(folder, _)| folder);
        variants(path).iter().all(|path| {
            let path = path.trim_end_matches('/');
            self.matches(path)
                || joined(folder, path).is_some_and(|path| self.matches(&path))
                || self.ends_with(path)
        })
    }

    /// Whether a path from the root exists, with `*` for anything.
    pub fn matches(&self, pattern: &str) -> bool {
        self.files.contains(pattern)
            || self.folders.contains(pattern)
            || (pattern.contains('*')
                && self.files.iter().chain(&self.folders).any(|path| fits(path, pattern)))
    }

    fn ends_with(&self, end: &str) -> bool {
        let pattern = format!("*/{end}");
        extension(end).is_some() && self.files.iter().any(|path| fits(path, &pattern))
    }
}

/// The end of a file's name after its last dot.
pub fn extension(path: &str) -> Option<&str> {
    let (stem, end) = path.rsplit('/').next()?.rsplit_once('.')?;
    (!stem.is_empty()).then_some(end)
}

/// A relative path from a folder; nothing above the root.
pub fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// `a/{b,c}` is `a/b` and `a/c`; `<name>` is anything.
fn variants(path: &str) -> Vec<String> {
    if let Some((before, rest)) = path.split_once('{')
        && let Some((inside, after)) = rest.split_once('}')
    {
        return inside.split(',').flat_map(|one| variants(&format!("{before}{one}{after}"))).collect();
    }
    if let Some((before, rest)) = path.split_once('<')
        && let Some((_, after)) = rest.split_once('>')
    {
        return variants(&format!("{before}*{after}"));
    }
    vec![path.to_owned()]
}

fn fits(path: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
