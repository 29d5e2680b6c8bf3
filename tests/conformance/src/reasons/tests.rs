//! What becomes of comments, on samples.

use super::{constants, subject, text};

#[test]
fn a_comment_has_a_meaning_and_a_remedy() {
    let source = "//! Of the file.\n/// Outside.\npub const A: &str = \"A\";\n/// `Ready`, the summary.\npub mod ready {\n\
                  /// Two\n/// lines (H6).\n///\n/// Remedy: do\n/// this.\npub const B: &str = \"B\";\npub const N: u8 = 1;\n}\n";
    let modules = constants::modules(source).unwrap();
    let [file, ready] = modules.as_slice() else { panic!("{modules:?}") };
    assert_eq!((file.name.as_str(), file.constants.len()), ("", 1));
    assert_eq!((ready.name.as_str(), ready.title().unwrap().as_str()), ("ready", "Ready"));
    let [reason] = ready.constants.as_slice() else { panic!("{ready:?}") };
    assert_eq!(reason.value, "B");
    assert_eq!(reason.meaning().unwrap(), "Two lines (H6).");
    assert_eq!(reason.remedy().as_deref(), Some("Do this."));
    assert_eq!(file.constants[0].remedy(), None);
}

#[test]
fn tables_name_pages_and_no_rules() {
    assert_eq!(text("Too large (H6). Read back."), "Too large.");
    assert_eq!(
        text("Too large (H6), really (docs/users/none.md)."),
        "Too large, really ([`none.md`](../users/none.md))."
    );
    assert_eq!(
        text("See docs/iam-policy.json, or docs/reference/glossary.md."),
        "See [`iam-policy.json`](../iam-policy.json), or [Glossary](glossary.md)."
    );
}

#[test]
fn the_comment_of_a_condition_says_which_kinds_have_it() {
    assert_eq!(subject("Both kinds, negative: the end."), Some(("both", true, "The end.".to_owned())));
    assert_eq!(subject("Pool: it is so."), Some(("ASGMachinePool", false, "It is so.".to_owned())));
    assert_eq!(subject("On a pool: its name."), None);
}
