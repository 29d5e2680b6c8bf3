//! The phrases that the check rejects, on samples.

use super::{Phrases, Text, definitions, markdown, program};

const LIST: &str = "
banned:
- {phrases: [told, look, look again], say: report or requeue}
allowed:
- {path: a.md, text: \"as he was told\", reason: a quotation}
";

/// The phrases that are found in texts.
fn found(texts: &[Text]) -> Vec<String> {
    let phrases: Phrases = serde_saphyr::from_str(LIST).expect("the list is one");
    texts.iter().flat_map(|text| phrases.in_text(text)).map(|finding| finding.line).collect()
}

#[test]
fn whole_phrases_are_found_outside_of_code() {
    let document =
        "Users are Told.\n`told` {told} untold [x](told.md)\n```\ntold\n```\nLook  again, as he was told\n";
    let expected = [
        "a.md:1: \"told\" (report or requeue): Users are Told",
        "a.md:6: \"look again\" (report or requeue): Look again",
    ];
    assert_eq!(found(&markdown::texts("a.md", document)), expected);
}

#[test]
fn literals_errors_and_help_are_read_and_tests_are_not() {
    let source = "
        /// Not told to users.
        fn f() { event(\"is told\"); info!(told, \"also {told} told\"); }
        #[derive(Args)] struct Flags {
            /// A flag that is told.
            flag: bool }
        #[derive(Error)] enum Failure { #[error(\"not told\")] One }
        #[cfg(test)] mod tests { fn f() { event(\"told\"); } }
        #[test] fn t() { event(\"told\"); }
    ";
    let lines = found(&program::texts("a.rs", source).expect("the sample is Rust"));
    let places: Vec<&str> = lines.iter().map(|line| &line[..7]).collect();
    assert_eq!(places, ["a.rs:3:", "a.rs:3:", "a.rs:5:", "a.rs:7:"]);
    assert_eq!(program::texts("a/tests/b.rs", source).expect("nothing is read"), []);
}

#[test]
fn descriptions_and_messages_of_definitions_are_read() {
    let yaml = "spec:\n  versions:\n  - schema: {openAPIV3Schema: {properties: {spec: {description: \"Is told.\",\n      \
                properties: {told: {x-kubernetes-validations: [{message: told, rule: told}]}}}}}}\n";
    let lines = found(&definitions::texts("a.yaml", yaml).expect("the sample is YAML"));
    let expected = [
        "a.yaml:spec.spec: \"told\" (report or requeue): Is told",
        "a.yaml:spec.spec.told.x-kubernetes-validations: \"told\" (report or requeue): told",
    ];
    assert_eq!(lines, expected);
}
