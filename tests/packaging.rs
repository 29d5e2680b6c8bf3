//! What users install: the kustomization, the release folder and the templates, checked as clusterctl reads them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what these tests share fails as they do")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use serde_json::Value;

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
const LABEL: &str = "infrastructure-asg";
/// All providers of a release.
const LABELS: [&str; 3] = [LABEL, "runtime-extension-asg", "addon-asg-helm"];
const NAMESPACE: &str = "capasg-system";
/// How names begin that follow the namespace although clusterctl does not see to it.
const OF_NAMESPACE: &str = "${CAPASG_NAMESPACE:=capasg-system}-";
/// What clusterctl sets by itself.
const COMMON: [&str; 5] = [
    "CLUSTER_NAME",
    "NAMESPACE",
    "KUBERNETES_VERSION",
    "CONTROL_PLANE_MACHINE_COUNT",
    "WORKER_MACHINE_COUNT",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files_in(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_in(path.strip_prefix(root()).unwrap().to_str().unwrap()));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn capasg(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_capasg")).args(args).output().unwrap()
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// Writes a release as `make release` does, and answers the files for clusterctl by provider and name.
fn release() -> BTreeMap<(String, String), Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(root().join("scripts/release"))
        .arg(folder.path())
        .args([VERSION, &format!("example.com/capasg:{VERSION}")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut files = BTreeMap::new();
    for label in LABELS {
        let folder = folder.path().join(label).join(VERSION);
        for name in names_in(&folder) {
            files.insert((label.to_owned(), name.clone()), fs::read(folder.join(name)).unwrap());
        }
    }
    files
}

/// The files that clusterctl reads.
fn files() -> &'static BTreeMap<(String, String), Vec<u8>> {
    static FILES: OnceLock<BTreeMap<(String, String), Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(release)
}

/// A file of our infrastructure provider.
fn file(name: &str) -> &'static [u8] {
    &files()[&(LABEL.to_owned(), name.to_owned())]
}

fn components() -> &'static [Value] {
    static COMPONENTS: OnceLock<Vec<Value>> = OnceLock::new();
    COMPONENTS.get_or_init(|| documents(std::str::from_utf8(file("infrastructure-components.yaml")).unwrap()))
}

fn of_kind(kind: &str) -> Vec<&'static Value> {
    components().iter().filter(|object| object["kind"] == kind).collect()
}

fn deployment() -> &'static Value {
    let [deployment] = of_kind("Deployment")[..] else { panic!("one Deployment") };
    deployment
}

fn manager() -> &'static Value {
    let containers = deployment()["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    let [manager] = &containers[..] else { panic!("one container") };
    manager
}

/// The names in `${NAME}`, `${NAME:=default}` and `${NAME/#...}`.
fn variables(text: &str) -> BTreeSet<String> {
    text.split("${")
        .skip(1)
        .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect())
        .collect()
}

#[test]
fn the_definitions_in_the_tree_are_those_of_the_types() {
    for (flags, folder, list) in [
        (["crds"].as_slice(), "config/crd/bases", "config/crd/kustomization.yaml"),
        (&["crds", "--addons"], "config/addons/crd", "config/addons/kustomization.yaml"),
    ] {
        let generated = tempfile::tempdir().unwrap();
        let status = capasg(&[flags, &["--dir", generated.path().to_str().unwrap()]].concat()).status;
        assert!(status.success());
        let names = names_in(generated.path());
        assert_eq!(names_in(&root().join(folder)), names);
        let listed = read(list);
        for name in names {
            let same = fs::read_to_string(generated.path().join(&name)).unwrap()
                == read(Path::new(folder).join(&name));
            assert!(same, "{name} is not what the types say: run `make generate`");
            assert!(listed.contains(&name), "{name}");
        }
    }
}

