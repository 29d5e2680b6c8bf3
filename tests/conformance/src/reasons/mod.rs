//! The pages on conditions and events, from the comments of the constants that the product uses:
//! `docs/reference/conditions.md` and `docs/reference/kubernetes-events.md`.

mod constants;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};

use crate::tree;
use constants::{Constant, Module, sentence};

/// The folder of the pages.
const FOLDER: &str = "docs/reference";

const CONDITIONS_HEAD: &str = "# Conditions

Generated from the comments in the code by `make generate`; do not edit.

Every condition has all of its reasons here, with what to do. The message of a condition says more: it contains the error \
of AWS, names and figures.

```sh
kubectl describe asgmachinepool <name>          # all conditions
kubectl get asgmachinepools --output=wide
kubectl wait asgmachinepool <name> --for=condition=Ready
```

In the tables, *normal* is the status of a condition about which nothing has to be done.
";

const EVENTS_HEAD: &str = "# Kubernetes events

Generated from the comments in the code by `make generate`; do not edit.

Events of an object say what was done or observed: `kubectl events --for=asgmachinepool/<name>`. Their reasons do not \
change. Nothing depends on them, and the API server keeps them for an hour by default. [Events from \
AWS](../users/events.md) are something else.
";

/// The conditions of some kinds.
struct Section {
    title: &'static str,
    /// Files with types of conditions: constants whose comments begin with the kinds that have them.
    types: &'static [&'static str],
    /// Files with reasons: in modules, or constants whose comments begin with one of [`OF_REASONS`].
    reasons: &'static [&'static str],
}

const SECTIONS: [Section; 2] = [
    Section {
        title: "ASGMachinePool and ASGMachine",
        types: &["api/src/conditions/types.rs"],
        reasons: &["api/src/reasons.rs"],
    },
    Section {
        title: "HelmChartProxy and HelmReleaseProxy",
        types: &["addons/src/kinds/conditions.rs", "api/src/names/addons.rs"],
        reasons: &["addons/src/kinds/conditions.rs", "api/src/names/addons.rs"],
    },
];

const OF_REASONS: [&str; 2] = ["All conditions: ", "Reason of "];

/// The sections of events: title, introduction, file.
const EVENTS: [(&str, &str, &str); 3] = [
    ("Pools and instances", "Of an ASGMachinePool.", "api/src/names/mod.rs"),
    ("Helm releases", "Of a HelmReleaseProxy.", "addons/src/names.rs"),
    ("Runtime Extension", "Of a Cluster.", "extensions/src/names.rs"),
];

/// The page on conditions.
///
/// # Errors
/// When a source cannot be read, or has a constant without a comment.
pub fn conditions() -> Result<String> {
    let mut page = CONDITIONS_HEAD.to_owned();
    for section in SECTIONS {
        write!(
            page,
            "\n## {}\n\n| condition | of | normal | meaning |\n| --- | --- | --- | --- |\n",
            section.title
        )?;
        for path in section.types {
            for condition in read(path)?.iter().flat_map(|module| &module.constants) {
                let Some((of, is_negative, meaning)) = subject(&condition.meaning()?) else { continue };
                let normal = if is_negative { "False" } else { "True" };
                writeln!(page, "| `{}` | {of} | {normal} | {} |", condition.value, text(&meaning))?;
            }
        }
        for path in section.reasons {
            for module in read(path)?.iter().filter(|module| !module.constants.is_empty()) {
                let title =
                    if module.name.is_empty() { "Other reasons".to_owned() } else { module.title()? };
                write_reasons(&mut page, &title, module)?;
            }
        }
    }
    Ok(page)
}

fn write_reasons(page: &mut String, title: &str, module: &Module) -> Result<()> {
    let mut rows = String::new();
    for reason in &module.constants {
        let meaning = reason.meaning()?;
        if module.name.is_empty() && !OF_REASONS.iter().any(|head| meaning.starts_with(head)) {
            continue;
        }
        let meaning = OF_REASONS.iter().find_map(|head| meaning.strip_prefix(head)).unwrap_or(&meaning);
        let remedy = reason.remedy().map_or_else(|| "–".to_owned(), |remedy| text(&remedy));
        writeln!(rows, "| `{}` | {} | {remedy} |", reason.value, text(&sentence(meaning)))?;
    }
    if !rows.is_empty() {
        write!(page, "\n### {title}\n\n| reason | meaning | what to do |\n| --- | --- | --- |\n{rows}")?;
    }
    Ok(())
}

