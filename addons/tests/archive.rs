//! A release of a chart in an archive, in place of a repository, with the real Helm.

mod support;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_addons::{controller::Next, helm::Archive};
use serde_json::json;
use support::{
    Outcome,
    lab::{Lab, SECRETS, secret},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_installed_from_an_archive_without_a_repository() -> Outcome {
    let lab = Lab::new().await?;
    let path = format!("{SECRETS}/charts");
    let content = lab.repository.archive("1.0.0")?;
    let put = |content: &[u8]| {
        let mut secret = secret("charts", &[]);
        secret["data"] = json!({"chart.tgz": STANDARD.encode(content)});
        lab.management.put(&path, secret);
    };
    put(&content);
    let request = |version: &str, content: &[u8]| {
        let version = format!("{version}+archive.{}", Archive(content.to_vec()).digest());
        lab.change(|object| {
            let annotations = &mut object["metadata"]["annotations"];
            annotations["asg.addons.cluster.x-k8s.io/chart-archive"] = json!("secret/charts");
            object["spec"]["repoURL"] = json!("https://127.0.0.1:1");
            object["spec"]["version"] = json!(version);
        });
    };
    request("1.0.0", &content);
    assert_eq!(lab.settle().await?, Next::Later);
    assert_eq!(lab.condition("Ready").0, "True");
    assert_eq!((lab.releases().len(), lab.object()["status"]["revision"].clone()), (1, json!(1)));

    // The content follows later.
    let other = lab.repository.archive("1.1.0")?;
    request("1.1.0", &other);
    assert!(matches!(lab.settle().await?, Next::At(_)));
    let (_, reason, message) = lab.condition("Ready");
    assert!(message.contains("ChartArchiveChanged: Secret charts has another content"), "{reason} {message}");
    put(&other);
    lab.change(|_| {});
    lab.settle().await?;
    assert_eq!((lab.condition("Ready").0.as_str(), &lab.object()["status"]["revision"]), ("True", &json!(2)));

    // A release that is as requested does not require the archive.
    lab.management.change(&path, |secret| secret["data"] = json!({}));
    lab.settle().await?;
    assert_eq!(lab.condition("Ready").0, "True");
    lab.change(|object| object["spec"]["values"] = json!("password: other"));
    lab.settle().await?;
    let (_, _, message) = lab.condition("Ready");
    assert!(message.contains("ChartArchiveMissing: Secret charts has no key chart.tgz in data"), "{message}");
    assert_eq!(lab.releases().len(), 2, "the release stays as it is");

    lab.change(|object| {
        object["metadata"]["annotations"]["asg.addons.cluster.x-k8s.io/chart-archive"] =
            json!("secret/../login");
    });
    lab.settle().await?;
    let (_, _, message) = lab.condition("Ready");
    assert!(message.contains("chart-archive is invalid: it must be configmap/<name>"), "{message}");
    Ok(())
}