#[test]
fn the_reference_is_that_of_the_types() {
    let generated = tempfile::tempdir().unwrap();
    let folder = generated.path().to_str().unwrap();
    for flags in
        [&["crds", "--reference", "--dir", folder][..], &["crds", "--addons", "--reference", "--dir", folder]]
    {
        assert!(capasg(flags).status.success());
    }
    let names = names_in(&generated.path().join("api"));
    assert_eq!(names_in(&root().join("docs/reference/api")), names);
    let pages = names.iter().map(|name| format!("api/{name}"));
    for page in pages.chain(["api.md".to_owned(), "addons-api.md".to_owned()]) {
        let same = fs::read_to_string(generated.path().join(&page)).unwrap()
            == read(Path::new("docs/reference").join(&page));
        assert!(same, "docs/reference/{page} is not what the types say: run `make generate`");
    }
}

#[test]
fn the_add_on_provider_is_restricted_and_its_flags_are_known() {
    let objects = documents(&read("config/addons/addon-components.yaml"));
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["name"], "manager");
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["capabilities"]["drop"], serde_json::json!(["ALL"]));
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert!(pod["volumes"][0]["emptyDir"].is_object(), "the folders of Helm are on no shared volume");
    let folder = format!("--work-dir={}", container["volumeMounts"][0]["mountPath"].as_str().unwrap());
    let flags: Vec<String> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flag| with_defaults(flag.as_str().unwrap()))
        .collect();
    assert!(flags.contains(&folder), "{flags:?}");
    // Known flags, but a program that is not there.
    let missing = ["--helm=missing/helm", "--health-addr=0"];
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(missing).collect();
    let output = capasg(&[&["addons"], flags.as_slice()].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("there is no program missing/helm"), "{said}");
}

#[test]
fn the_image_is_built_from_every_member_of_the_workspace() {
    let ignored = read(".dockerignore");
    let manifest = read("Cargo.toml");
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    for member in members.split('"').skip(1).step_by(2) {
        let folder = member.split('/').next().unwrap();
        let is_sent = ignored
            .lines()
            .any(|line| line == format!("!{folder}") || (folder == "tests" && line == "!tests/*/Cargo.toml"));
        assert!(is_sent, "{member} is not sent to the builder");
    }
    let dockerfile = read("Dockerfile");
    let go = read("addons/go/go.mod");
    let go = go.lines().find_map(|line| line.strip_prefix("go ")).unwrap();
    let minor = go.rsplit_once('.').unwrap().0;
    assert!(dockerfile.contains(&format!("\nARG GO_IMAGE=golang:{minor}-alpine")), "{go}");
    for program in ["helm", "capasg-values"] {
        assert!(dockerfile.contains(&format!("-o /image/{program} ")), "{program}");
    }
    assert!(dockerfile.contains("go run . root /image"));
    assert!(ignored.lines().any(|line| line == "!scripts/tools/image"));
}

#[test]
fn the_rendered_components() {
    let rest: Vec<&Value> =
        components().iter().filter(|object| object["kind"] != "CustomResourceDefinition").collect();
    insta::assert_yaml_snapshot!(rest);
}

// Rules: K1, K3
#[test]
fn a_release_has_the_files_of_clusterctl_and_is_reproducible() {
    let second = release();
    assert!(files().keys().eq(second.keys()));
    for (name, content) in files() {
        assert!(*content == second[name], "{name:?}");
    }
    for name in ["infrastructure-components.yaml", "metadata.yaml"] {
        assert!(!file(name).is_empty(), "{name}");
    }
    for template in files_in("templates") {
        let name = template.file_name().unwrap().to_str().unwrap();
        assert_eq!(file(name), fs::read(&template).unwrap(), "{}", template.display());
    }
}

