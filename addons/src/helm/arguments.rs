//! The arguments of each call of Helm. Files have fixed names in the private folder that Helm runs in, and positional
//! arguments follow `--`, so that no argument contains a secret or is taken for a flag.

use std::collections::BTreeMap;

use super::{
    access::Verification,
    files::{AUTHORITY, CHART, DOWNLOADS, KUBECONFIG, REPOSITORY, VALUES},
    names::{ChartName, Namespace, ReleaseName, Version},
    repository::Repository,
    time_limit::TimeLimit,
};
use crate::kinds::HelmOptions;

/// Which release in the workload cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseKey {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: ReleaseName,
}

/// Labels of a release.
pub type Labels = BTreeMap<String, String>;

/// `helm repo update`: downloads the index of a chart repository.
pub(super) fn update_index() -> Vec<String> {
    call("repo", &["update", "--fail-on-repo-update-fail"], &[REPOSITORY])
}

/// `helm pull`: downloads the chart.
pub(super) fn pull(
    repository: &Repository,
    chart: &ChartName,
    version: Option<&Version>,
    verification: &Verification,
) -> Vec<String> {
    let mut flags = vec![format!("--destination={DOWNLOADS}")];
    flags.extend(version.map(|version| format!("--version={version}")));
    flags.extend(verification.authority.as_ref().map(|_| format!("--ca-file={AUTHORITY}")));
    set(&mut flags, verification.is_skipped, "--insecure-skip-tls-verify");
    let reference = match repository {
        Repository::Index { .. } => format!("{REPOSITORY}/{chart}"),
        Repository::Registry { url } => format!("{url}/{chart}"),
    };
    call("pull", &flags, &[&reference])
}

/// `helm show chart`: the metadata of the chart that was pulled, as YAML.
pub(super) fn show() -> Vec<String> {
    call("show", &["chart"], &[CHART])
}

/// `helm install`. `replaces` is set if the history of an uninstalled release remains.
pub(super) fn install(
    key: &ReleaseKey,
    options: &HelmOptions,
    limit: TimeLimit,
    labels: &Labels,
    replaces: bool,
) -> Vec<String> {
    let mut flags = in_cluster(key);
    apply(&mut flags, options, limit, labels);
    set(&mut flags, options.creates_namespace(), "--create-namespace");
    set(&mut flags, options.skip_crds == Some(true), "--skip-crds");
    set(&mut flags, replaces, "--replace");
    call("install", &flags, &[key.name.as_str(), CHART])
}

/// `helm upgrade`. Without options about values, the release has exactly the new ones: Helm alone would keep those of the
/// release if the new ones are empty.
pub(super) fn upgrade(
    key: &ReleaseKey,
    options: &HelmOptions,
    limit: TimeLimit,
    labels: &Labels,
) -> Vec<String> {
    let own = options.upgrade.clone().unwrap_or_default();
    let mut flags = in_cluster(key);
    apply(&mut flags, options, limit, labels);
    let values = match Merge::of(options) {
        Merge::Replace => "--reset-values",
        Merge::Reuse => "--reuse-values",
        Merge::ResetThenReuse => "--reset-then-reuse-values",
    };
    set(&mut flags, true, values);
    set(&mut flags, own.force == Some(true), "--force");
    set(&mut flags, own.recreate == Some(true), "--recreate-pods");
    set(&mut flags, own.cleanup_on_fail == Some(true), "--cleanup-on-fail");
    flags.push(format!("--history-max={}", options.max_history()));
    call("upgrade", &flags, &[key.name.as_str(), CHART])
}

/// `helm uninstall`. A release that does not exist is a success.
pub(super) fn uninstall(key: &ReleaseKey, options: &HelmOptions, limit: TimeLimit) -> Vec<String> {
    let own = options.uninstall.clone().unwrap_or_default();
    let mut flags = in_cluster(key);
    flags.push(format!("--timeout={}", limit.argument()));
    set(&mut flags, true, "--ignore-not-found");
    set(&mut flags, options.waits(), "--wait");
    set(&mut flags, options.disable_hooks == Some(true), "--no-hooks");
    set(&mut flags, own.keep_history == Some(true), "--keep-history");
    flags.extend(own.description.map(|text| format!("--description={text}")));
    call("uninstall", &flags, &[key.name.as_str()])
}

