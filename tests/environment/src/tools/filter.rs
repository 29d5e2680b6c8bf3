//! Programs of the tools that answer each line of JSON on their input with a line of JSON.

use std::{
    io::{BufRead as _, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// What the program answers to each of the questions, in their order. This blocks until it ends.
///
/// # Errors
/// When the program does not start, fails, or does not answer each question with JSON.
pub fn filter(program: &Path, questions: &[Value]) -> Result<Vec<Value>> {
    let name = program.display();
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let mut input = child.stdin.take().context("no input")?;
    // Both ends at once: a program may answer before it has read all.
    let output = std::thread::scope(|threads| {
        let writer =
            threads.spawn(move || questions.iter().try_for_each(|question| writeln!(input, "{question}")));
        let output = child.wait_with_output()?;
        // A program that fails closes its input: its status says more.
        let written = writer.join().map_err(|_| anyhow::anyhow!("writing to {name} panicked"))?;
        ensure!(output.status.success(), "{name} failed: {}", output.status);
        written.with_context(|| format!("cannot write to {name}"))?;
        Ok(output)
    })?;
    let answers: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect::<Result<_>>()
        .with_context(|| format!("{name} does not answer with JSON"))?;
    ensure!(
        answers.len() == questions.len(),
        "{name} gives {} answers to {}",
        answers.len(),
        questions.len()
    );
    Ok(answers)
}