// Rules: K2
#[test]
fn the_metadata_has_this_version_and_the_contract_of_the_definitions() {
    let [metadata] = &documents(&read("metadata.yaml"))[..] else { panic!("one document") };
    assert_eq!(metadata["apiVersion"], "clusterctl.cluster.x-k8s.io/v1alpha3");
    assert_eq!(metadata["kind"], "Metadata");
    let mut version = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse::<u64>().unwrap());
    let (major, minor) = (version.next().unwrap(), version.next().unwrap());
    let series = metadata["releaseSeries"].as_array().unwrap();
    let ours = series.iter().find(|series| series["major"] == major && series["minor"] == minor).unwrap();
    let label = format!("cluster.x-k8s.io/{}", ours["contract"].as_str().unwrap());
    for definition in of_kind("CustomResourceDefinition") {
        assert_eq!(
            definition["metadata"]["labels"][&label], "v1alpha1",
            "{}",
            definition["metadata"]["name"]
        );
    }
}

// Rules: K4
#[test]
fn all_namespaced_objects_are_in_one_namespace() {
    assert_eq!(of_kind("Namespace").len(), 1);
    for object in components() {
        let cluster_scoped = [
            "Namespace",
            "CustomResourceDefinition",
            "ClusterRole",
            "ClusterRoleBinding",
            "ValidatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ]
        .contains(&object["kind"].as_str().unwrap());
        let expected = if cluster_scoped { Value::Null } else { NAMESPACE.into() };
        assert_eq!(object["metadata"]["namespace"], expected, "{}", object["metadata"]["name"]);
    }
}

// Rules: K5
#[test]
fn the_container_is_called_manager_and_runs_our_command() {
    assert_eq!(manager()["name"], "manager");
    assert_eq!(manager()["command"], serde_json::json!(["/capasg", "manager"]));
}

// Rules: K7
#[test]
fn the_namespace_is_named_only_where_clusterctl_rewrites_it() {
    fn places(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::String(text) if text.contains(NAMESPACE) => found.push(path.to_owned()),
            Value::Array(items) => items.iter().for_each(|item| places(item, &format!("{path}[]"), found)),
            Value::Object(members) => {
                members.iter().for_each(|(name, member)| places(member, &format!("{path}.{name}"), found));
            }
            _ => {}
        }
    }
    for object in components() {
        let mut found = Vec::new();
        places(object, "", &mut found);
        let kind = object["kind"].as_str().unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        for path in found {
            let rewritten = match path.as_str() {
                ".metadata.namespace" | ".subjects[].namespace" => true,
                ".webhooks[].clientConfig.service.namespace"
                | ".metadata.annotations.cert-manager.io/inject-ca-from" => {
                    kind == "ValidatingWebhookConfiguration"
                }
                ".spec.dnsNames[]" => kind == "Certificate",
                // Not by clusterctl, but by the variable that is written there.
                ".metadata.name" => kind == "Namespace" || name.starts_with(OF_NAMESPACE),
                ".roleRef.name" => kind == "ClusterRoleBinding",
                ".spec.policyName" => kind == "ValidatingAdmissionPolicyBinding",
                _ => false,
            };
            assert!(rewritten, "{kind}{path}");
        }
    }
}

