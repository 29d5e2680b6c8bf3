//! Shows the rules of the contract, one by one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::ExitCode,
};

use anyhow::{Context as _, Result, ensure};
use capasg_conformance::{
    binaries::{self, Binary},
    document,
    pains::{self, Pains},
    results::{self, Counts},
    root,
    rules::Rules,
    run::{self, Options, Outcome},
    shown,
};
use clap::{Parser, Subcommand};

/// The rules of the contract: where each is kept, which tests show it, and whether they pass
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the tests of all rules and prints a table; ends with status 0 only if no rule failed
    Run {
        /// The version of Cluster API, for example v1.13.6
        #[arg(long)]
        core: Option<String>,
        /// Only these rules, for example D7,D8
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Only what needs no control plane: unit tests and simulations
        #[arg(long)]
        fast: bool,
        /// How many tests run at a time
        #[arg(long, default_value_t = 10)]
        threads: usize,
    },
    /// Runs a few tests of each kind
    Smoke {
        /// The version of Cluster API, for example v1.13.6
        #[arg(long)]
        core: String,
    },
    /// Prints docs/contract.md
    Contract,
    /// Prints docs/compared.md
    Compared,
}

fn main() -> ExitCode {
    match execute() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute() -> Result<bool> {
    let rules = Rules::load()?;
    match Arguments::parse().command {
        Command::Contract => {
            print!("{}", document::contract(&rules)?);
            Ok(true)
        }
        Command::Compared => {
            print!("{}", pains::compared(&Pains::load()?)?);
            Ok(true)
        }
        Command::Smoke { core } => smoke(&rules, core),
        Command::Run { core, only, fast, threads } => {
            run_rules(&rules, &only, &Options { core, threads, long: !fast, fast })
        }
    }
}

fn run_rules(rules: &Rules, only: &[String], options: &Options) -> Result<bool> {
    let unknown = only.iter().find(|id| rules.get(id).is_none());
    ensure!(unknown.is_none(), "there is no rule {}", unknown.map_or("", String::as_str));
    let wanted = |id: &str| only.is_empty() || only.iter().any(|one| one == id);
    let tests = shown::in_sources()?;
    let binaries = binaries::build(options.fast)?;
    let compiled: BTreeSet<&str> = binaries.iter().flat_map(Binary::showing_rules).collect();
    let mut wrong = results::broken_links(rules, &tests)?;
    let mut tests = tests;
    if options.fast {
        tests.retain(|name, _| compiled.contains(name.as_str()));
    } else {
        wrong.extend(results::missing(&tests, &compiled));
    }

    let mut outcomes: BTreeMap<String, Outcome> = BTreeMap::new();
    for binary in &binaries {
        let names: Vec<&str> = binary
            .showing_rules()
            .filter(|name| tests.get(*name).is_some_and(|test| test.ids.iter().any(|id| wanted(id))))
            .collect();
        if !names.is_empty() {
            outcomes.extend(run::run(binary, &names, options)?);
        }
    }

    let rows = results::judge(rules, &tests, &outcomes, |rule| wanted(&rule.id));
    let core = options.core.as_deref().unwrap_or("of the default version");
    let report = root().join("out").join(match &options.core {
        Some(core) => format!("conformance-{core}.md"),
        None => "conformance.md".to_owned(),
    });
    fs::create_dir_all(root().join("out"))?;
    fs::write(&report, results::markdown(&rows, core, &wrong)?)
        .with_context(|| format!("cannot write {}", report.display()))?;
    println!("\nRules, shown with Cluster API {core}; also in {}\n", report.display());
    print!("{}", results::table(&rows)?);
    for line in &wrong {
        println!("FAILED {line}");
    }
    let Counts { passed, failed, not_applicable } = results::count(&rows, &wrong);
    println!("\n{not_applicable} not applicable here, each with its reason above");
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn smoke(rules: &Rules, core: String) -> Result<bool> {
    let binaries = binaries::build(false)?;
    let options = Options { core: Some(core), threads: rules.smoke.len(), long: false, fast: false };
    let of_smoke = |binary: &&Binary| binary.name == "tests/e2e rules";
    let binary = binaries.iter().find(of_smoke).context("the tests on the real parts are gone")?;
    let names: Vec<&str> = rules.smoke.iter().map(String::as_str).collect();
    let gone = names.iter().find(|name| !binary.tests.contains_key(**name));
    ensure!(gone.is_none(), "there is no test {} for the smoke test", gone.unwrap_or(&""));
    let outcomes = run::run(binary, &names, &options)?;
    let passed = outcomes.values().filter(|outcome| **outcome == Outcome::Passed).count();
    println!("{passed} passed, {} failed", outcomes.len() - passed);
    Ok(passed == outcomes.len())
}
