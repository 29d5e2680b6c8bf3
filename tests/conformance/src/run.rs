//! Running tests, and reading how they went.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result};

use crate::binaries::Binary;

/// How a test went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It held.
    Passed,
    /// It did not, or its program ended before it could tell.
    Failed,
    /// It was not run.
    Ignored,
}

/// How tests are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The version of Cluster API; none means the default one.
    pub core: Option<String>,
    /// How many at a time: they wait for the control plane far more than for the processor.
    pub threads: usize,
    /// Whether tests that have a long form take it.
    pub long: bool,
    /// Whether only those are run that need no control plane.
    pub fast: bool,
}

/// Runs tests of a program by their paths in it, and answers how each went.
///
/// # Errors
/// When the program cannot be started.
pub fn run(binary: &Binary, tests: &[&str], options: &Options) -> Result<BTreeMap<String, Outcome>> {
    let begun = Instant::now();
    eprintln!("\n== {}: {} tests", binary.name, tests.len());
    let mut command = Command::new(&binary.program);
    command.arg("--exact").arg(format!("--test-threads={}", options.threads));
    command.args(tests);
    command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder);
    if let Some(core) = &options.core {
        command.env("CAPASG_CORE", core);
    }
    if options.long {
        command.arg("--include-ignored").env("CAPASG_CONFORMANCE", "1");
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start it")?;
    let mut outcomes: BTreeMap<String, Outcome> =
        tests.iter().map(|path| ((*path).to_owned(), Outcome::Failed)).collect();
    let output = BufReader::new(child.stdout.take().context("no output")?);
    for line in output.split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if let Some((path, outcome)) = read(&line) {
            outcomes.insert(path, outcome);
        }
        eprintln!("{line}");
    }
    let status = child.wait()?;
    eprintln!("== {}: {status} after {} s", binary.name, begun.elapsed().as_secs());
    Ok(outcomes)
}

/// Reads `test a::b ... ok`.
fn read(line: &str) -> Option<(String, Outcome)> {
    let (path, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let path = path.strip_suffix(" - should panic").unwrap_or(path);
    let outcome = match result.split([',', ' ']).next()? {
        "ok" => Outcome::Passed,
        "ignored" => Outcome::Ignored,
        _ => Outcome::Failed,
    };
    Some((path.to_owned(), outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_from_the_lines_of_libtest() {
        assert_eq!(read("test a::b6_x ... ok"), Some(("a::b6_x".to_owned(), Outcome::Passed)));
        assert_eq!(read("test b6_x ... FAILED"), Some(("b6_x".to_owned(), Outcome::Failed)));
        assert_eq!(read("test a::b6_x ... ignored, why"), Some(("a::b6_x".to_owned(), Outcome::Ignored)));
        assert_eq!(read("test a::b6_x - should panic ... ok"), Some(("a::b6_x".to_owned(), Outcome::Passed)));
        assert_eq!(read("test result: ok. 7 passed"), None);
        assert_eq!(read("running 7 tests"), None);
    }
}
