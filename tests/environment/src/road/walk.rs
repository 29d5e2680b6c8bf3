//! The commands of README, one after the other.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    around::{Around, REGION, inputs},
    readme::{Block, blocks},
    stand_ins::{StandIns, more},
    steps::Session,
    table::Table,
};
use crate::{dump, say};

/// How long a command may take that is not one of README.
const ADDED: Duration = Duration::from_mins(11);

/// What shows that the providers did their parts, by client and action.
const MADE: [(&str, &str); 6] = [
    ("capa", "ec2:CreateVpc"),
    ("capa", "ec2:CreateSubnet"),
    ("capa", "ec2:AuthorizeSecurityGroupIngress"),
    ("capa", "ec2:RunInstances"),
    ("capasg", "autoscaling:CreateAutoScalingGroup"),
    ("capasg", "autoscaling:TerminateInstanceInAutoScalingGroup"),
];

/// How many lines of a failed command are shown.
const LINES: usize = 30;

/// Walks the road in `root`, the folder of this repository, and prints the table, the calls and what was corrected. The table is
/// also in `out/road.txt`.
///
/// # Errors
/// When a command of README fails, something is left in AWS, or a part of the environment does not start.
pub async fn walk(root: &Path) -> Result<()> {
    let page = fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
    let blocks = blocks(&page).context("README.md")?;
    ensure!(!blocks.is_empty(), "README.md has no marked commands");
    let around = Around::start().await?;
    let mut table = Table::default();
    let walked = {
        let mut stand_ins = StandIns::new(&around, root)?;
        let walked = commands(&around, root, &blocks, &mut stand_ins, &mut table).await;
        if walked.is_err() {
            keep(&around).await;
        }
        stand_ins.stop().await;
        walked
    };
    report(&around, root, &table).await?;
    walked?;
    let calls = around.moto.summary()?;
    for (client, action) in MADE {
        ensure!(calls.calls(client, action) > 0, "{client} made no {action}");
    }
    let left = around.moto.left(REGION).await?;
    println!("Left in AWS: {left}");
    ensure!(left.is_empty(), "something is left in AWS: {left}");
    around.management.stop().await
}

async fn commands(
    around: &Around,
    root: &Path,
    blocks: &[Block],
    stand_ins: &mut StandIns<'_>,
    table: &mut Table,
) -> Result<()> {
    let session = Session::new(root, around.run.path(), around.environment()?);
    let given = inputs();
    let mut failed: Option<anyhow::Error> = None;
    let mut used = BTreeSet::new();
    for block in blocks {
        used.extend(block.inputs.iter().map(String::as_str));
        if failed.is_none() && block.not_run.is_none() {
            failed = stand_ins.before(block, &session).await.err();
        }
        // Every input has a value of the road's by now.
        let own = block.without(&block.inputs.iter().map(String::as_str).collect()).commands()?;
        let added = more(&block.name).into_iter().map(|command| (false, command));
        for (is_own, command) in own.into_iter().map(|command| (true, command)).chain(added) {
            if let Some(why) = &block.not_run {
                table.not_run(block, &command, why);
                continue;
            }
            if failed.is_some() {
                table.not_reached(block, &command);
                continue;
            }
            println!("\n{} {}", if is_own { '$' } else { '+' }, command.trim_end());
            let ran = tokio::select! {
                ran = session.run(&command, if is_own { block.within } else { ADDED }) => ran?,
                error = stand_ins.failure() => {
                    failed = Some(error.context("a stand-in failed"));
                    table.not_reached(block, &command);
                    continue;
                }
            };
            print!("{}", ran.output);
            table.ran(block, is_own, &command, &ran);
            failed = match ran.failure {
                None => stand_ins.after(&block.name, &command, &session, table).await.err(),
                Some(failure) => {
                    let lines: Vec<&str> = ran.output.lines().collect();
                    let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
                    Some(anyhow::anyhow!("{} failed ({failure}): {end}", command.trim_end()))
                }
            };
        }
    }
    if let Some(name) = given.keys().find(|name| !used.contains(name.as_str())) {
        bail!("README.md has no input {name}");
    }
    failed.map_or(Ok(()), Err)
}

async fn report(around: &Around, root: &Path, table: &Table) -> Result<()> {
    println!("\n{table}");
    fs::write(root.join("out/road.txt"), table.to_string())?;
    println!("Calls that moto answered:\n\n{}", around.moto.summary()?);
    println!("Corrections of moto (tests/moto/README.md), with the number of uses:");
    for (name, uses) in around.moto.corrections().await? {
        println!("* {name}: {uses}");
    }
    println!();
    Ok(())
}

async fn keep(around: &Around) {
    let api = around.management.api();
    let servers = vec![(api.name().to_owned(), api.kubectl().clone())];
    match dump::write(&around.run, &servers, "road").await {
        Ok(folder) => say(&format!("objects, events and logs are in {}", folder.display())),
        Err(error) => say(&format!("failed to save objects, events and logs: {error:#}")),
    }
}
