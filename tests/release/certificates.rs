//! The steps for client certificates of hooks: what the page says fits the manifests of core and of the extension.

use std::fs;

use capasg_environment::Tools;
use serde_json::Value;

use crate::{objects, plain::kustomize, read, run, said, succeeds};

const PAGE: &str = "docs/users/runtime-extension-certificates.md";

fn certificates() -> std::collections::BTreeMap<String, Value> {
    objects(&read("config/extension/core-client-certificate.yaml"))
}

#[test]
fn core_gets_the_flags_and_the_certificate_of_the_page() {
    let tools = Tools::ready(&|line| eprintln!("{line}")).unwrap();
    let page = read(PAGE);
    let patch = page.split("--type json --patch '").nth(1).unwrap().split('\'').next().unwrap();
    let manifest = fs::read_to_string(tools.components("cluster-api")).unwrap();
    let core = &objects(&manifest)["Deployment/capi-controller-manager"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("core.json");
    fs::write(&file, core.to_string()).unwrap();
    let mut kubectl = std::process::Command::new(tools.program("kubectl"));
    kubectl.args(["patch", "--local", "--output", "json", "--type", "json", "--patch", patch]);
    let patched: Value = serde_json::from_str(&succeeds(kubectl.arg("--filename").arg(&file))).unwrap();

    let pod = &patched["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let last = |list: &Value| list.as_array().unwrap().last().unwrap().clone();
    let (volume, mount) = (last(&pod["volumes"]), last(&container["volumeMounts"]));
    assert_eq!(container["name"], "manager");
    assert_eq!(mount["name"], volume["name"]);
    let secret = &certificates()["Certificate/capasg-extension-client"]["spec"]["secretName"];
    assert_eq!(volume["secret"]["secretName"], *secret);
    let help = said(&run(tools.program("capi-core"), &["--help"]));
    for (flag, key) in [
        ("--runtime-extension-client-cert-file", "tls.crt"),
        ("--runtime-extension-client-key-file", "tls.key"),
    ] {
        let arg = format!("{flag}={}/{key}", mount["mountPath"].as_str().unwrap());
        assert!(container["args"].as_array().unwrap().contains(&arg.into()), "{flag}");
        assert!(help.contains(flag), "core does not know {flag}");
    }
}

#[test]
fn the_extension_finds_the_authority_where_the_variable_says() {
    let page = read(PAGE);
    let file = page.split("export CAPASG_EXTENSION_CLIENT_CA_FILE=").nth(1).unwrap().lines().next().unwrap();
    let extension = objects(&kustomize("config/extension"));
    let pod = &extension["Deployment/capasg-extension"]["spec"]["template"]["spec"];
    let named = |list: &Value| {
        let mut items = list.as_array().unwrap().iter();
        items.find(|item| item["name"] == "client-ca").unwrap().clone()
    };
    let (volume, mount) = (named(&pod["volumes"]), named(&pod["containers"][0]["volumeMounts"]));
    let secret = &volume["secret"];
    let items = secret["items"].as_array().unwrap();
    let [item] = &items[..] else { panic!("the key of the authority is not mounted") };
    assert_eq!(file, format!("{}/{}", mount["mountPath"].as_str().unwrap(), item["path"].as_str().unwrap()));
    assert_eq!(secret["optional"], true, "by default there is none");
    let create = format!(
        "kubectl create secret generic {} --namespace capasg-extension-system --from-file {}",
        secret["secretName"].as_str().unwrap(),
        item["key"].as_str().unwrap()
    );
    assert!(page.contains(&create), "{create}");
    // The authority signs the certificate of core, and its certificate is in the Secret that the page reads.
    let objects = certificates();
    let issuer =
        objects["Certificate/capasg-extension-client"]["spec"]["issuerRef"]["name"].as_str().unwrap();
    let signs = &objects[&format!("Issuer/{issuer}")]["spec"]["ca"]["secretName"];
    assert_eq!(*signs, objects["Certificate/capasg-extension-client-ca"]["spec"]["secretName"]);
    assert_eq!(objects["Certificate/capasg-extension-client-ca"]["spec"]["isCA"], true);
}
