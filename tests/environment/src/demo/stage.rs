//! What the demo looks like: headings, a few words, commands with their output; colours only on a terminal.

use std::{
    io::{IsTerminal as _, stdout},
    time::{Duration, Instant},
};

use anyhow::Result;
use capasg_environment::Runner;

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const CYAN: &str = "36";

/// How wide the words are set.
const WIDTH: usize = 100;

/// The output of the demo.
pub struct Stage {
    colours: bool,
    started: Instant,
    section_started: Instant,
}

impl Stage {
    pub fn new() -> Self {
        let now = Instant::now();
        Self { colours: stdout().is_terminal(), started: now, section_started: now }
    }

    /// How long the demo has run.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// A new section.
    pub fn section(&mut self, title: &str) {
        self.section_started = Instant::now();
        println!("\n{}", self.paint(BOLD, &format!("== {title}")));
    }

    /// Prints what happens and why.
    pub fn print(&self, words: &str) {
        for line in wrap(words, WIDTH).lines() {
            println!("{}", self.paint(DIM, line));
        }
    }

    /// A step was reached.
    pub fn reached(&self, what: &str) {
        let seconds = self.section_started.elapsed().as_secs_f32();
        println!("{} {what} {}", self.paint(GREEN, "ok"), self.paint(DIM, &format!("({seconds:.1} s)")));
    }

    /// What a command printed.
    pub fn show(&self, command: &str, output: &str) {
        println!("\n{}", self.paint(CYAN, &format!("$ {command}")));
        println!("{}\n", output.trim_end());
    }

    /// Runs a command and shows it with its output.
    ///
    /// `name` stands for the program and the options that say which cluster is meant.
    pub async fn run(&self, name: &str, runner: &Runner, args: &[&str]) -> Result<String> {
        let output = runner.run(args).await?;
        self.show(&format!("{name} {}", args.join(" ")), &output);
        Ok(output)
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn wrap(words: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in words.split_whitespace() {
        let line = lines.last().map_or(0, String::len);
        if line > 0 && line + 1 + word.len() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_set_in_lines() {
        assert_eq!(wrap("a bb ccc  dddd", 6), "a bb\nccc\ndddd");
        assert_eq!(wrap("", 6), "");
    }
}
