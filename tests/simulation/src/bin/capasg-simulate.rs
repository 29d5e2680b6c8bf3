//! `make simulate`: runs seeds on all processors, and shows what happened where a rule was broken.

use std::{
    io::Write,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use capasg_simulation::simulation::{Options, Outcome, simulate, simulate_moves, tally};

/// What is asked for.
#[expect(clippy::struct_excessive_bools, reason = "one for each option of the command line")]
struct Wanted {
    seeds: u64,
    first: u64,
    /// The whole story of one seed.
    trace: Option<u64>,
    /// Kill the process at each call of these seeds' runs.
    kills: bool,
    kill: Option<usize>,
    /// Stop at the first failure.
    first_only: bool,
    /// Only tell how often what occurs.
    tally: bool,
    /// Move a pool between two management clusters.
    moves: bool,
    /// Calls take no time, so that every reconcile runs whole at one instant.
    uninterrupted: bool,
    jobs: usize,
}

impl Wanted {
    fn options(&self, kill: Option<usize>) -> Options {
        Options { record: false, kill, interruptions: !self.uninterrupted }
    }

    /// Lives through one story of a seed.
    fn simulate(&self, seed: u64, options: Options) -> Outcome {
        if self.moves { simulate_moves(seed, options.interruptions) } else { simulate(seed, options) }
    }
}

/// Of more failures than this the story is not shown.
const SHOWN: usize = 10;
/// More lines than this are cut from the beginning of a trace.
const LINES: usize = 400;

fn main() -> ExitCode {
    match wanted().and_then(|wanted| run(&wanted)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

fn wanted() -> Result<Wanted> {
    let jobs = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut wanted = Wanted {
        seeds: 2000,
        first: 0,
        trace: None,
        kills: false,
        kill: None,
        first_only: false,
        tally: false,
        moves: false,
        uninterrupted: false,
        jobs,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--seeds" => wanted.seeds = value()?.parse()?,
            "--first" => wanted.first = value()?.parse()?,
            "--trace" => wanted.trace = Some(value()?.parse()?),
            "--kill" => wanted.kill = Some(value()?.parse()?),
            "--jobs" => wanted.jobs = value()?.parse()?,
            "--kills" => wanted.kills = true,
            "--first-only" => wanted.first_only = true,
            "--tally" => wanted.tally = true,
            "--moves" => wanted.moves = true,
            "--uninterrupted" => wanted.uninterrupted = true,
            _ => bail!(
                "unknown argument {argument}; supported are --seeds N, --first S, --trace SEED, --kill CALL, \
                 --kills, --first-only, --tally, --moves, --uninterrupted and --jobs N"
            ),
        }
    }
    if wanted.moves && (wanted.kills || wanted.kill.is_some() || wanted.tally) {
        bail!("--moves cannot be combined with --kill, --kills and --tally");
    }
    Ok(wanted)
}

fn run(wanted: &Wanted) -> Result<usize> {
    // What panics is told as a violation of its seed.
    std::panic::set_hook(Box::new(|_| {}));
    if wanted.tally {
        print!("{}", tally(wanted.first, wanted.seeds, !wanted.uninterrupted));
        return Ok(0);
    }
    match wanted.trace {
        Some(seed) => {
            let outcome = wanted.simulate(seed, Options { record: true, ..wanted.options(wanted.kill) });
            let mut out = std::io::stdout().lock();
            write!(out, "{}", outcome.trace)?;
            match &outcome.violation {
                Some(violation) => writeln!(out, "VIOLATION in seed {seed}: {violation}")?,
                None => writeln!(out, "seed {seed}: no violation in {} virtual seconds", outcome.seconds)?,
            }
            Ok(usize::from(outcome.violation.is_some()))
        }
        None => Ok(many(wanted)),
    }
}

/// What was seen so far.
#[derive(Default)]
struct Tally {
    done: AtomicU64,
    runs: AtomicU64,
    violations: AtomicUsize,
    virtual_seconds: AtomicU64,
    first: Mutex<Option<u64>>,
}

fn many(wanted: &Wanted) -> usize {
    let (tally, next, begun) = (Tally::default(), AtomicU64::new(0), Instant::now());
    thread::scope(|scope| {
        for _ in 0..wanted.jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::SeqCst);
                    if index >= wanted.seeds
                        || wanted.first_only && tally.violations.load(Ordering::SeqCst) > 0
                    {
                        return;
                    }
                    one(wanted.first + index, wanted, &tally);
                    tally.done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        scope.spawn(|| progress(wanted, &tally, begun));
    });
    let violations = tally.violations.load(Ordering::SeqCst);
    let (done, runs) = (tally.done.load(Ordering::SeqCst), tally.runs.load(Ordering::SeqCst));
    let seconds = begun.elapsed().as_secs_f64();
    let hours = tally.virtual_seconds.load(Ordering::SeqCst) / 3600;
    println!(
        "{done} seeds from {} ({runs} runs, {hours} virtual hours) in {seconds:.0} s, {} a second: {violations} violations",
        wanted.first,
        rate(done, seconds)
    );
    if let Some(first) = *tally.first.lock().unwrap_or_else(PoisonError::into_inner) {
        println!("caught first by seed {first}, after {} seeds", first - wanted.first + 1);
    }
    violations
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(done: u64, seconds: f64) -> String {
    format!("{:.1}", done as f64 / seconds.max(0.001))
}

fn progress(wanted: &Wanted, tally: &Tally, begun: Instant) {
    let mut told = Instant::now();
    loop {
        let done = tally.done.load(Ordering::SeqCst);
        let stopped = wanted.first_only && tally.violations.load(Ordering::SeqCst) > 0;
        if done >= wanted.seeds || stopped {
            return;
        }
        if told.elapsed() >= Duration::from_secs(20) {
            told = Instant::now();
            println!(
                "{done} of {} seeds, {} a second, {} violations",
                wanted.seeds,
                rate(done, begun.elapsed().as_secs_f64()),
                tally.violations.load(Ordering::SeqCst)
            );
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// One seed; with kills, once more for each of its calls.
fn one(seed: u64, wanted: &Wanted, tally: &Tally) {
    let options = wanted.options(wanted.kill);
    let base = wanted.simulate(seed, options);
    let calls = base.calls;
    count(base, options, wanted, tally);
    if wanted.kills {
        for call in 1..=calls {
            let options = wanted.options(Some(call));
            count(simulate(seed, options), options, wanted, tally);
        }
    }
}

fn count(outcome: Outcome, options: Options, wanted: &Wanted, tally: &Tally) {
    tally.runs.fetch_add(1, Ordering::SeqCst);
    tally.virtual_seconds.fetch_add(outcome.seconds.unsigned_abs(), Ordering::SeqCst);
    let Some(violation) = outcome.violation else { return };
    let shown = tally.violations.fetch_add(1, Ordering::SeqCst);
    {
        let mut first = tally.first.lock().unwrap_or_else(PoisonError::into_inner);
        *first = Some(first.map_or(outcome.seed, |first| first.min(outcome.seed)));
    }
    if shown >= SHOWN {
        let words: String = violation.chars().take(160).collect();
        println!("VIOLATION in seed {}: {words}", outcome.seed);
        return;
    }
    // The same again, line by line.
    let again = wanted.simulate(outcome.seed, Options { record: true, ..options });
    let text = again.trace.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let mut told = String::new();
    let cut = lines.len().saturating_sub(LINES);
    if cut > 0 {
        let _ = std::fmt::Write::write_fmt(&mut told, format_args!("  ({cut} lines before)\n"));
    }
    for line in lines.get(cut..).unwrap_or_default() {
        told.push_str(line);
        told.push('\n');
    }
    let kill = options.kill.map(|call| format!(" KILL={call}")).unwrap_or_default();
    let moves = if wanted.moves { " MOVES=1" } else { "" };
    let uninterrupted = if wanted.uninterrupted { " UNINTERRUPTED=1" } else { "" };
    println!(
        "VIOLATION in seed {}: {violation}\n{told}to see it again: make simulate SEED={}{kill}{moves}{uninterrupted}\n",
        outcome.seed, outcome.seed
    );
}
