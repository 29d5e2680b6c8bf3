//! What the outcomes of tests say about the rules, and the table that tells it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::Result;

use crate::{
    code,
    rules::{Absent, Rule, Rules},
    run::Outcome,
    shown::Test,
};

/// What is known of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All its tests passed.
    Passed,
    /// One did not, or there is none; with the reason.
    Failed(String),
    /// It has no test, with the reason; such a rule fails no run.
    Absent(Absent),
}

/// A rule with its tests and its verdict.
pub struct Row<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The tests that show it.
    pub tests: Vec<&'a Test>,
    /// What they said.
    pub verdict: Verdict,
}

/// Judges the rules that `wanted` chooses.
pub fn judge<'a>(
    rules: &'a Rules,
    tests: &'a [Test],
    outcomes: &BTreeMap<&Test, Outcome>,
    wanted: impl Fn(&Rule) -> bool,
) -> Vec<Row<'a>> {
    let row = |rule: &'a Rule| {
        let tests: Vec<&Test> = tests.iter().filter(|test| test.rules.contains(&rule.id)).collect();
        let verdict = verdict(rule, &tests, outcomes);
        Row { rule, tests, verdict }
    };
    rules.all().filter(|rule| wanted(rule)).map(row).collect()
}

fn verdict(rule: &Rule, tests: &[&Test], outcomes: &BTreeMap<&Test, Outcome>) -> Verdict {
    if let Some(absent) = &rule.absent {
        return if tests.is_empty() {
            Verdict::Absent(absent.clone())
        } else {
            Verdict::Failed("it has tests, and a reason for having none".to_owned())
        };
    }
    if tests.is_empty() {
        return Verdict::Failed("no test shows it".to_owned());
    }
    let not_passed: Vec<String> = tests
        .iter()
        .filter_map(|test| match outcomes.get(*test) {
            Some(Outcome::Passed) => None,
            Some(Outcome::Failed) => Some(format!("{} failed", test.name)),
            Some(Outcome::Ignored) | None => Some(format!("{} was not run", test.name)),
        })
        .collect();
    if not_passed.is_empty() { Verdict::Passed } else { Verdict::Failed(not_passed.join(", ")) }
}

/// What is wrong with the links between rules, code and tests; empty if nothing is.
///
/// # Errors
/// When a source cannot be read.
pub fn broken_links(rules: &Rules, tests: &[Test]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for test in tests {
        for id in test.rules.iter().filter(|id| rules.get(id).is_none()) {
            wrong.push(format!("{} in {} names {id}, which is no rule", test.name, test.path));
        }
    }
    for place in code::places()? {
        for id in place.ids.iter().filter(|id| rules.get(id).is_none()) {
            wrong.push(format!("{} names ({id}), which is no rule", place.path));
        }
    }
    Ok(wrong)
}

/// Tests that the sources have and no program holds, and the other way round. `compiled` are the programs' tests with their
/// sources.
#[must_use]
pub fn missing<'a>(
    tests: &'a [Test],
    compiled: impl IntoIterator<Item = (&'a str, Option<&'a Test>)>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut held = BTreeSet::new();
    for (path, test) in compiled {
        match test {
            Some(test) => {
                held.insert(test);
            }
            None => wrong.push(format!("{path} is in no source")),
        }
    }
    for test in tests.iter().filter(|test| !test.rules.is_empty() && !held.contains(test)) {
        wrong.push(format!("{} in {} is compiled into no program", test.name, test.path));
    }
    wrong
}

/// How many rules came out how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All tests passed.
    pub passed: usize,
    /// Some did not, and what else is wrong.
    pub failed: usize,
    /// They do not apply.
    pub not_applicable: usize,
    /// They apply, and nothing here could show them.
    pub not_shown: usize,
    /// They apply, and are not kept yet.
    pub open: usize,
}