/// The API server ignores formats that it does not know, and warns of them at each installation.
#[test]
fn the_definitions_have_known_formats_alone() {
    fn formats(schema: &Value, found: &mut BTreeSet<(String, String)>) {
        if let (Some(kind), Some(format)) = (schema["type"].as_str(), schema["format"].as_str()) {
            found.insert((kind.to_owned(), format.to_owned()));
        }
        match schema {
            Value::Array(items) => items.iter().for_each(|item| formats(item, found)),
            Value::Object(members) => members.values().for_each(|member| formats(member, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    for file in [files_in("config/crd/bases"), files_in("config/addons/crd")].concat() {
        for one in documents(&fs::read_to_string(file).unwrap()) {
            formats(&one, &mut found);
        }
    }
    let known = [("integer", "int32"), ("integer", "int64"), ("string", "date-time")];
    let known = known.map(|(kind, format)| (kind.to_owned(), format.to_owned()));
    assert_eq!(found, known.into());
}

// Rules: K8, K9
#[test]
fn every_variable_of_the_components_has_a_default_and_is_documented() {
    let documented = read("docs/reference/variables.md");
    let mut used = BTreeSet::new();
    for (name, content) in
        files().iter().filter(|((_, name), _)| Path::new(name).extension().is_some_and(|of| of == "yaml"))
    {
        let text = std::str::from_utf8(content).unwrap();
        assert!(!text.contains("$$"), "{name:?}");
        // clusterctl takes an empty default for none.
        assert!(!text.contains(":=}"), "{name:?}");
        used.extend(variables(text));
    }
    for name in &used {
        assert!(
            documented.contains(&format!("| `{name}` |")),
            "docs/reference/variables.md does not tell of {name}"
        );
        assert!(
            COMMON.contains(&name.as_str())
                || ["AWS_", "CAPASG_", "POD_", "SERVICE_"].iter().any(|prefix| name.starts_with(prefix)),
            "{name} may clash with the variables of others (rule K9)"
        );
    }
    let named = documented.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    // Flavors are named there too, in lower case.
    for name in named.filter(|name| !name.contains(|c: char| c.is_ascii_lowercase())) {
        assert!(used.contains(name), "docs/reference/variables.md tells of {name}, which nothing uses");
    }
}

// Rules: K10
#[test]
fn all_objects_have_the_label_of_the_provider() {
    for object in components() {
        assert_eq!(object["metadata"]["labels"]["cluster.x-k8s.io/provider"], LABEL, "{object}");
    }
    assert_eq!(deployment()["spec"]["template"]["metadata"]["labels"]["cluster.x-k8s.io/provider"], LABEL);
}

// Rules: K12
#[test]
fn names_of_cluster_scoped_objects_begin_with_the_namespace() {
    for kind in [
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ] {
        let objects = of_kind(kind);
        assert!(!objects.is_empty(), "{kind}");
        for object in objects {
            let name = object["metadata"]["name"].as_str().unwrap();
            assert!(name.starts_with(OF_NAMESPACE), "{name} would stay behind `clusterctl delete`");
        }
    }
    assert!(with_defaults(OF_NAMESPACE).starts_with(&format!("{NAMESPACE}-")));
}

// Rules: K11
#[test]
fn the_certificate_matches_the_service_the_pod_and_the_webhooks() {
    let only = |kind: &str| {
        let [object] = of_kind(kind)[..] else { panic!("one {kind}") };
        object
    };
    let (certificate, service, webhooks) =
        (only("Certificate"), only("Service"), only("ValidatingWebhookConfiguration"));
    let name = service["metadata"]["name"].as_str().unwrap();
    let host = format!("{name}.{NAMESPACE}.svc");
    assert!(certificate["spec"]["dnsNames"].as_array().unwrap().contains(&host.into()));
    assert_eq!(certificate["spec"]["issuerRef"]["name"], only("Issuer")["metadata"]["name"]);
    let injected = format!("{NAMESPACE}/{}", certificate["metadata"]["name"].as_str().unwrap());
    assert_eq!(webhooks["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], injected.as_str());

    let pod = &deployment()["spec"]["template"];
    let volume = &pod["spec"]["volumes"][0];
    assert_eq!(volume["secret"]["secretName"], certificate["spec"]["secretName"]);
    assert_eq!(manager()["volumeMounts"][0]["name"], volume["name"]);
    let folder = manager()["volumeMounts"][0]["mountPath"].as_str().unwrap();
    let args = manager()["args"].as_array().unwrap();
    assert!(args.contains(&format!("--webhook-cert-dir={folder}").into()), "{args:?}");
    let ports = manager()["ports"].as_array().unwrap();
    let target = &service["spec"]["ports"][0]["targetPort"];
    let port = ports.iter().find(|port| port["name"] == *target).unwrap();
    assert!(args.contains(&format!("--webhook-port={}", port["containerPort"]).into()), "{args:?}");
    for (label, value) in service["spec"]["selector"].as_object().unwrap() {
        assert_eq!(pod["metadata"]["labels"][label], *value);
    }
}

// Rules: M6
#[test]
fn no_webhook_blocks_a_request_or_a_move() {
    for configuration in of_kind("ValidatingWebhookConfiguration") {
        for webhook in configuration["webhooks"].as_array().unwrap() {
            let name = &webhook["name"];
            assert_eq!(webhook["failurePolicy"], "Ignore", "{name}");
            assert_eq!(webhook["sideEffects"], "None", "{name}");
            assert!(webhook["timeoutSeconds"].as_u64().unwrap() <= 5, "{name}");
            assert_eq!(webhook["clientConfig"]["service"]["name"], of_kind("Service")[0]["metadata"]["name"]);
            for rule in webhook["rules"].as_array().unwrap() {
                for resource in rule["resources"].as_array().unwrap() {
                    assert!(
                        !resource.as_str().unwrap().contains('/'),
                        "{name} sees every status: {resource}"
                    );
                }
            }
            let mut conditions = webhook["matchConditions"].as_array().into_iter().flatten();
            let deletes = webhook["rules"][0]["operations"] == serde_json::json!(["DELETE"]);
            let spares_moves =
                conditions.any(|one| one["expression"].as_str().unwrap().contains("delete-for-move"));
            assert_eq!(deletes, spares_moves, "{name}");
        }
    }
    assert!(of_kind("MutatingWebhookConfiguration").is_empty());
}

// Rules: K3, K17
#[test]
fn files_and_provider_have_the_names_that_clusterctl_expects() {
    let (kind, name) = LABEL.split_once('-').unwrap();
    assert_eq!(kind, "infrastructure");
    let dns = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(!name.is_empty() && name.len() <= 63 && name.chars().all(dns) && !name.starts_with('-'));
    let expected = |file: &str| {
        let fixed = ["infrastructure-components.yaml", "metadata.yaml"].contains(&file);
        let template = file.starts_with("cluster-template") || file.starts_with("clusterclass-");
        fixed || (template && file.strip_suffix(".yaml").is_some())
    };
    for (_, file) in files().keys().filter(|(label, _)| label == LABEL) {
        assert!(expected(file), "{file} is nothing that clusterctl looks for");
    }
}

// Rules: K13
#[test]
fn the_image_has_registry_and_version() {
    assert_eq!(manager()["image"], concat!("example.com/capasg:v", env!("CARGO_PKG_VERSION")));
}

/// The templates of clusters, or the classes, with what they hold.
fn templates(prefix: &str) -> Vec<(String, Vec<Value>)> {
    let files = files_in("templates").into_iter().filter_map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        name.starts_with(prefix).then(|| (name, documents(&fs::read_to_string(&path).unwrap())))
    });
    files.collect()
}

/// Whether one of the objects is the one that a reference names, by `apiGroup` or by `apiVersion`.
fn refers_to_one_of(reference: &Value, objects: &[Value]) -> bool {
    let group = reference["apiGroup"].as_str().or_else(|| reference["apiVersion"].as_str()).unwrap();
    objects.iter().any(|object| {
        object["kind"] == reference["kind"]
            && object["metadata"]["name"] == reference["name"]
            && object["apiVersion"].as_str().unwrap().starts_with(group)
    })
}

// Rules: K16
#[test]
fn templates_use_one_namespace_and_consistent_names() {
    let classes = templates("clusterclass-");
    let all = templates("cluster-template");
    assert_eq!(all.len(), 6);
    for (file, objects) in all {
        for object in &objects {
            assert_eq!(object["metadata"]["namespace"], "${NAMESPACE}", "{file}: {object}");
            for pointer in [
                "/spec/infrastructureRef",
                "/spec/controlPlaneRef",
                "/spec/machineTemplate/spec/infrastructureRef",
                "/spec/template/spec/infrastructureRef",
                "/spec/template/spec/bootstrap/configRef",
            ] {
                if let Some(reference) = object.pointer(pointer) {
                    assert!(refers_to_one_of(reference, &objects), "{file}: {pointer} of {object}");
                }
            }
        }
        let Some(topology) = objects.iter().find_map(|object| object.pointer("/spec/topology")) else {
            assert!(objects.iter().any(|object| object["kind"] == "ASGMachinePool"), "{file}");
            continue;
        };
        // clusterctl looks for clusterclass-<name>.yaml.
        let name = format!("clusterclass-{}", topology["classRef"]["name"].as_str().unwrap());
        let (_, class) = classes.iter().find(|(file, _)| *file == name).unwrap();
        let known = |list: &str, key: &str| -> BTreeSet<&str> {
            let items = class[0].pointer(list).and_then(Value::as_array).into_iter().flatten();
            items.map(|item| item[key].as_str().unwrap()).collect()
        };
        for pool in topology["workers"]["machinePools"].as_array().unwrap() {
            let class = pool["class"].as_str().unwrap();
            assert!(known("/spec/workers/machinePools", "class").contains(class), "{file}: {class}");
        }
        let given: BTreeSet<&str> = topology["variables"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        for variable in class[0]["spec"]["variables"].as_array().unwrap() {
            let name = variable["name"].as_str().unwrap();
            let defaulted = !variable["schema"]["openAPIV3Schema"]["default"].is_null();
            let is_optional = defaulted || variable["required"] == false;
            assert!(given.contains(name) || is_optional, "{file} gives no {name}");
        }
        // The Runtime Extension defines the others of a class with an external patch: tests/extension/class.rs compares them.
        let is_external = class[0]["spec"]["patches"].to_string().contains("discoverVariablesExtension");
        let of_class = known("/spec/variables", "name");
        let unknown = given.difference(&of_class).find(|name| !(is_external && name.starts_with("asg")));
        assert_eq!(unknown, None, "{file}");
    }
}

// Rules: J7
#[test]
fn classes_have_neither_variables_nor_namespaces_and_consistent_names() {
    let documented = read("docs/users/clusterclass.md");
    let classes = templates("clusterclass-");
    assert_eq!(classes.len(), 3);
    for (file, objects) in classes {
        let text = read(format!("templates/{file}.yaml"));
        assert!(variables(&text).is_empty() && !text.contains("namespace:"), "{file}");
        let class = &objects[0];
        assert_eq!(class["kind"], "ClusterClass", "{file}");
        assert_eq!(format!("clusterclass-{}", class["metadata"]["name"].as_str().unwrap()), file);
        let mut references = Vec::new();
        template_refs(&class["spec"], &mut references);
        assert_eq!(references.len(), objects.len() - 1, "{file}: each template is used once");
        for reference in references {
            assert!(refers_to_one_of(reference, &objects), "{file}: {reference}");
        }
        let patches = class["spec"]["patches"].to_string();
        for variable in class["spec"]["variables"].as_array().unwrap() {
            let name = variable["name"].as_str().unwrap();
            // Whole, or a field of it.
            let uses = ["\"", "."].map(|end| format!("\"variable\":\"{name}{end}"));
            assert!(uses.iter().any(|text| patches.contains(text)), "{file}: no patch uses {name}");
            assert!(
                documented.contains(&format!("| `{name}` |")),
                "docs/users/clusterclass.md does not tell of {name}"
            );
            let description = &variable["schema"]["openAPIV3Schema"]["description"];
            assert!(description.as_str().is_some_and(|text| text.ends_with('.')), "{file}: {name}");
        }
    }
}

fn template_refs<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if name == "templateRef" { found.push(member) } else { template_refs(member, found) }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| template_refs(item, found)),
        _ => {}
    }
}

#[test]
fn the_pod_is_restricted() {
    let namespace = of_kind("Namespace")[0];
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    let pod = &deployment()["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let container = &manager()["securityContext"];
    assert_eq!(container["allowPrivilegeEscalation"], false);
    assert_eq!(container["readOnlyRootFilesystem"], true);
    assert_eq!(container["capabilities"]["drop"], serde_json::json!(["ALL"]));
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(manager()[probe]["httpGet"]["port"], "healthz");
    }
    assert!(manager()["resources"]["limits"]["memory"].is_string());
}

#[test]
fn the_flags_of_the_deployment_are_known() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capasg"));
    command.arg("manager");
    for arg in manager()["args"].as_array().unwrap() {
        command.arg(with_defaults(arg.as_str().unwrap()));
    }
    // Known flags, but a kubeconfig that is not there: the process gets as far as reading it.
    let output = command.arg("--kubeconfig=missing/kubeconfig").arg("--health-addr=0").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("cannot read missing/kubeconfig"), "{said}");
}

