//! The classes of errors, as Helm 3.22 prints them, and that nothing else of them is kept.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn errors_of_helm_have_their_classes() {
    let cases = [
        (
            "Error: INSTALLATION FAILED: Kubernetes cluster unreachable: Get \"https://10.0.0.1:6443/version\": dial tcp 10.0.0.1:6443: connect: connection refused",
            Class::ClusterUnreachable,
        ),
        (
            "Error: Kubernetes cluster unreachable: the server has asked for the client to provide credentials",
            Class::ClusterRejectsCredentials,
        ),
        ("Error: INSTALLATION FAILED: cannot re-use a name that is still in use", Class::NameInUse),
        (
            "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
            Class::OperationInProgress,
        ),
        (
            "Error: INSTALLATION FAILED: Unable to continue with install: ConfigMap \"a\" in namespace \"b\" exists and cannot be imported into the current release: invalid ownership metadata; label validation error",
            Class::ResourceOwned,
        ),
        ("Error: UPGRADE FAILED: \"cni\" has no deployed releases", Class::NoDeployedRevision),
        ("Error: release: not found", Class::ReleaseNotFound),
        (
            "Error: INSTALLATION FAILED: values don't meet the specifications of the schema(s) in the following chart(s):\ncni:\n- at '/replicas': got string, want integer",
            Class::ValuesInvalid,
        ),
        (
            "Error: INSTALLATION FAILED: chart requires kubeVersion: >=2.0 which is incompatible with Kubernetes v1.36.3",
            Class::KubernetesVersion,
        ),
        (
            "Error: INSTALLATION FAILED: An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: redis",
            Class::DependenciesMissing,
        ),
        (
            "Error: INSTALLATION FAILED: unable to build kubernetes objects from release manifest: resource mapping not found for name: \"x\" namespace: \"\" from \"\": no matches for kind \"Gateway\" in version \"g/v1\"\nensure CRDs are installed first",
            Class::KindMissing,
        ),
        (
            "Error: UPGRADE FAILED: pre-upgrade hooks failed: 1 error occurred:\n\t* job cni-migrate failed: BackoffLimitExceeded",
            Class::HookFailed,
        ),
        (
            "Error: INSTALLATION FAILED: execution error at (cni/templates/a.yaml:3:4): token s3cret is too short",
            Class::TemplateFailed,
        ),
        (
            "Error: chart \"nope\" matching 1.0 not found in repository index. (try 'helm repo update'): no chart name found",
            Class::ChartNotFound,
        ),
        (
            "Error: chart \"cni\" matching 9 not found in repository index. (try 'helm repo update'): no chart version found for cni-9",
            Class::ChartNotFound,
        ),
        (
            "Error: file 'chart.tgz' does not appear to be a gzipped archive; got 'text/plain'",
            Class::ArchiveInvalid,
        ),
        ("Error: Chart.yaml file is missing", Class::ArchiveInvalid),
        ("Error: r.example/charts/nope:1.0.0: not found\nmanifest unknown", Class::ChartNotFound),
        ("Error: r.example/charts/demo:9.9.9: not found", Class::ChartNotFound),
        (
            "...Unable to get an update from the \"repository\" chart repository (https://charts.example):\n\tfailed to fetch https://charts.example/index.yaml : 401 Unauthorized",
            Class::RepositoryRejectsCredentials,
        ),
        (
            "Error: Get \"https://charts.example/index.yaml\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
            Class::CertificateNotTrusted,
        ),
        (
            "failed to fetch https://charts.example/index.yaml : 503 Service Unavailable",
            Class::RepositoryUnreachable,
        ),
        (
            "Error: INSTALLATION FAILED: create: failed to create: namespaces \"nope\" not found",
            Class::NamespaceMissing,
        ),
        (
            "Error: INSTALLATION FAILED: secrets is forbidden: User \"x\" cannot create resource",
            Class::Forbidden,
        ),
        (
            "Error: UPGRADE FAILED: cannot patch \"a\" with kind Deployment: Deployment.apps \"a\" is invalid: spec.selector: Invalid value: field is immutable",
            Class::ImmutableField,
        ),
        (
            "Error: INSTALLATION FAILED: 1 error occurred:\n\t* admission webhook \"x\" denied the request: no",
            Class::Admission,
        ),
        ("Error: INSTALLATION FAILED: context deadline exceeded", Class::NotReadyInTime),
        (
            "Error: INSTALLATION FAILED: resource not ready, name: a, kind: Deployment, status: InProgress\ncontext deadline exceeded",
            Class::NotReadyInTime,
        ),
        ("Error: INSTALLATION FAILED: context canceled", Class::Stopped),
        ("panic: something else", Class::Other),
    ];
    for (printed, class) in cases {
        assert_eq!(Failure::of(printed).class, class, "{printed}");
    }
}

#[test]
fn places_kinds_and_statuses_are_shown_and_nothing_else() {
    let shown = |printed: &str| Failure::of(printed).to_string();
    let template = shown(
        "Error: template: cni/templates/a.yaml:3:14: executing \"cni/templates/a.yaml\" at <fail \"s3cret\">: error calling fail: s3cret",
    );
    assert!(
        template.ends_with("(at cni/templates/a.yaml:3:14)") && !template.contains("s3cret"),
        "{template}"
    );
    let kind = shown("no matches for kind \"Gateway\" in version \"gateway.networking.k8s.io/v1\"");
    assert!(kind.ends_with("(kind Gateway)"), "{kind}");
    let hostile = shown("no matches for kind \"a b s3cret\" in version");
    assert!(!hostile.contains("s3cret"), "{hostile}");
    let status =
        shown("failed to fetch https://user:s3cret@charts.example/index.yaml : 503 Service Unavailable");
    assert!(status.ends_with("(HTTP status 503)") && !status.contains("s3cret"), "{status}");
}

#[test]
fn each_class_has_a_reason_of_its_own_and_a_message() {
    let classes: BTreeSet<Class> = TABLE.iter().map(|(_, class)| *class).chain([Class::Other]).collect();
    let reasons: BTreeSet<_> = classes.iter().map(|class| class.text().0).collect();
    assert_eq!(reasons.len(), classes.len());
    assert_eq!(classes.len(), Class::Other as usize + 1, "each class is in the table");
    for class in classes {
        let (reason, message) = class.text();
        assert!(reason.chars().all(|one| one.is_ascii_alphanumeric()) && reason.len() < 64, "{reason}");
        assert!(message.len() < 200 && !message.ends_with('.'), "{message}");
    }
    for (text, _) in TABLE {
        assert_eq!(text, text.to_lowercase());
    }
}

proptest! {
    #[test]
    fn values_in_errors_are_not_repeated(before in ".{0,80}", after in ".{0,80}", entry in 0..TABLE.len()) {
        let secret = "S3cr3tValue";
        for printed in [
            format!("{before}{}{secret}{after}", TABLE[entry].0),
            format!("{before} {secret} {} {after}", TABLE[entry].0),
            format!("template: c/templates/a.yaml:1:2: executing at <.Values.{secret}>: {before} no matches for kind \"{secret} x\""),
        ] {
            let failure = Failure::of(&printed);
            prop_assert!(!failure.to_string().contains(secret), "{}", failure);
            prop_assert!(failure.to_string().len() < 512);
        }
    }
}
