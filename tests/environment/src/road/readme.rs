//! The commands of README: fenced blocks, each marked by a comment that a browser does not show.
//!
//! A mark is the line before the block: `<!-- road: NAME; within: 10m; inputs: A B; not run: why; after: NAME -->`. All
//! attributes but the name are optional. `within` limits the time of each command (default: 2 minutes), `inputs` are variables
//! whose values come from the user, `not run` says why the road cannot run the block, and `after` moves it behind another one.

use std::{collections::BTreeSet, io::Write as _, process::Command, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};

/// How a mark begins and ends.
const MARK: (&str, &str) = ("<!-- road: ", " -->");
/// How the fence of commands begins.
const FENCE: &str = "```sh";
/// How long a command may take unless its mark says otherwise.
const WITHIN: Duration = Duration::from_mins(2);

/// A block of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its name, unique in the page.
    pub name: String,
    /// The number of its first line in the page, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// How long each command may take.
    pub within: Duration,
    /// The variables whose values come from the user.
    pub inputs: Vec<String>,
    /// Why the road does not run it.
    pub not_run: Option<String>,
    /// The block that it follows, if that is not the one before it in the page.
    pub after: Option<String>,
}

impl Block {
    fn marked(mark: &str, line: usize) -> Result<Self> {
        let mut parts = mark.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_owned();
        ensure!(
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
            "line {line}: the name {name:?} of a block is not in lower case"
        );
        let mut block = Self {
            name,
            line: line + 2,
            text: String::new(),
            within: WITHIN,
            inputs: Vec::new(),
            not_run: None,
            after: None,
        };
        // A reason may contain semicolons.
        let mut reason: Option<String> = None;
        for part in parts {
            match part.split_once(": ") {
                Some(("within", limit)) => {
                    let minutes = limit.strip_suffix('m').and_then(|minutes| minutes.parse().ok());
                    let minutes =
                        minutes.with_context(|| format!("line {line}: {limit} is not in minutes"))?;
                    block.within = Duration::from_mins(minutes);
                }
                Some(("inputs", names)) => block.inputs = names.split(' ').map(str::to_owned).collect(),
                Some(("after", name)) => block.after = Some(name.to_owned()),
                Some(("not run", why)) => reason = Some(why.to_owned()),
                _ => match &mut reason {
                    Some(reason) => *reason = format!("{reason}; {part}"),
                    None => bail!("line {line}: a mark has no attribute {part:?}"),
                },
            }
        }
        block.not_run = reason;
        Ok(block)
    }

    /// Its commands, each with the lines that belong to it, as bash reads them.
    ///
    /// # Errors
    /// When bash does not start, or the block ends within a command.
    pub fn commands(&self) -> Result<Vec<String>> {
        let mut commands = Vec::new();
        let mut command = String::new();
        for line in self.text.lines() {
            if command.is_empty() && line.trim().is_empty() {
                continue;
            }
            command.push_str(line);
            command.push('\n');
            if !line.ends_with('\\') && is_complete(&command)? {
                commands.push(std::mem::take(&mut command));
            }
        }
        ensure!(
            command.is_empty(),
            "line {}: the block {} ends within a command: {command}",
            self.line,
            self.name
        );
        Ok(commands)
    }

    /// Its text without the assignments of these variables, which have a value already.
    #[must_use]
    pub fn without(&self, given: &BTreeSet<&str>) -> Self {
        let is_given = |line: &&str| {
            let name = line.strip_prefix("export ").and_then(|rest| rest.split('=').next());
            name.is_some_and(|name| given.contains(name))
        };
        let lines: Vec<&str> = self.text.lines().filter(|line| !is_given(line)).collect();
        Self { text: lines.join("\n") + "\n", ..self.clone() }
    }

    /// The variables that it exports.
    #[must_use]
    pub fn exports(&self) -> BTreeSet<String> {
        let names = self.text.lines().filter_map(|line| line.strip_prefix("export ")?.split('=').next());
        names.map(str::to_owned).collect()
    }
}