#[test]
fn every_dependency_is_told_of_with_its_reason() {
    let documented = read("docs/contributors/dependencies.md");
    let manifest = read("Cargo.toml");
    let table = manifest.split("[workspace.dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let names: Vec<&str> = table
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with("capasg-"))
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(
            documented.contains(&format!("`{name}`")),
            "docs/contributors/dependencies.md does not tell of {name}"
        );
    }
}

/// Fixes are for the newest minor version alone.
#[test]
fn the_security_policy_supports_this_minor_version_and_names_each_program() {
    let policy = read("SECURITY.md");
    let rows: Vec<Vec<&str>> = policy
        .lines()
        .skip_while(|line| *line != "## Supported versions")
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").collect())
        .collect();
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    let before = minor.parse::<u64>().unwrap() - 1;
    assert_eq!(
        rows[2..],
        [
            vec![format!("{major}.{minor}.x").as_str(), "yes"],
            vec![
                format!("{major}.{before}.x and older").as_str(),
                format!("no: upgrade to {major}.{minor}").as_str()
            ],
        ]
    );
    for label in LABELS {
        let text = read(match label {
            LABEL => "config/manager/manager.yaml",
            "runtime-extension-asg" => "config/extension/runtime-extension-components.yaml",
            _ => "config/addons/addon-components.yaml",
        });
        let command = text.split("command: [/capasg, ").nth(1).unwrap().split(']').next().unwrap();
        assert!(policy.contains(&format!("`capasg {command}`")), "{command}");
    }
}

