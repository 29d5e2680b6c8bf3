//! Shows the rules of the contract, one by one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::ExitCode,
};

use anyhow::{Context as _, Result, ensure};
use capasg_conformance::{
    binaries, citations, document, modules,
    pains::{self, Pains},
    phrases::Phrases,
    reasons,
    results::{self, Counts},
    root,
    rules::Rules,
    run::{self, Options, Outcome},
    shown::{self, Runs, Test},
};
use clap::{Parser, Subcommand};

/// The rules of the contract: where each is implemented, which tests show it, and whether they pass
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the tests of all rules and prints a table; exits with status 0 only if no rule failed
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
    /// Prints docs/contributors/contract.md: a line for each rule
    Contract {
        /// With the code and the tests of each rule
        #[arg(long)]
        full: bool,
    },
    /// Prints docs/contributors/compared.md: a line for each problem of other systems
    Compared {
        /// With the tests of each
        #[arg(long)]
        full: bool,
    },
    /// Prints docs/reference/conditions.md: every reason of every condition
    Conditions,
    /// Prints docs/reference/kubernetes-events.md: every reason of events
    Events,
    /// Finds dependency cycles between modules, in the product crates or in the given crate
    Modules {
        /// A package, or all of them: `all`
        #[arg(long = "crate", value_name = "NAME")]
        package: Option<String>,
        /// Prints all modules with their dependencies, in topological order
        #[arg(long)]
        tree: bool,
    },
    /// Finds broken links, paths and citations
    Citations,
    /// Finds project-private phrases in user-facing text
    Phrases {
        /// Directories or files, from the root of the tree; all by default
        paths: Vec<String>,
    },
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
        Command::Contract { full } => {
            print!("{}", if full { document::full(&rules)? } else { document::summary(&rules)? });
            Ok(true)
        }
        Command::Compared { full } => {
            let pains = Pains::load()?;
            print!("{}", if full { pains::full(&pains)? } else { pains::summary(&pains)? });
            Ok(true)
        }
        Command::Conditions => {
            print!("{}", reasons::conditions()?);
            Ok(true)
        }
        Command::Events => {
            print!("{}", reasons::events()?);
            Ok(true)
        }
        Command::Citations => {
            let broken = citations::broken()?;
            for line in &broken {
                println!("{line}");
            }
            println!("{} found", broken.len());
            Ok(broken.is_empty())
        }
        Command::Phrases { paths } => show_phrases(&paths),
        Command::Modules { package, tree } => show_modules(package.as_deref(), tree),
        Command::Run { core, only, fast, threads } => {
            run_rules(&rules, &only, &Options { core, threads, long: !fast, fast })
        }
    }
}

fn run_rules(rules: &Rules, only: &[String], options: &Options) -> Result<bool> {
    let unknown = only.iter().find(|id| rules.get(id).is_none());
    ensure!(unknown.is_none(), "there is no rule {}", unknown.map_or("", String::as_str));
    let wanted = |id: &str| only.is_empty() || only.iter().any(|one| one == id);
    let all = shown::in_sources()?;
    let binaries = binaries::build(options.fast)?;
    let compiled = || binaries.iter().flat_map(|binary| binary.matched(&all));
    let mut wrong = results::broken_links(rules, &all)?;
    let mut tests = all.clone();
    let is_run = |test: &Test| match test.runs {
        Runs::Always => true,
        Runs::Long => options.long,
        Runs::OlderCore => options.long && options.core.is_some(),
    };
    tests.retain(&is_run);
    if options.fast {
        let held: BTreeSet<&Test> = compiled().filter_map(|(_, test)| test).collect();
        tests.retain(|test| held.contains(test));
    } else {
        wrong.extend(results::missing(&all, compiled()));
    }

    let mut outcomes: BTreeMap<&Test, Outcome> = BTreeMap::new();
    for binary in &binaries {
        let chosen: BTreeMap<&str, &Test> = binary
            .matched(&all)
            .filter_map(|(path, test)| Some((path, test?)))
            .filter(|(_, test)| is_run(test) && test.rules.iter().any(|id| wanted(id)))
            .collect();
        if !chosen.is_empty() {
            let paths: Vec<&str> = chosen.keys().copied().collect();
            for (path, outcome) in run::run(binary, &paths, options)? {
                outcomes.extend(chosen.get(path.as_str()).map(|test| (*test, outcome)));
            }
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
    for test in all.iter().filter(|test| !is_run(test) && test.rules.iter().any(|id| wanted(id))) {
        println!("ignored {}, which shows {}", test.name, test.rules.join(", "));
    }
    let Counts { passed, failed, not_applicable, not_shown, open } = results::count(&rows, &wrong);
    println!(
        "\n{not_applicable} not applicable, {not_shown} not shown here, {open} open, each with its reason above"
    );
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn show_modules(package: Option<&str>, tree: bool) -> Result<bool> {
    let targets = modules::targets()?;
    let chosen = |target: &&modules::Target| match package {
        None => target.product,
        Some("all") => true,
        Some(name) => target.package == name,
    };
    let chosen: Vec<_> = targets.iter().filter(chosen).collect();
    ensure!(!chosen.is_empty(), "there is no package {}", package.unwrap_or(""));
    let mut acyclic = true;
    for target in chosen {
        let graph = modules::graph(target)?;
        if tree {
            print!("{}\n{}\n", graph.name, graph.tree());
        }
        let cycles = graph.cycles_text();
        if cycles.is_empty() {
            println!("{}: {} modules without a cycle", graph.name, graph.modules.len());
        } else {
            acyclic = false;
            print!("{cycles}");
        }
    }
    Ok(acyclic)
}

fn show_phrases(paths: &[String]) -> Result<bool> {
    let mut found = Phrases::load()?.findings()?;
    found.retain(|finding| paths.is_empty() || paths.iter().any(|path| finding.path.starts_with(path)));
    for finding in &found {
        println!("{}", finding.line);
    }
    println!("{} found", found.len());
    Ok(found.is_empty())
}