/// The page on events.
///
/// # Errors
/// When a source cannot be read, or has a constant without a comment.
pub fn events() -> Result<String> {
    let mut page = EVENTS_HEAD.to_owned();
    for (title, introduction, path) in EVENTS {
        let modules = read(path)?;
        let events = modules.iter().find(|module| module.name == "events");
        let events = events.with_context(|| format!("{path} has no module `events`"))?;
        write!(page, "\n## {title}\n\n{introduction}\n\n| reason | type | meaning |\n| --- | --- | --- |\n")?;
        for event in &events.constants {
            let meaning = event.meaning()?;
            let (type_, meaning) = match meaning.strip_prefix("Warning: ") {
                Some(rest) => ("Warning", sentence(rest)),
                None => ("Normal", meaning),
            };
            writeln!(page, "| `{}` | {type_} | {} |", event.value, text(&meaning))?;
        }
    }
    Ok(page)
}

fn read(path: &str) -> Result<Vec<Module>> {
    constants::modules(&tree::read(path)?.text).with_context(|| format!("cannot parse {path}"))
}

/// Which kinds have a condition, whether it is negative, and its meaning: `Pool, negative: what is so.` None for what is no
/// condition.
fn subject(comment: &str) -> Option<(&'static str, bool, String)> {
    const KINDS: [(&str, &str); 5] = [
        ("Both kinds", "both"),
        ("Pool", "ASGMachinePool"),
        ("Instance", "ASGMachine"),
        ("Of a `HelmChartProxy`", "HelmChartProxy"),
        ("Of a `HelmReleaseProxy`", "HelmReleaseProxy"),
    ];
    let (head, rest) = comment.split_once(": ")?;
    let (kind, is_negative) = head.strip_suffix(", negative").map_or((head, false), |kind| (kind, true));
    let (_, of) = KINDS.iter().find(|(known, _)| *known == kind)?;
    Some((of, is_negative, sentence(rest)))
}

/// A comment as the text of a table: without IDs of rules and what concerns the code alone, and with links to pages.
fn text(comment: &str) -> String {
    let mut words = Vec::new();
    for word in comment.replace(" Read back.", "").replace(['[', ']'], "").split(' ') {
        let inner = word.trim_matches(|c: char| "().,;".contains(c));
        let is_rule =
            word.starts_with('(') && inner.len() <= 3 && inner.ends_with(|c: char| c.is_ascii_digit());
        let end = word.trim_start_matches(|c: char| c != ')').trim_start_matches(')');
        match inner.strip_prefix("docs/") {
            _ if is_rule => words.last_mut().map_or((), |last: &mut String| last.push_str(end)),
            Some(path) => words.push(word.replace(inner, &link(path))),
            None => words.push(word.to_owned()),
        }
    }
    words.join(" ").replace('|', "\\|")
}

/// From a page of [`FOLDER`] to another below `docs`, by its title.
fn link(path: &str) -> String {
    let page = tree::read(&format!("docs/{path}")).ok();
    let title = page.as_ref().and_then(|page| page.text.lines().next()?.strip_prefix("# "));
    let file = path.rsplit('/').next().unwrap_or(path);
    let name = title.map_or_else(|| format!("`{file}`"), str::to_owned);
    let target = match path.strip_prefix(FOLDER.trim_start_matches("docs/")) {
        Some(here) => here.trim_start_matches('/').to_owned(),
        None => format!("../{path}"),
    };
    format!("[{name}]({target})")
}

/// Reasons that report a problem and have no remedy: of the conditions that `Ready` of a pool summarizes.
///
/// # Errors
/// When the source cannot be read.
pub fn without_remedy() -> Result<Vec<String>> {
    let modules = read("api/src/reasons.rs")?;
    let of_problems =
        ["cloud_reachable", "launch_template_ready", "group_ready", "scaling_healthy", "event_queue_ready"];
    let mut missing = Vec::new();
    for name in of_problems {
        let module = modules.iter().find(|module| module.name == name);
        let module = module.with_context(|| format!("reasons.rs has no module {name}"))?;
        ensure!(module.constants.len() > 1, "{name} has no reasons");
        // The first one is that of the normal status.
        let problems = module.constants.iter().skip(1).filter(|reason| reason.value != "NotRequired");
        missing.extend(problems.filter(|reason| reason.remedy().is_none()).map(Constant::to_string));
    }
    Ok(missing)
}
