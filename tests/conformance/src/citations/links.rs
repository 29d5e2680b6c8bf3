//! Links and paths in documents.

use std::fs;

use super::paths::{Paths, extension, joined};
use crate::{root, tree::File};

pub fn check(file: &File, paths: &Paths, report: &mut impl FnMut(usize, String)) {
    let mut in_code = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            // A regular expression in a table may look like a link.
            let text: String = line.split('`').step_by(2).collect();
            for target in targets(&text) {
                if let Some(wrong) = wrong(target, file, paths) {
                    report(number, wrong);
                }
            }
            for code in line.split('`').skip(1).step_by(2) {
                if paths.looks_like_one(code) && !paths.exist(&file.path, code) {
                    report(number, format!("there is no `{code}`"));
                }
            }
        }
    }
}

/// The targets of links: `[text](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

fn wrong(target: &str, file: &File, paths: &Paths) -> Option<String> {
    if target.starts_with("https://") {
        return None;
    }
    if target.contains("://") {
        return Some(format!("{target} is not https"));
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let full = if path.is_empty() { Some(file.path.clone()) } else { joined(folder, path) };
    let Some(full) = full.filter(|full| paths.matches(full)) else {
        return Some(format!("there is no {path}"));
    };
    if anchor.is_empty() || extension(&full) != Some("md") {
        return None;
    }
    let text = if full == file.path {
        file.text.clone()
    } else {
        fs::read_to_string(root().join(&full)).unwrap_or_default()
    };
    (!anchors(&text).iter().any(|known| known == anchor)).then(|| format!("{full} has no heading #{anchor}"))
}

/// The anchors of the headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().replace(' ', "-");
        let same = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
    }
    anchors
}
