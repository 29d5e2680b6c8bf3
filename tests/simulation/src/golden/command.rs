//! `capasg-simulate --golden FIRST --seeds N --out FILE`: two hashes per seed; `--golden-trace SEED`: the hashed lines.

use std::{
    fs,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, bail};

use super::{RECORDER, Recorder, WITHOUT_FAULTS, WITHOUT_LIMITS};
use crate::simulation::{Options, Outcome, simulate};

#[derive(Default)]
struct Wanted {
    seeds: Vec<u64>,
    out: Option<String>,
    trace: Option<u64>,
    without_faults: bool,
    without_limits: bool,
    jobs: usize,
}

/// Does what is asked for, if it is about golden traces.
#[must_use]
pub fn main() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.iter().any(|argument| argument.starts_with("--golden")).then(|| {
        match wanted(&arguments).and_then(|wanted| run(&wanted)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error:#}");
                ExitCode::from(2)
            }
        }
    })
}

fn wanted(arguments: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted { jobs: 1, ..Wanted::default() };
    let (mut first, mut count) = (None, 1_u64);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--golden" => first = Some(value()?.parse::<u64>()?),
            "--seeds" => count = value()?.parse()?,
            "--golden-list" => {
                let list = fs::read_to_string(value()?)?;
                wanted.seeds = list.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            }
            "--golden-trace" => wanted.trace = Some(value()?.parse()?),
            "--out" => wanted.out = Some(value()?.clone()),
            "--jobs" => wanted.jobs = value()?.parse()?,
            "--without-faults" => wanted.without_faults = true,
            "--without-limits" => wanted.without_limits = true,
            _ => bail!(
                "unknown: {argument}; there are --golden FIRST --seeds N, --golden-list FILE, --golden-trace SEED, \
                 --out FILE, --without-faults, --without-limits and --jobs N"
            ),
        }
    }
    if let Some(first) = first {
        wanted.seeds = (first..first.saturating_add(count)).collect();
    }
    Ok(wanted)
}

fn run(wanted: &Wanted) -> Result<()> {
    // What panics is told as a violation of its seed.
    std::panic::set_hook(Box::new(|_| {}));
    if let Some(seed) = wanted.trace {
        let (outcome, recorder) = one(seed, wanted);
        for line in recorder.lines.iter().flatten() {
            print!("{line}");
        }
        println!("{}", result(&outcome, &recorder));
        return Ok(());
    }
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..wanted.jobs {
            scope.spawn(|| {
                while let Some(seed) = wanted.seeds.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let (outcome, recorder) = one(*seed, wanted);
                    if let Some(violation) = &outcome.violation {
                        println!(
                            "VIOLATION in seed {seed}: {}",
                            violation.lines().next().unwrap_or_default()
                        );
                    }
                    let result = result(&outcome, &recorder);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((*seed, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable();
    let text: String = results.into_iter().map(|(_, line)| line + "\n").collect();
    if let Some(out) = &wanted.out {
        return fs::write(out, text).with_context(|| out.clone());
    }
    print!("{text}");
    Ok(())
}

fn one(seed: u64, wanted: &Wanted) -> (Outcome, Recorder) {
    let lines = wanted.trace.is_some().then(Vec::new);
    RECORDER.set(Some(Recorder { lines, ..Recorder::default() }));
    WITHOUT_FAULTS.set(wanted.without_faults);
    WITHOUT_LIMITS.set(wanted.without_limits);
    let outcome = simulate(seed, Options::default());
    WITHOUT_FAULTS.set(false);
    WITHOUT_LIMITS.set(false);
    (outcome, RECORDER.take().unwrap_or_default())
}

fn result(outcome: &Outcome, recorder: &Recorder) -> String {
    let verdict = if outcome.violation.is_some() { "violation" } else { "ok" };
    let (writes, reads) = (recorder.writes.hex(), recorder.reads.hex());
    format!("{}  {writes}  {reads}  {}  {verdict}", outcome.seed, outcome.calls)
}
