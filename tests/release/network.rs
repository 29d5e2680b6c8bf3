//! The `NetworkPolicies`: each pod has one, it opens the ports that the pod serves, and the add-on provider reaches no service
//! at a link-local address.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use capasg_environment::Tools;
use serde_json::{Value, json};

use crate::{PROVIDERS, Provider, objects, plain::kustomize, read};

/// Where processes on AWS get credentials from.
const CREDENTIALS: [&str; 4] =
    ["169.254.169.254/32", "169.254.170.23/32", "fd00:ec2::254/128", "fd00:ec2::23/128"];

fn rendered(provider: &Provider) -> BTreeMap<String, Value> {
    objects(&kustomize(provider.source))
}

fn only(objects: &BTreeMap<String, Value>, kind: &str) -> Value {
    let mut found = objects.values().filter(|object| object["kind"] == kind);
    let object = found.next().unwrap().clone();
    assert!(found.next().is_none(), "one {kind}");
    object
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// The ports of a rule.
fn ports(rule: &Value) -> BTreeSet<u64> {
    let ports: BTreeSet<u64> = list(rule, "ports").iter().map(|one| one["port"].as_u64().unwrap()).collect();
    assert!(!ports.is_empty(), "a rule without ports opens all of them: {rule}");
    ports
}

#[test]
fn each_pod_has_a_network_policy_for_what_it_serves() {
    for provider in PROVIDERS {
        let objects = rendered(&provider);
        let (policy, deployment) = (only(&objects, "NetworkPolicy"), only(&objects, "Deployment"));
        assert_eq!(policy["metadata"]["namespace"], provider.namespace);
        let pod = &deployment["spec"]["template"];
        let selected = &policy["spec"]["podSelector"]["matchLabels"];
        assert_eq!(*selected, deployment["spec"]["selector"]["matchLabels"], "{}", provider.label);
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
        let served: BTreeSet<u64> = list(&pod["spec"]["containers"][0], "ports")
            .iter()
            .filter(|port| port["name"] != "healthz")
            .map(|port| port["containerPort"].as_u64().unwrap())
            .collect();
        let open: BTreeSet<u64> = list(&policy["spec"], "ingress").iter().flat_map(ports).collect();
        assert_eq!(open, served, "{}", provider.label);
    }
}

#[test]
fn hooks_are_reached_by_core_alone() {
    let [_, extension, _] = PROVIDERS;
    let policy = only(&rendered(&extension), "NetworkPolicy");
    let hooks = list(&policy["spec"], "ingress").iter().filter(|rule| ports(rule).contains(&9443));
    let hooks: Vec<&Value> = hooks.collect();
    let [rule] = hooks[..] else { panic!("one rule") };
    let [from] = list(rule, "from") else { panic!("one source") };
    // A label of the Namespace, which tenants cannot write, and of the pod.
    let label = "cluster.x-k8s.io/provider";
    assert_eq!(from["namespaceSelector"]["matchExpressions"], json!([{"key": label, "operator": "Exists"}]));
    assert_eq!(from["podSelector"]["matchLabels"], json!({label: "cluster-api"}));
    // Core has both by its own manifest.
    let tools = Tools::ready(&|line| eprintln!("{line}")).unwrap();
    let core = objects(&fs::read_to_string(tools.components("cluster-api")).unwrap());
    assert!(core["Namespace/capi-system"]["metadata"]["labels"][label].is_string());
    let pod = &core["Deployment/capi-controller-manager"]["spec"]["template"];
    assert_eq!(pod["metadata"]["labels"][label], "cluster-api");
}

#[test]
fn pods_reach_what_they_require_and_the_add_on_provider_no_credentials() {
    for provider in PROVIDERS {
        let policy = only(&rendered(&provider), "NetworkPolicy");
        let (mut anywhere, mut somewhere) = (BTreeSet::new(), BTreeMap::new());
        for rule in list(&policy["spec"], "egress") {
            match list(rule, "to") {
                [] => anywhere.extend(ports(rule)),
                to => {
                    for one in to {
                        let cidr = one["ipBlock"]["cidr"].as_str().unwrap().to_owned();
                        somewhere.insert(cidr, ports(rule));
                    }
                }
            }
        }
        assert_eq!(anywhere, [53, 443, 6443].into(), "{}", provider.label);
        let credentials: &[&str] = if provider.label == "addon-asg-helm" { &[] } else { &CREDENTIALS };
        let expected: BTreeMap<String, BTreeSet<u64>> =
            credentials.iter().map(|cidr| ((*cidr).to_owned(), [80].into())).collect();
        assert_eq!(somewhere, expected, "{}", provider.label);
    }
}

#[test]
fn the_page_names_each_flow() {
    let page = read("docs/users/network-policies.md");
    for provider in PROVIDERS {
        let objects = rendered(&provider);
        let policy = only(&objects, "NetworkPolicy");
        let name = policy["metadata"]["name"].as_str().unwrap();
        assert!(page.contains(&format!("`{name}`")), "{name}");
        for rule in [list(&policy["spec"], "ingress"), list(&policy["spec"], "egress")].concat() {
            for port in ports(&rule) {
                assert!(
                    page.contains(&format!("| {port} |")) || page.contains(&format!("{port},")),
                    "{port}"
                );
            }
        }
    }
}