/// Counts rules and what else is wrong.
#[must_use]
pub fn count(rows: &[Row<'_>], wrong: &[String]) -> Counts {
    let mut counts = Counts { failed: wrong.len(), ..Counts::default() };
    for row in rows {
        match &row.verdict {
            Verdict::Passed => counts.passed += 1,
            Verdict::Failed(_) => counts.failed += 1,
            Verdict::Absent(Absent::NotApplicable(_)) => counts.not_applicable += 1,
            Verdict::Absent(Absent::NotShown(_)) => counts.not_shown += 1,
            Verdict::Absent(Absent::Open(_)) => counts.open += 1,
        }
    }
    counts
}

/// The table for a terminal.
///
/// # Errors
/// Never, but for writing into a string.
pub fn table(rows: &[Row<'_>]) -> Result<String> {
    let mut text = String::new();
    for row in rows {
        let (result, detail) = words(&row.verdict);
        writeln!(text, "{:<4}{:<7}{:<24} {}", row.rule.id, row.rule.level.as_str(), result, row.rule.text)?;
        for (means, names) in by_means(&row.tests) {
            for name in names {
                writeln!(text, "{:>35} {means}: {name}", "")?;
            }
        }
        if !detail.is_empty() {
            writeln!(text, "{:>35} {detail}", "")?;
        }
    }
    Ok(text)
}

/// The table as a document.
///
/// # Errors
/// Never, but for writing into a string.
pub fn markdown(rows: &[Row<'_>], core: &str, wrong: &[String]) -> Result<String> {
    let counts = count(rows, wrong);
    let mut text = format!(
        "# Conformance with Cluster API {core}\n\n{} passed, {} failed, {} not applicable, {} not shown here, {} open.\n\n\
         | rule | level | | how it was shown | result |\n| --- | --- | --- | --- | --- |\n",
        counts.passed, counts.failed, counts.not_applicable, counts.not_shown, counts.open
    );
    for row in rows {
        let (result, detail) = words(&row.verdict);
        let shown: Vec<String> = by_means(&row.tests)
            .into_iter()
            .map(|(means, names)| format!("{means}: {}", names.join(", ")))
            .collect();
        let result = if detail.is_empty() { result.to_owned() } else { format!("{result}: {detail}") };
        writeln!(
            text,
            "| {} | {} | {} | {} | {result} |",
            row.rule.id,
            row.rule.level.as_str().replace('*', "\\*"),
            row.rule.text,
            shown.join("<br>")
        )?;
    }
    for line in wrong {
        writeln!(text, "\nFAILED: {line}")?;
    }
    Ok(text)
}

fn words(verdict: &Verdict) -> (&'static str, &str) {
    match verdict {
        Verdict::Passed => ("passed", ""),
        Verdict::Failed(why) => ("FAILED", why),
        Verdict::Absent(absent) => (absent.verdict(), absent.reason()),
    }
}

fn by_means<'a>(tests: &[&'a Test]) -> BTreeMap<&'static str, Vec<&'a str>> {
    let mut by_means: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for test in tests {
        by_means.entry(test.means.as_str()).or_default().push(&test.name);
    }
    by_means
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rules::Level,
        shown::{Means, Runs},
    };

    fn rule(absent: Option<Absent>) -> Rule {
        Rule { id: "B6".to_owned(), level: Level::Must, text: "It holds.".to_owned(), absent }
    }

    fn test(name: &str) -> Test {
        Test {
            means: Means::Unit,
            path: "a.rs".to_owned(),
            name: name.to_owned(),
            runs: Runs::Always,
            rules: vec!["B6".to_owned()],
            pains: Vec::new(),
        }
    }

    #[test]
    fn a_rule_passes_only_if_all_its_tests_did() {
        let (one, two) = (test("one"), test("two"));
        let of = |rule: &Rule, tests: &[&Test], outcomes: &[(&Test, Outcome)]| {
            let outcomes = outcomes.iter().copied().collect();
            matches!(verdict(rule, tests, &outcomes), Verdict::Passed | Verdict::Absent(_))
        };
        let passed = (&one, Outcome::Passed);
        assert!(of(&rule(None), &[&one], &[passed]));
        assert!(of(&rule(None), &[&one, &two], &[passed, (&two, Outcome::Passed)]));
        assert!(!of(&rule(None), &[&one, &two], &[passed]), "one was not run");
        assert!(!of(&rule(None), &[&one, &two], &[passed, (&two, Outcome::Failed)]));
        assert!(!of(&rule(None), &[&one, &two], &[passed, (&two, Outcome::Ignored)]));
        assert!(!of(&rule(None), &[], &[]), "no test shows it");
        for absent in absences() {
            assert!(of(&rule(Some(absent.clone())), &[], &[]));
            assert!(!of(&rule(Some(absent)), &[&one], &[passed]), "a reason that is none any more");
        }
    }

    fn absences() -> [Absent; 3] {
        [Absent::NotApplicable, Absent::NotShown, Absent::Open].map(|absent| absent("why".to_owned()))
    }

    #[test]
    fn a_rule_that_no_test_shows_has_a_verdict_of_its_own_and_fails_no_run() {
        let rules = absences().map(|absent| rule(Some(absent)));
        let row = |rule| Row { rule, tests: Vec::new(), verdict: verdict(rule, &[], &BTreeMap::new()) };
        let rows: Vec<Row<'_>> = rules.iter().map(row).collect();
        let expected = Counts { not_applicable: 1, not_shown: 1, open: 1, ..Counts::default() };
        assert_eq!(count(&rows, &[]), expected);
        let table = table(&rows).unwrap();
        for words in ["not applicable", "applies, not shown here", "open"] {
            assert_eq!(table.lines().filter(|line| line.contains(words)).count(), 1, "{words}: {table}");
        }
    }

    #[test]
    fn a_reason_says_what_it_means_for_the_rule() {
        let rules = Rules::load().unwrap();
        let verdict = |id: &str| rules.get(id).and_then(|rule| rule.absent.as_ref()).map(Absent::verdict);
        assert_eq!(verdict("K15"), Some("applies, not shown here"));
        assert_eq!(verdict("A4"), Some("not applicable"));
        assert_eq!(verdict("B6"), None);
    }

    #[test]
    fn links_to_nowhere_are_found() {
        let rules = Rules { groups: Vec::new() };
        let tests = [test("one")];
        assert!(broken_links(&rules, &tests).unwrap()[0].contains("one in a.rs names B6"));
        assert_eq!(missing(&tests, [("two", None)]).len(), 2);
        assert_eq!(missing(&tests, [("one", Some(&tests[0]))]), [""; 0]);
    }
}
