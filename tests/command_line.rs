//! The binary as a person meets it.

#![expect(clippy::unwrap_used, reason = "what these tests share fails as they do")]

use std::process::{Command, Output};

fn capasg(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_capasg")).args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn version_is_that_of_the_package() {
    let output = capasg(&["--version"]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), concat!("capasg ", env!("CARGO_PKG_VERSION"), "\n"));
}

// Rules: N1
#[test]
fn an_unknown_flag_is_named_in_the_error() {
    let output = capasg(&["manager", "--no-such-flag"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--no-such-flag"), "{}", stderr(&output));
}

// Rules: N1
#[test]
fn unknown_versions_and_cipher_suites_of_tls_are_refused_by_each_role() {
    for role in ["manager", "extension", "addons"] {
        let output = capasg(&[role, "--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA"]);
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        assert!(text.contains("`TLS_RSA_WITH_RC4_128_SHA` is not one of the cipher suites TLS"), "{text}");
        let output = capasg(&[role, "--tls-min-version=VersionTLS10"]);
        let text = stderr(&output);
        assert!(text.contains("VersionTLS12, VersionTLS13"), "{text}");
    }
}

#[test]
fn contradicting_flags_are_refused_before_anything_starts() {
    let output = capasg(&["manager", "--leader-elect-renew-deadline=20s"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "capasg: --leader-elect-renew-deadline must be shorter than --leader-elect-lease-duration\n"
    );
}

#[test]
fn definitions_are_written_one_file_each() {
    let folder = tempfile::tempdir().unwrap();
    let output = capasg(&["crds", "--dir", folder.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "infrastructure.cluster.x-k8s.io_asgguards.yaml",
            "infrastructure.cluster.x-k8s.io_asgidentities.yaml",
            "infrastructure.cluster.x-k8s.io_asgmachinepools.yaml",
            "infrastructure.cluster.x-k8s.io_asgmachinepooltemplates.yaml",
            "infrastructure.cluster.x-k8s.io_asgmachines.yaml"
        ]
    );
}

#[test]
fn what_events_need_is_printed_for_cloudformation_and_for_the_command_line() {
    let print = |args: &[&str]| -> serde_json::Value {
        let output = capasg(&[["events", "--print"].as_slice(), args].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let queue = ["--queue-name=nodes", "--region=eu-west-1", "--account=123456789012"];
    insta::assert_json_snapshot!("events_cloudformation", print(&queue));
    insta::assert_json_snapshot!("events_cli", print(&[queue.as_slice(), &["--format=cli"]].concat()));
    let refused = capasg(&["events", "--print", "--queue-name=no spaces"]);
    assert!(stderr(&refused).contains("--queue-name must have"), "{}", stderr(&refused));
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named() {
    let output = capasg(&["manager", "--kubeconfig=missing", "--health-addr=0", "--diagnostics-address=0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot read missing"), "{}", stderr(&output));
}