/// `helm status`: the current revision.
pub(super) fn status(key: &ReleaseKey) -> Vec<String> {
    read(key, "status", &[])
}

/// `helm history`: the last revisions.
pub(super) fn history(key: &ReleaseKey, revisions: u32) -> Vec<String> {
    read(key, "history", &[format!("--max={revisions}")])
}

/// `helm get values`: the values that users supplied.
pub(super) fn values(key: &ReleaseKey) -> Vec<String> {
    read(key, "get", &["values".to_owned()])
}

/// `helm get manifest`: the resources of the current revision, as YAML.
pub(super) fn manifest(key: &ReleaseKey) -> Vec<String> {
    let flags = [vec!["manifest".to_owned()], in_cluster(key)].concat();
    call("get", &flags, &[key.name.as_str()])
}

/// An installation or an upgrade of which the API server validates the resources, and which changes nothing.
pub(super) fn dry_run(mut operation: Vec<String>) -> Vec<String> {
    operation.insert(1, "--dry-run=server".to_owned());
    operation
}

/// What an upgrade does with the values of the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The release has the new values alone.
    Replace,
    /// The new values are merged into those of the release.
    Reuse,
    /// As `Reuse`, over the defaults of the new chart.
    ResetThenReuse,
}

impl Merge {
    /// What the options request. `resetValues` takes precedence, as in Helm.
    #[must_use]
    pub fn of(options: &HelmOptions) -> Self {
        let own = options.upgrade.clone().unwrap_or_default();
        match (own.reset_values, own.reuse_values, own.reset_then_reuse_values) {
            (Some(true), _, _) => Self::Replace,
            (_, Some(true), _) => Self::Reuse,
            (_, _, Some(true)) => Self::ResetThenReuse,
            _ => Self::Replace,
        }
    }
}

fn read(key: &ReleaseKey, command: &str, own: &[String]) -> Vec<String> {
    let mut flags = own.to_vec();
    flags.extend(in_cluster(key));
    set(&mut flags, true, "--output=json");
    call(command, &flags, &[key.name.as_str()])
}

fn in_cluster(key: &ReleaseKey) -> Vec<String> {
    vec![format!("--kubeconfig={KUBECONFIG}"), format!("--namespace={}", key.namespace)]
}

/// What installations and upgrades have in common.
fn apply(flags: &mut Vec<String>, options: &HelmOptions, limit: TimeLimit, labels: &Labels) {
    flags.push(format!("--values={VALUES}"));
    flags.push(format!("--timeout={}", limit.argument()));
    set(flags, true, "--output=json");
    if !labels.is_empty() {
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        flags.push(format!("--labels={}", labels.join(",")));
    }
    set(flags, options.waits(), "--wait");
    set(flags, options.wait_for_jobs == Some(true), "--wait-for-jobs");
    set(flags, options.atomic == Some(true), "--atomic");
    set(flags, options.disable_hooks == Some(true), "--no-hooks");
    set(flags, options.sub_notes == Some(true), "--render-subchart-notes");
    set(flags, options.disable_open_api_validation == Some(true), "--disable-openapi-validation");
    set(flags, options.take_ownership == Some(true), "--take-ownership");
}

fn set(flags: &mut Vec<String>, is_set: bool, flag: &str) {
    flags.extend(is_set.then(|| flag.to_owned()));
}

fn call(command: &str, flags: &[impl AsRef<str>], positional: &[&str]) -> Vec<String> {
    let flags = flags.iter().map(|flag| flag.as_ref().to_owned());
    let positional = positional.iter().map(|&one| one.to_owned());
    [command.to_owned()].into_iter().chain(flags).chain(["--".to_owned()]).chain(positional).collect()
}

#[cfg(test)]
mod tests;
