//! What became of each command.

use std::{fmt, time::Duration};

use super::{readme::Block, steps::Ran};

/// The width of the column of commands.
const WIDTH: usize = 90;

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed(String),
    /// With the reason.
    NotRun(String),
    NotReached,
}

#[derive(Debug, Clone)]
struct Row {
    block: String,
    command: String,
    outcome: Outcome,
    took: Duration,
}

/// The commands of README with their results.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    /// What stood in for something real, with the reason.
    stand_ins: Vec<(String, String)>,
}

impl Table {
    /// A command that ran; `own` if it is one of README.
    pub fn ran(&mut self, block: &Block, own: bool, command: &str, ran: &Ran) {
        let outcome = ran.failure.clone().map_or(Outcome::Passed, Outcome::Failed);
        self.push(block, command, outcome, ran.took);
        if let Some(row) = self.rows.last_mut().filter(|_| !own) {
            row.block.push_str(" +");
        }
    }

    /// A command that the road cannot run.
    pub fn not_run(&mut self, block: &Block, command: &str, why: &str) {
        self.push(block, command, Outcome::NotRun(why.to_owned()), Duration::ZERO);
    }

    /// A command after a failure.
    pub fn not_reached(&mut self, block: &Block, command: &str) {
        self.push(block, command, Outcome::NotReached, Duration::ZERO);
    }

    /// Something that is not as for a user.
    pub fn stands_in(&mut self, what: &str, instead_of: &str) {
        self.stand_ins.push((what.to_owned(), instead_of.to_owned()));
    }

    /// How many commands passed, failed, were not run, and were not reached.
    #[must_use]
    pub fn counts(&self) -> [usize; 4] {
        let count = |is: fn(&Outcome) -> bool| self.rows.iter().filter(|row| is(&row.outcome)).count();
        [
            count(|outcome| *outcome == Outcome::Passed),
            count(|outcome| matches!(outcome, Outcome::Failed(_))),
            count(|outcome| matches!(outcome, Outcome::NotRun(_))),
            count(|outcome| *outcome == Outcome::NotReached),
        ]
    }

    fn push(&mut self, block: &Block, command: &str, outcome: Outcome, took: Duration) {
        self.rows.push(Row { block: block.name.clone(), command: one_line(command), outcome, took });
    }
}

/// A command in one line, without its here-document.
fn one_line(command: &str) -> String {
    let first = command.lines().next().unwrap_or_default();
    let lines = if first.contains("<<") { first.to_owned() } else { command.replace("\\\n", " ") };
    let line = lines.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= WIDTH {
        return line;
    }
    line.chars().take(WIDTH - 3).chain("...".chars()).collect()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24} {:<WIDTH$} {:>7}  result", "block of README.md", "command", "seconds")?;
        for row in &self.rows {
            let (seconds, result) = match &row.outcome {
                Outcome::Passed => (format!("{:.1}", row.took.as_secs_f32()), "passed"),
                Outcome::Failed(_) => (format!("{:.1}", row.took.as_secs_f32()), "FAILED"),
                Outcome::NotRun(_) => ("-".to_owned(), "not run"),
                Outcome::NotReached => ("-".to_owned(), "not reached"),
            };
            write!(f, "{:<24} {:<WIDTH$} {seconds:>7}  {result}", row.block, row.command)?;
            match &row.outcome {
                Outcome::Failed(why) | Outcome::NotRun(why) => writeln!(f, ": {why}")?,
                Outcome::Passed | Outcome::NotReached => writeln!(f)?,
            }
        }
        writeln!(f, "+ added by the road, not in README.md")?;
        let [passed, failed, not_run, not_reached] = self.counts();
        writeln!(f, "{passed} passed, {failed} failed, {not_run} not run, {not_reached} not reached")?;
        writeln!(f, "\nWhat stood in:")?;
        self.stand_ins
            .iter()
            .try_for_each(|(what, instead_of)| writeln!(f, "* {what}, instead of {instead_of}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::readme::blocks;
    use super::*;

    #[test]
    fn what_did_not_run_is_no_success() {
        let page = "<!-- road: a; not run: no engine -->\n```sh\nrun\n```\n<!-- road: b -->\n```sh\ncat >x <<EOF\ny\nEOF\n```\n";
        let all = blocks(page).unwrap();
        let mut table = Table::default();
        table.not_run(&all[0], "run\n", "no engine");
        let took = Duration::from_millis(1500);
        table.ran(&all[1], true, &all[1].text, &Ran { failure: None, output: String::new(), took });
        table.ran(
            &all[1],
            false,
            "x \\\n  y\n",
            &Ran { failure: Some("exit status: 1".to_owned()), output: String::new(), took },
        );
        table.not_reached(&all[1], "z");
        table.stands_in("moto", "AWS");
        assert_eq!(table.counts(), [1, 1, 1, 1]);
        let text = table.to_string();
        let rows: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            rows[1..7],
            [
                "a run - not run: no engine",
                "b cat >x <<EOF 1.5 passed",
                "b + x y 1.5 FAILED: exit status: 1",
                "b z - not reached",
                "+ added by the road, not in README.md",
                "1 passed, 1 failed, 1 not run, 1 not reached",
            ]
        );
        assert!(text.ends_with("* moto, instead of AWS\n"));
    }
}
