//! Alerts: each has a runbook page and a test, and promtool accepts all.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use serde_json::{Value, json};

use super::{documents, read, root};

const RULES: &str = "config/prometheus/rules.yaml";
const TESTS: &str = "tests/observability/alerts.yaml";
/// Where the pages are that `runbook_url` names.
const PAGES: &str = "docs/users/runbooks";

fn groups() -> Value {
    let [rules] = &documents(&read(RULES))[..] else { panic!("one PrometheusRule") };
    assert_eq!(rules["kind"], "PrometheusRule");
    rules["spec"].clone()
}

fn rules() -> Vec<Value> {
    let groups = groups();
    let groups = groups["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

#[test]
fn every_alert_has_a_severity_texts_and_a_runbook_page() {
    let index = read(&format!("{PAGES}/README.md"));
    let mut pages = BTreeSet::from(["README.md".to_owned()]);
    for rule in rules() {
        let name = rule["alert"].as_str().unwrap();
        let severity = rule["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}");
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].as_str().unwrap().ends_with('.'), "{name}: {text}");
        }
        let page = format!("{PAGES}/{name}.md");
        let url = rule["annotations"]["runbook_url"].as_str().unwrap();
        assert_eq!(url, format!("{}/blob/main/{page}", env!("CARGO_PKG_REPOSITORY")));
        let text = read(&page);
        assert!(text.starts_with(&format!("# {name}\n\nSeverity: {severity}.")), "{page}");
        for heading in ["## Impact", "## Diagnosis", "## Remedy"] {
            assert!(text.contains(&format!("\n{heading}\n")), "{page}: {heading}");
        }
        assert!(
            index.contains(&format!("| [{name}]({name}.md) | {severity} |")),
            "{name} is not in the index"
        );
        assert!(pages.insert(format!("{name}.md")), "{name} twice");
    }
    let found: BTreeSet<String> = fs::read_dir(root().join(PAGES))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, pages);
}

#[test]
fn every_alert_has_a_test_that_raises_it_and_one_that_does_not() {
    let [tests] = &documents(&read(TESTS))[..] else { panic!("one document") };
    for rule in rules() {
        let name = &rule["alert"];
        let cases: Vec<&Value> = tests["tests"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|test| test["alert_rule_test"].as_array().unwrap())
            .filter(|case| case["alertname"] == *name)
            .collect();
        let raised = |case: &&&Value| !case["exp_alerts"].as_array().unwrap().is_empty();
        assert!(cases.iter().any(|case| raised(&case)), "{name} is never raised");
        assert!(cases.iter().any(|case| !raised(&case)), "{name} is always raised");
    }
}

fn promtool() -> PathBuf {
    let output = Command::new(root().join("scripts/tools-prometheus")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).join("promtool")
}

#[test]
#[ignore = "requires Prometheus (scripts/tools-prometheus)"]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    // YAML contains JSON.
    fs::write(file("rules.yaml"), json!(groups()).to_string()).unwrap();
    fs::write(file("alerts.yaml"), read(TESTS)).unwrap();
    let promtool = promtool();
    for (arguments, input) in
        [(["check", "rules"].as_slice(), "rules.yaml"), (&["test", "rules"], "alerts.yaml")]
    {
        let output = Command::new(&promtool).args(arguments).arg(file(input)).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        println!("{said}");
        assert!(output.status.success() && said.contains("SUCCESS"), "{said}");
    }
}
