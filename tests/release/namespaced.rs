//! The installations for one namespace: what the roles of `config/namespaced` allow, together, is what those of the default
//! installation do, and nothing of users in all namespaces.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{objects, plain::kustomize};

/// The namespace in the manifests.
const WATCHED: &str = "clusters";

/// What is left out: objects that are stored in an older version are in all namespaces.
const OMITTED: [&str; 3] = [
    "patch apiextensions.k8s.io/customresourcedefinitions/status",
    "list infrastructure.cluster.x-k8s.io/asgmachinepooltemplates",
    "patch infrastructure.cluster.x-k8s.io/asgmachinepooltemplates",
];

/// Each verb on each resource.
fn rights(role: &Value) -> BTreeSet<String> {
    let texts = |rule: &Value, list: &str| -> Vec<String> {
        let items = rule[list].as_array().into_iter().flatten();
        items.map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                rights.extend(texts(rule, "verbs").iter().map(|verb| format!("{verb} {group}/{resource}")));
            }
        }
    }
    rights
}

#[test]
fn a_role_of_one_namespace_replaces_the_cluster_role() {
    for (part, source, role, cluster_role) in [
        ("manager", "config/default", "capasg-manager", "capasg-system-manager"),
        ("addons", "config/addons", "capasg-addons", "capasg-addons-system-addons"),
        ("extension", "config/extension", "capasg-extension", "capasg-extension-system-extension"),
    ] {
        let default = objects(&kustomize(source));
        let mut rendered = objects(&kustomize(&format!("config/namespaced/{part}")));
        let (cluster_role, role_name) = (format!("ClusterRole/{cluster_role}"), role);
        let all = rights(&default[&cluster_role]);
        let everywhere = rights(&rendered[&cluster_role]);
        let role = rendered.remove(&format!("Role/{role_name}")).unwrap();
        let binding = rendered.remove(&format!("RoleBinding/{role_name}")).unwrap();
        let here = rights(&role);

        let both: BTreeSet<String> = everywhere.union(&here).cloned().collect();
        let omitted: Vec<&String> = all.difference(&both).collect();
        assert!(omitted.iter().all(|right| OMITTED.contains(&right.as_str())), "{part} lacks {omitted:?}");
        assert!(both.is_subset(&all), "{part} has more: {:?}", both.difference(&all));
        assert!(everywhere.is_disjoint(&here), "{part}: {:?}", everywhere.intersection(&here));
        // Of kinds with a namespace, only the Lease of the other add-on provider, by its name.
        for right in &everywhere {
            let cluster_scoped = [
                "customresourcedefinitions",
                "tokenreviews",
                "subjectaccessreviews",
                "namespaces",
                "asgguards",
                "asgidentities",
                "asgidentities/status",
                "awsclustercontrolleridentities",
                "awsclusterroleidentities",
                "awsclusterstaticidentities",
            ];
            let is_cluster_scoped = cluster_scoped.iter().any(|kind| right.ends_with(kind));
            assert!(is_cluster_scoped || right == "get coordination.k8s.io/leases", "{part}: {right}");
        }

        for object in [&role, &binding] {
            assert_eq!(object["metadata"]["namespace"], WATCHED);
        }
        assert_eq!(binding["roleRef"]["name"], role_name);
        let account = format!("ServiceAccount/{}", binding["subjects"][0]["name"].as_str().unwrap());
        assert_eq!(binding["subjects"][0]["namespace"], default[&account]["metadata"]["namespace"]);
        // Nothing else differs but the flag.
        assert!(rendered.keys().eq(default.keys()), "{part}");
        for (name, object) in rendered.iter().filter(|(name, _)| **name != cluster_role) {
            let mut expected = default[name].clone();
            if name.starts_with("Deployment/") && part != "extension" {
                let args = expected.pointer_mut("/spec/template/spec/containers/0/args").unwrap();
                args.as_array_mut().unwrap().push(format!("--namespace={WATCHED}").into());
            }
            assert_eq!(*object, expected, "{part}: {name}");
        }
    }
}
