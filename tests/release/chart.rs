//! The Helm charts: the real Helm accepts them, and renders the objects of the kustomizations.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use crate::{IMAGE, PROVIDERS, Provider, assert_same, assets, helm, objects, run, said};

/// The archive of the provider's chart.
fn archive(provider: &Provider) -> String {
    let name = format!("{}-{}.tgz", provider.chart, env!("CARGO_PKG_VERSION"));
    assets().join(name).into_os_string().into_string().unwrap()
}

fn template(provider: &Provider, namespace: &str, set: &[&str]) -> BTreeMap<String, Value> {
    let archive = archive(provider);
    let mut args = vec!["template", "capasg", &archive, "--namespace", namespace];
    for value in set {
        args.extend(["--set-json", value]);
    }
    let output = run(helm(), &args);
    assert!(output.status.success(), "{}", said(&output));
    objects(std::str::from_utf8(&output.stdout).unwrap())
}

fn plain(provider: &Provider) -> BTreeMap<String, Value> {
    objects(&fs::read_to_string(assets().join(format!("{}.yaml", provider.label))).unwrap())
}

#[test]
fn the_charts_are_accepted_by_helm() {
    for provider in PROVIDERS {
        let output = run(helm(), &["lint", "--strict", &archive(&provider)]);
        let said = said(&output);
        assert!(output.status.success() && !said.contains("WARNING"), "{said}");
    }
}

#[test]
fn the_charts_render_the_objects_of_the_kustomizations() {
    for provider in PROVIDERS {
        let mut expected = plain(&provider);
        let all = ["namespace.create=true", "crds.keep=false"];
        // Not every chart has definitions.
        let all = if provider.label == "runtime-extension-asg" { &all[..1] } else { &all[..] };
        assert_same(&template(&provider, provider.namespace, all), &expected);

        // By default, Helm makes the namespace, and definitions outlive the release.
        expected.remove(&format!("Namespace/{}", provider.namespace)).unwrap();
        for object in expected.values_mut().filter(|object| object["kind"] == "CustomResourceDefinition") {
            object["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
        }
        assert_same(&template(&provider, provider.namespace, &[]), &expected);
    }
}

#[test]
fn a_chart_is_installed_in_any_namespace() {
    for provider in PROVIDERS {
        let rendered = template(&provider, "elsewhere", &["namespace.create=true"]);
        for (name, object) in &rendered {
            assert!(!object.to_string().contains(provider.namespace), "{name}");
        }
        let mut roles = rendered.keys().filter(|name| name.starts_with("ClusterRole"));
        assert!(roles.all(|name| name.contains("/elsewhere-")), "{:?}", rendered.keys());
    }
}

#[test]
fn values_reach_the_objects() {
    let [infrastructure, ..] = PROVIDERS;
    let role =
        r#"serviceAccount.annotations={"eks.amazonaws.com/role-arn":"arn:aws:iam::123456789012:role/a"}"#;
    let rendered = template(
        &infrastructure,
        infrastructure.namespace,
        &[
            role,
            "settings.concurrency=3",
            r#"settings.syncPeriod="1h: # not a comment""#,
            r#"settings.eventQueue="terminations""#,
            "settings.insecureDiagnostics=true",
            "replicas=2",
            r#"image.digest="sha256:1234""#,
            r#"extraArgs=["--watch-filter=blue"]"#,
            r#"extraEnv=[{"name":"HTTPS_PROXY","value":"http://proxy.example:3128"}]"#,
            r#"nodeSelector={"kubernetes.io/arch":"arm64"}"#,
            "tolerations=[]",
            r#"resources.limits.memory="1Gi""#,
        ],
    );
    let account = &rendered["ServiceAccount/capasg-manager"];
    assert_eq!(
        account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"],
        "arn:aws:iam::123456789012:role/a"
    );
    let deployment = &rendered["Deployment/capasg-controller-manager"]["spec"];
    assert_eq!(deployment["replicas"], 2);
    let pod = &deployment["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/arch": "arm64"}));
    assert_eq!(pod["tolerations"], Value::Null);
    let container = &pod["containers"][0];
    assert_eq!(container["image"], format!("{IMAGE}@sha256:1234"));
    assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(container["resources"]["requests"]["memory"], "64Mi", "values are merged with the defaults");
    let args = container["args"].as_array().unwrap();
    for arg in [
        "--concurrency=3",
        "--sync-period=1h: # not a comment",
        "--insecure-diagnostics=true",
        "--watch-filter=blue",
    ] {
        assert!(args.contains(&arg.into()), "{arg}: {args:?}");
    }
    let env = container["env"].as_array().unwrap();
    for (name, value) in
        [("CAPASG_EVENT_QUEUE", "terminations"), ("HTTPS_PROXY", "http://proxy.example:3128")]
    {
        assert!(env.contains(&json!({"name": name, "value": value})), "{name}: {env:?}");
    }
}

#[test]
fn a_value_that_is_not_known_is_rejected() {
    let [infrastructure, ..] = PROVIDERS;
    let archive = archive(&infrastructure);
    for (value, field) in [
        ("settings.concurency=3", "concurency"),
        ("setings.concurrency=3", "setings"),
        ("replicas=two", "replicas"),
        ("settings.insecureDiagnostics=maybe", "insecureDiagnostics"),
    ] {
        let output = run(helm(), &["template", "capasg", &archive, "--set", value]);
        let said = said(&output);
        assert!(!output.status.success() && said.contains(field), "{value}: {said}");
    }
}

#[test]
fn each_setting_of_a_chart_has_a_variable() {
    let page = crate::read("docs/reference/variables.md");
    let plan: Value = serde_saphyr::from_str(&crate::read("config/release.yaml")).unwrap();
    let mut settings = 0;
    for provider in plan["providers"].as_array().unwrap() {
        for setting in provider["settings"].as_array().unwrap() {
            let variable = setting["variable"].as_str().unwrap();
            let default = page.lines().find_map(|line| line.strip_prefix(&format!("| `{variable}` | `")));
            let default = default.unwrap_or_else(|| panic!("{variable}")).split('`').next().unwrap();
            let label = provider["label"].as_str().unwrap();
            let provider = PROVIDERS.into_iter().find(|one| one.label == label).unwrap();
            let output = run(helm(), &["show", "values", &archive(&provider)]);
            let values: Value = serde_saphyr::from_str(std::str::from_utf8(&output.stdout).unwrap()).unwrap();
            let value = &values["settings"][setting["value"].as_str().unwrap()];
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert_eq!(value, default, "{variable} of {label}");
            settings += 1;
        }
    }
    assert!(settings > 10, "{settings}");
}