/// Fills in the default of `${NAME:=default}`, as clusterctl does.
fn with_defaults(text: &str) -> String {
    let Some((before, rest)) = text.split_once("${") else { return text.to_owned() };
    let (variable, after) = rest.split_once('}').unwrap();
    let (_, default) = variable.split_once(":=").unwrap();
    format!("{before}{default}{after}")
}

#[test]
fn the_image_is_built_with_the_pinned_compiler_and_runs_as_nobody() {
    let dockerfile = read("Dockerfile");
    let toolchain = read("rust-toolchain.toml");
    let pinned = toolchain.split('"').nth(1).unwrap();
    assert!(dockerfile.contains(&format!("\nARG RUST_IMAGE=rust:{pinned}-alpine")), "{pinned}");
    let last = dockerfile.rsplit("\nFROM ").next().unwrap();
    assert!(last.starts_with("scratch\n") && last.contains("\nUSER 65532:65532\n"), "{last}");
    for copied in ["COPY --from=root /image/ /", "COPY --from=build /capasg /capasg"] {
        assert!(last.contains(copied), "{last}");
    }
    assert!(dockerfile.contains("cargo build --locked --release"));
    let pod = &deployment()["spec"]["template"]["spec"]["securityContext"];
    assert_eq!((&pod["runAsUser"], &pod["runAsGroup"]), (&65532.into(), &65532.into()));
}