/// Whether bash reads this as whole commands. It only warns of a here-document without its end.
fn is_complete(text: &str) -> Result<bool> {
    let mut bash = Command::new("bash")
        .args(["--norc", "-n"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .context("cannot start bash")?;
    bash.stdin.take().context("no standard input")?.write_all(text.as_bytes())?;
    let output = bash.wait_with_output()?;
    Ok(output.status.success() && output.stderr.is_empty())
}

/// The marked blocks of a page, in the order in which they run.
///
/// # Errors
/// When a mark is not followed by a block, has an unknown attribute or a name that is there twice, or is missing in the
/// section of a marked block.
pub fn blocks(page: &str) -> Result<Vec<Block>> {
    let lines: Vec<&str> = page.lines().collect();
    let mut found: Vec<Block> = Vec::new();
    let mut unmarked: Vec<usize> = Vec::new();
    // Whether a block of the section, which begins with `## `, has a mark; there, all must have one.
    let mut section = (false, Vec::new());
    let mut at = 0;
    while at < lines.len() {
        let mark = lines[at].strip_prefix(MARK.0).and_then(|rest| rest.strip_suffix(MARK.1));
        let begin = if let Some(mark) = mark {
            ensure!(lines.get(at + 1) == Some(&FENCE), "line {}: no block follows the mark", at + 1);
            let block = Block::marked(mark, at + 1)?;
            ensure!(
                found.iter().all(|other| other.name != block.name),
                "there are two blocks {}",
                block.name
            );
            found.push(block);
            section.0 = true;
            at + 2
        } else {
            if lines[at] == FENCE {
                section.1.push(at + 1);
            } else if lines[at].starts_with("## ") {
                let (has_marks, without) = std::mem::take(&mut section);
                unmarked.extend(without.into_iter().filter(|_| has_marks));
            }
            at += 1;
            continue;
        };
        let length = lines[begin..].iter().position(|line| *line == "```");
        let end = begin + length.with_context(|| format!("line {begin}: the block has no end"))?;
        if let Some(block) = found.last_mut() {
            block.text = lines[begin..end].join("\n") + "\n";
        }
        at = end + 1;
    }
    unmarked.extend(section.1.into_iter().filter(|_| section.0));
    ensure!(unmarked.is_empty(), "blocks without a mark, in lines {unmarked:?}");
    in_order(found)
}

fn in_order(found: Vec<Block>) -> Result<Vec<Block>> {
    let (moved, mut ordered): (Vec<Block>, Vec<Block>) =
        found.into_iter().partition(|block| block.after.is_some());
    for block in moved.into_iter().rev() {
        let place = ordered.iter().position(|other| Some(&other.name) == block.after.as_ref());
        let place = place.with_context(|| format!("{}: there is no block {:?}", block.name, block.after))?;
        ordered.insert(place + 1, block);
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
## One\n\n```sh\nmake demo\n```\n\n## Two\n\n<!-- road: first; inputs: A B; within: 10m -->\n```sh\nexport A=1\nexport C=3 # why\n\
cat > file <<EOF\na $A\n\nb\nEOF\nfoo \\\n  | bar '\n  x'\n```\n<!-- road: second; not run: no engine; none at all -->\n```sh\nrun\n```\n\
<!-- road: third; after: first -->\n```sh\nmore\n```\n";

    #[test]
    fn marked_blocks_are_found_in_order() {
        let all = blocks(PAGE).unwrap();
        let names: Vec<&str> = all.iter().map(|block| block.name.as_str()).collect();
        assert_eq!(names, ["first", "third", "second"]);
        assert_eq!((all[0].line, all[0].within, all[1].within), (11, Duration::from_mins(10), WITHIN));
        assert_eq!(all[0].inputs, ["A", "B"]);
        assert_eq!(all[2].not_run.as_deref(), Some("no engine; none at all"));
        assert_eq!(all[0].exports(), BTreeSet::from(["A".to_owned(), "C".to_owned()]));
    }

    /// A command that no machine of the tests can run is an exception; any other mark would hide a command that fails.
    #[test]
    fn few_blocks_of_readme_are_not_run() {
        let all = blocks(&repository("README.md")).unwrap();
        let not_run: BTreeSet<&str> =
            all.iter().filter(|block| block.not_run.is_some()).map(|block| block.name.as_str()).collect();
        let expected = [
            "management-cluster",
            "image",
            "upgrade-control-plane",
            "delete-management-cluster",
            "image-parameter",
        ];
        assert_eq!(not_run, BTreeSet::from(expected));
    }

    #[test]
    fn commands_are_separated_as_bash_reads_them() {
        let first = &blocks(PAGE).unwrap()[0];
        let expected = [
            "export A=1\n",
            "export C=3 # why\n",
            "cat > file <<EOF\na $A\n\nb\nEOF\n",
            "foo \\\n  | bar '\n  x'\n",
        ];
        assert_eq!(first.commands().unwrap(), expected);
        assert_eq!(first.without(&BTreeSet::from(["A"])).commands().unwrap(), expected[1..]);
        let open = Block { text: "cat <<EOF\na\n".to_owned(), ..first.clone() };
        assert!(open.commands().unwrap_err().to_string().contains("ends within a command"));
    }

    fn repository(path: &str) -> String {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn the_commands_of_readme_can_be_read() {
        let all = blocks(&repository("README.md")).unwrap();
        for name in ["iam", "init", "create", "scale", "upgrade", "delete"] {
            assert!(all.iter().any(|block| block.name == name && block.not_run.is_none()), "{name}");
        }
        let commands: Vec<String> = all.iter().flat_map(|block| block.commands().unwrap()).collect();
        assert!(commands.len() > 20, "{commands:?}");
        for block in &all {
            let exports = block.exports();
            let unknown = block.inputs.iter().find(|input| !exports.contains(*input));
            assert!(unknown.is_none(), "{} does not set its input {unknown:?}", block.name);
        }
    }

    #[test]
    fn readme_sets_every_variable_that_a_flavor_for_aws_requires() {
        let page = repository("README.md");
        let set: BTreeSet<String> = blocks(&page).unwrap().iter().flat_map(Block::exports).collect();
        // clusterctl sets these from its arguments.
        let given = ["CLUSTER_NAME", "NAMESPACE", "KUBERNETES_VERSION"].map(str::to_owned);
        for flavor in ["", "-vpc", "-topology", "-extension"] {
            let template = repository(&format!("templates/cluster-template{flavor}.yaml"));
            let variables = template.split("${").skip(1).filter_map(|rest| rest.split('}').next());
            for variable in variables.filter(|variable| !variable.contains(":=")) {
                assert!(
                    set.contains(variable) || given.contains(&variable.to_owned()),
                    "README.md does not set {variable}, which the flavor {flavor:?} requires"
                );
            }
        }
    }

    #[test]
    fn readme_names_the_versions_that_are_tested() {
        let page = repository("README.md");
        let version_in = |file: &str, module: &str| {
            let text = repository(file);
            let line = text.lines().find_map(|line| line.trim().strip_prefix(module)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{file} has no {module}")).split(' ').next().unwrap().to_owned()
        };
        let core = version_in("tests/tools/capi/go.mod", "sigs.k8s.io/cluster-api");
        let capa = version_in("tests/tools/capa/go.mod", "sigs.k8s.io/cluster-api-provider-aws/v2");
        let ours = concat!("export CAPASG_VERSION=v", env!("CARGO_PKG_VERSION"), "\n");
        for expected in [
            format!("cluster-api:{core}"),
            format!("kubeadm:{core}"),
            format!("aws:{capa},"),
            ours.to_owned(),
        ] {
            assert!(page.contains(&expected), "README.md does not contain {expected}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_page_is_named() {
        let said = |page: &str| blocks(page).unwrap_err().to_string();
        assert!(said("<!-- road: a -->\ntext\n").contains("no block follows"));
        assert!(said("<!-- road: a; until: 5m -->\n```sh\n```\n").contains("no attribute \"until: 5m\""));
        assert!(said("<!-- road: a; within: 5 -->\n```sh\n```\n").contains("not in minutes"));
        assert!(said("<!-- road: a; after: b -->\n```sh\n```\n").contains("there is no block"));
        assert!(
            said("<!-- road: a -->\n```sh\n```\n<!-- road: a -->\n```sh\n```\n").contains("two blocks a")
        );
        assert!(said("<!-- road: a -->\n```sh\n```\n\n```sh\nb\n```\n").contains("lines [5]"));
    }
}
