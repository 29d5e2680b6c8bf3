//! Subjects of commits fit into a line.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use capasg_conformance::root;

/// The commits after this one are checked; older ones are longer.
const BASE: &str = "03542a8ca6d1fc22dcc630e1897c4e68ea1b6585";

/// The longest subject, in characters.
const LONGEST: usize = 72;

#[test]
fn subjects_have_at_most_72_characters() -> Result<()> {
    if !root().join(".git").exists() {
        eprintln!("this is no clone: there are no commits to check");
        return Ok(());
    }
    // A shallow clone may have the last commits alone.
    let shallow = git(&["rev-parse", "--is-shallow-repository"])?.trim() == "true";
    let range = if shallow && git(&["cat-file", "-e", BASE]).is_err() {
        "HEAD".to_owned()
    } else {
        format!("{BASE}..HEAD")
    };
    let wrong = too_long(&git(&["log", "--no-merges", "--format=%h %s", &range])?);
    ensure!(wrong.is_empty(), "subjects longer than {LONGEST} characters:\n{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn a_subject_of_73_characters_is_too_long() {
    let (fits, long) = ("x".repeat(72), "ä".repeat(73));
    assert_eq!(too_long(&format!("0123456 {fits}\n89abcde {long}\n")), [format!("89abcde {long}")]);
}

/// The lines, each a hash and a subject, whose subject is too long.
fn too_long(log: &str) -> Vec<String> {
    let subject =
        |line: &&str| line.split_once(' ').is_some_and(|(_, subject)| subject.chars().count() > LONGEST);
    log.lines().filter(subject).map(str::to_owned).collect()
}

fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .current_dir(root())
        .args(["-c", "safe.directory=*"])
        .args(arguments)
        .output()
        .context("cannot start git")?;
    ensure!(
        output.status.success(),
        "git {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}
