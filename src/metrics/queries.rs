//! The queries of alerts and of the dashboard have results in a recorded run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{Look, free_port, loopback, wait_until};
use serde_json::Value;

use super::recording::{Scrape, record};

/// Prometheus opens a few hours of samples within seconds.
const SOON: Duration = Duration::from_mins(2);

static RUN: LazyLock<Vec<Scrape>> = LazyLock::new(|| record().unwrap());

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The title and the queries of each panel, with the values that Grafana would give the variables.
fn panels() -> Vec<(String, Vec<String>)> {
    let dashboard: Value = serde_json::from_str(&read("config/grafana/capasg.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let query = |target: &Value| {
        let mut query = target["expr"].as_str().unwrap().to_owned();
        for (variable, value) in
            [("$namespace", ".*"), ("$cluster", ".*"), ("$pool", ".*"), ("$__rate_interval", "5m")]
        {
            query = query.replace(variable, value);
        }
        assert!(!query.contains('$'), "a variable that the test does not know: {query}");
        // Without a result Grafana shows 0, so that the panel proves nothing.
        query.replace(" or vector(0)", "")
    };
    let queries = |panel: &Value| panel["targets"].as_array().unwrap().iter().map(query).collect();
    panels
        .filter(|panel| panel["type"] != "row")
        .map(|panel| (panel["title"].as_str().unwrap().to_owned(), queries(panel)))
        .collect()
}

/// The expression of each alert.
fn alerts() -> Vec<(String, String)> {
    let rules: Value = serde_saphyr::from_str(&read("config/prometheus/rules.yaml")).unwrap();
    let groups = rules["spec"]["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let text = |rule: &Value, field: &str| rule[field].as_str().unwrap().to_owned();
    rules.map(|rule| (text(rule, "alert"), text(rule, "expr"))).collect()
}

/// The names of metrics in a query.
fn names(query: &str) -> BTreeSet<&str> {
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("capasg_") || word.starts_with("process_")).collect()
}

#[test]
fn every_metric_in_a_query_is_in_a_scrape() {
    let scraped: BTreeSet<&str> = RUN
        .iter()
        .flat_map(|scrape| scrape.text.lines())
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let queries = panels()
        .into_iter()
        .flat_map(|(title, queries)| queries.into_iter().map(move |query| (title.clone(), query)));
    let mut checked = 0;
    for (title, query) in queries.chain(alerts()) {
        let names = names(&query);
        assert!(!names.is_empty(), "{title}: {query}");
        for name in names {
            assert!(scraped.contains(name), "{title}: {name} is in no scrape");
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked}");
}

/// The scrapes as `OpenMetrics` with times and the labels of the targets, for `promtool tsdb create-blocks-from openmetrics`.
/// As with `honorLabels`, the label `namespace` of an object stays.
fn with_times(run: &[Scrape]) -> String {
    let mut all = String::new();
    let mut described = BTreeSet::new();
    for Scrape { at, job, namespace, text } in run {
        for line in text.lines().filter(|line| *line != "# EOF") {
            if line.starts_with('#') {
                if described.insert(line) {
                    all.push_str(line);
                    all.push('\n');
                }
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let own = labels.trim_end_matches('}');
            let comma = if own.is_empty() { "" } else { "," };
            let of_target = if own.starts_with("namespace=") || own.contains(",namespace=") {
                String::new()
            } else {
                format!(",namespace=\"{namespace}\"")
            };
            let time = at.timestamp();
            let _ = writeln!(
                all,
                "{name}{{{own}{comma}job=\"{job}\",pod=\"{job}-0\"{of_target}}} {value} {time}"
            );
        }
    }
    all.push_str("# EOF\n");
    all
}

/// A Prometheus with the samples of the run.
struct Server {
    tool: PathBuf,
    port: u16,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    async fn start(run: &[Scrape]) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/tools-prometheus");
        let found = Command::new(script).stderr(Stdio::inherit()).output()?;
        ensure!(found.status.success(), "there is no Prometheus");
        let programs = PathBuf::from(String::from_utf8(found.stdout)?.trim());
        let folder = tempfile::tempdir()?;
        let (samples, config) = (folder.path().join("samples"), folder.path().join("prometheus.yaml"));
        fs::write(&samples, with_times(run))?;
        fs::write(&config, "global: {}\n")?;
        let (tool, data) = (programs.join("promtool"), folder.path().join("data"));
        let blocks = Command::new(&tool)
            .args(["tsdb", "create-blocks-from", "openmetrics", "--quiet"])
            .args([&samples, &data])
            .output()?;
        ensure!(blocks.status.success(), "{}", String::from_utf8_lossy(&blocks.stderr));
        let port = free_port()?;
        let process = Command::new(programs.join("prometheus"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = Self { tool, port, process, _folder: folder };
        wait_until(SOON, "Prometheus is ready", || async {
            let answer = loopback::get(server.port, "/-/ready").await;
            Ok(Look::when(answer.as_ref().is_ok_and(loopback::Answer::is_success), format!("{answer:?}")))
        })
        .await?;
        Ok(server)
    }

    /// The series that a query has at any time of the run, each with its last number.
    fn query(&self, query: &str, run: &[Scrape]) -> Result<Vec<String>> {
        let (first, last) = run.first().zip(run.last()).context("no scrape")?;
        let output = Command::new(&self.tool)
            .args(["query", "range", "--step=30s"])
            .arg(format!("--start={}", first.at.timestamp()))
            .arg(format!("--end={}", last.at.timestamp()))
            .args([&format!("http://127.0.0.1:{}", self.port), query])
            .output()?;
        ensure!(output.status.success(), "{query}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout)?;
        // A series is a line with its labels and `=>`, followed by a line for each value. One whose values are no numbers
        // shows nothing.
        let (mut labels, mut series) = ("", BTreeMap::new());
        for line in text.lines() {
            if let Some(next) = line.strip_suffix("=>") {
                labels = next.trim();
            } else if let Some(value) = line.split(' ').next().filter(|value| !["", "NaN"].contains(value)) {
                series.insert(labels, value);
            }
        }
        let series = series.into_iter().map(|(labels, value)| format!("{labels} = {value}")).collect();
        Ok(series)
    }
}

#[tokio::test]
#[ignore = "requires Prometheus (scripts/tools-prometheus)"]
async fn every_query_of_the_dashboard_has_a_result() {
    // The run has a runtime of its own, with a virtual clock.
    let run = std::thread::spawn(|| &*RUN).join().unwrap();
    let server = Server::start(run).await.unwrap();
    let mut empty = Vec::new();
    for (title, queries) in panels() {
        for query in queries {
            let series = server.query(&query, run).unwrap();
            println!(
                "{title}\n  {query}\n  -> {} series, {}",
                series.len(),
                series.first().map_or("none", |it| it)
            );
            if series.is_empty() {
                empty.push(format!("{title}: {query}"));
            }
        }
    }
    assert!(empty.is_empty(), "no result:\n{}", empty.join("\n"));
}
