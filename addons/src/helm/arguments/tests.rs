//! The arguments of each call, by cases and by properties.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::helm::repository::PlainHttp;

fn key() -> ReleaseKey {
    ReleaseKey {
        namespace: Namespace::parse("kube-system").unwrap(),
        name: ReleaseName::parse("cni").unwrap(),
    }
}

fn options(value: serde_json::Value) -> HelmOptions {
    serde_json::from_value(value).unwrap()
}

fn limit() -> TimeLimit {
    TimeLimit::parse("10m0s").unwrap()
}

fn labels() -> Labels {
    [("a.example/b".to_owned(), "c".to_owned()), ("d".to_owned(), "e".to_owned())].into()
}

#[test]
fn an_installation_without_options_has_the_defaults() {
    assert_eq!(
        install(&key(), &HelmOptions::default(), limit(), &labels(), false).join(" "),
        "install --kubeconfig=kubeconfig --namespace=kube-system --values=values.json --timeout=600000ms \
         --output=json --labels=a.example/b=c,d=e --create-namespace -- cni chart.tgz"
    );
}

#[test]
fn an_upgrade_without_options_has_exactly_the_new_values() {
    assert_eq!(
        upgrade(&key(), &HelmOptions::default(), limit(), &Labels::new()).join(" "),
        "upgrade --kubeconfig=kubeconfig --namespace=kube-system --values=values.json --timeout=600000ms \
         --output=json --reset-values --history-max=10 -- cni chart.tgz"
    );
}

#[test]
fn a_dry_run_is_the_same_call_with_a_flag() {
    assert_eq!(
        manifest(&key()).join(" "),
        "get manifest --kubeconfig=kubeconfig --namespace=kube-system -- cni"
    );
    let upgrade = upgrade(&key(), &HelmOptions::default(), limit(), &Labels::new());
    let expected = upgrade.join(" ").replace("upgrade ", "upgrade --dry-run=server ");
    assert_eq!(dry_run(upgrade).join(" "), expected);
}

#[test]
fn every_option_has_its_flag() {
    let all = options(json!({
        "disableHooks": true, "wait": true, "waitForJobs": true, "skipCRDs": true, "options": true,
        "disableOpenAPIValidation": true, "atomic": true, "takeOwnership": true,
        "install": {"createNamespace": false},
        "upgrade": {"force": true, "recreate": true, "maxHistory": 0, "cleanupOnFail": true, "reuseValues": true},
        "uninstall": {"keepHistory": true, "description": "--not a flag"},
    }));
    let common = "--wait --wait-for-jobs --atomic --no-hooks --render-subchart-notes \
                  --disable-openapi-validation --take-ownership";
    let installed = install(&key(), &all, limit(), &Labels::new(), true).join(" ");
    assert!(installed.ends_with(&format!("{common} --skip-crds --replace -- cni chart.tgz")), "{installed}");
    let upgraded = upgrade(&key(), &all, limit(), &Labels::new()).join(" ");
    let own = "--reuse-values --force --recreate-pods --cleanup-on-fail --history-max=0 -- cni chart.tgz";
    assert!(upgraded.ends_with(&format!("{common} {own}")), "{upgraded}");
    let uninstalled = uninstall(&key(), &all, limit());
    assert!(uninstalled.contains(&"--description=--not a flag".to_owned()), "{uninstalled:?}");
    assert_eq!(
        uninstalled.join(" "),
        "uninstall --kubeconfig=kubeconfig --namespace=kube-system --timeout=600000ms --ignore-not-found --wait \
         --no-hooks --keep-history --description=--not a flag -- cni"
    );
}

#[test]
fn reset_values_takes_precedence() {
    let both = options(json!({"upgrade": {"resetValues": true, "reuseValues": true}}));
    assert_eq!(Merge::of(&both), Merge::Replace);
    let one = options(json!({"upgrade": {"resetThenReuseValues": true}}));
    assert_eq!(Merge::of(&one), Merge::ResetThenReuse);
    let flags = upgrade(&key(), &one, limit(), &Labels::new());
    assert!(flags.contains(&"--reset-then-reuse-values".to_owned()), "{flags:?}");
}

#[test]
fn charts_are_pulled_by_the_name_of_the_repository_or_from_the_registry() {
    let chart = ChartName::parse("cilium").unwrap();
    let version = Version::parse("^1.17").unwrap();
    let index = Repository::parse("https://charts.example", PlainHttp::Rejected).unwrap();
    assert_eq!(
        pull(&index, &chart, Some(&version), &Verification::default()).join(" "),
        "pull --destination=downloads --version=^1.17 -- repository/cilium"
    );
    assert_eq!(update_index().join(" "), "repo update --fail-on-repo-update-fail -- repository");
    let registry = Repository::parse("oci://registry.example/charts", PlainHttp::Rejected).unwrap();
    let verification = Verification { authority: Some("PEM".to_owned()), is_skipped: true };
    assert_eq!(
        pull(&registry, &chart, None, &verification).join(" "),
        "pull --destination=downloads --ca-file=ca.crt --insecure-skip-tls-verify -- \
         oci://registry.example/charts/cilium"
    );
}

#[test]
fn reads_print_json() {
    let end = "--kubeconfig=kubeconfig --namespace=kube-system --output=json -- cni";
    assert_eq!(status(&key()).join(" "), format!("status {end}"));
    assert_eq!(history(&key(), 5).join(" "), format!("history --max=5 {end}"));
    assert_eq!(values(&key()).join(" "), format!("get values {end}"));
    assert_eq!(show().join(" "), "show chart -- chart.tgz");
}

proptest! {
    #[test]
    fn no_input_becomes_a_flag_or_a_path(name in ".{0,60}", chart in ".{0,60}", namespace in ".{0,60}", version in ".{0,40}") {
        let parsed = (
            ReleaseName::parse(&name), ChartName::parse(&chart), Namespace::parse(&namespace), Version::parse(&version),
        );
        let (Ok(name), Ok(chart), Ok(namespace), Ok(version)) = parsed else { return Ok(()) };
        let key = ReleaseKey { namespace, name };
        let index = Repository::parse("https://charts.example", PlainHttp::Rejected).unwrap();
        for call in [
            install(&key, &HelmOptions::default(), limit(), &labels(), false),
            upgrade(&key, &HelmOptions::default(), limit(), &labels()),
            uninstall(&key, &HelmOptions::default(), limit()),
            pull(&index, &chart, Some(&version), &Verification::default()),
        ] {
            let positional: Vec<_> = call.iter().skip_while(|one| *one != "--").skip(1).collect();
            prop_assert!(positional.iter().all(|one| !one.starts_with(['-', '/', '.']) && !one.contains("..")));
            prop_assert_eq!(call.iter().filter(|one| *one == "--").count(), 1);
        }
    }
}
