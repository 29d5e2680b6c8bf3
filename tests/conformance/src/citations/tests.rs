//! The citations that the check finds and rejects, on samples.

use super::{Paths, in_file};
use crate::tree::File;

fn broken(path: &str, text: &str) -> Vec<String> {
    let files =
        ["docs/a.md", "docs/b.md", "src/decide/capacity.rs", "src/decide/rolling.rs", "tests/x/one.patch"];
    let paths = Paths::new(files.map(str::to_owned).to_vec());
    let file = File { path: path.to_owned(), text: text.to_owned() };
    in_file(&file, &paths).into_iter().map(|(_, line, what)| format!("{line}: {what}")).collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let text = "# What it is, and why\n[x](b.md) [y](#what-it-is-and-why) [z](https://a.b/c) [s](../src)\n\
                [x](c.md) [y](#missing) [z](http://a.b/c)\n";
    let expected =
        ["3: there is no c.md", "3: docs/a.md has no heading #missing", "3: http://a.b/c is not https"];
    assert_eq!(broken("docs/a.md", text), expected);
}

#[test]
fn paths_in_backticks_exist() {
    let text = "`src/decide/capacity.rs` `decide/{capacity,rolling}.rs` `capacity.rs` `tests/<any>/*.patch` `src` `out/x.md`\n\
                `role/*` `a/b` `spec.rs is` `/src/x` `GET /readyz`\n```\n`src/none.rs`\n```\n\
                `src/none.rs` `decide/{capacity,none}.rs` `none.md` `src/other` `tests/*.rs`\n";
    let expected = [
        "6: there is no `src/none.rs`",
        "6: there is no `decide/{capacity,none}.rs`",
        "6: there is no `none.md`",
        "6: there is no `src/other`",
        "6: there is no `tests/*.rs`",
    ];
    assert_eq!(broken("docs/a.md", text), expected);
}

#[test]
fn comments_cite_documents_that_exist_and_no_sections() {
    let text = "/// See docs/a.md, `decide/capacity.rs` and RFC 9110, section 5.\nlet x = \"none.md\"; // (a.md)\n\
                /// As none.md says (`src/none.rs`).\n/// It is so (design section 4).\n// Design 4, \"Live\".\nlet y = \"http://none.md\";\n";
    let expected = [
        "3: there is no none.md",
        "3: there is no src/none.rs",
        "4: sections have no numbers here: section 4).",
        "5: sections have no numbers here: Design 4,",
    ];
    assert_eq!(broken("src/x.rs", text), expected);
    assert_eq!(broken("Makefile", "# See none.md\nx: # of none.md\n"), ["1: there is no none.md"]);
}
