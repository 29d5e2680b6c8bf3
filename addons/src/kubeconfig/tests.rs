//! What is kept of a kubeconfig, and what is rejected.

use proptest::prelude::*;

use super::*;

fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\npreferences: {{}}\ncurrent-context: admin@prod\nclusters:\n- name: other\n  \
         cluster: {{server: 'https://other.example', proxy-url: 'http://proxy.example'}}\n- name: prod\n  cluster: \
         {cluster}\nusers:\n- name: other\n  user: {{exec: {{command: evil}}}}\n- name: admin\n  user: {user}\n\
         contexts:\n- name: admin@prod\n  context: {{cluster: prod, user: admin, namespace: x}}\n"
    )
}

const SERVER: &str = "server: 'https://10.0.0.1:6443'";

fn rejected(cluster: &str, user: &str) -> String {
    Kubeconfig::parse(&kubeconfig(cluster, user)).unwrap_err().to_string()
}

#[test]
fn the_current_context_is_rewritten_and_everything_else_is_left_out() {
    let cluster =
        format!("{{{SERVER}, certificate-authority-data: Q0E=, tls-server-name: api, extensions: []}}");
    let user =
        "{client-certificate-data: QQ==, client-key-data: Qg==, token: t0ken, as: admin, as-groups: [a]}";
    let parsed = Kubeconfig::parse(&kubeconfig(&cluster, user)).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "workload",
        "clusters": [{"name": "workload", "cluster": {
            "server": "https://10.0.0.1:6443", "certificate-authority-data": "Q0E=", "tls-server-name": "api",
        }}],
        "users": [{"name": "workload", "user": {
            "client-certificate-data": "QQ==", "client-key-data": "Qg==", "token": "t0ken",
            "as": "admin", "as-groups": ["a"],
        }}],
        "contexts": [{"name": "workload", "context": {"cluster": "workload", "user": "workload"}}],
    });
    assert_eq!(serde_json::from_str::<Value>(parsed.text()).unwrap(), expected);
    assert_eq!(format!("{parsed:?}"), "Kubeconfig(..)");
    assert_eq!(Kubeconfig::parse(parsed.text()).unwrap(), parsed, "what is rewritten stays");
}

#[test]
fn exec_is_rejected() {
    let message = rejected(&format!("{{{SERVER}}}"), "{exec: {command: /bin/sh, args: [-c, id]}}");
    assert_eq!(message, "the kubeconfig must not contain exec: it runs a program in the pod of the manager");
}

#[test]
fn an_auth_provider_is_rejected() {
    let message =
        rejected(&format!("{{{SERVER}}}"), "{auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}}");
    assert!(message.starts_with("the kubeconfig must not contain auth-provider: it runs"), "{message}");
}

#[test]
fn a_token_file_is_rejected() {
    let message = rejected(&format!("{{{SERVER}}}"), "{tokenFile: /var/run/secrets/token}");
    assert!(message.contains("tokenFile: it names a file of the manager; use token"), "{message}");
}

#[test]
fn paths_of_files_are_rejected() {
    for member in ["client-certificate", "client-key"] {
        let message = rejected(&format!("{{{SERVER}}}"), &format!("{{{member}: /etc/passwd}}"));
        assert!(message.contains(&format!("{member}: it names a file of the manager")), "{message}");
    }
    let message = rejected(&format!("{{{SERVER}, certificate-authority: ca.crt}}"), "{token: a}");
    assert!(message.contains("use certificate-authority-data"), "{message}");
}

#[test]
fn a_proxy_is_rejected() {
    let message = rejected(&format!("{{{SERVER}, proxy-url: 'http://proxy.example'}}"), "{token: a}");
    assert!(message.contains("must not contain proxy-url: it sends the credentials"), "{message}");
}

#[test]
fn addresses_without_tls_or_with_credentials_are_rejected() {
    for server in [
        "http://10.0.0.1",
        "https://",
        "https://user:secret@10.0.0.1",
        "unix:///run/api",
        "10.0.0.1:6443",
        "",
    ] {
        let message = rejected(&format!("{{server: '{server}'}}"), "{token: a}");
        assert!(message.contains("must begin with https://") && !message.contains("secret"), "{message}");
    }
}

#[test]
fn incomplete_and_invalid_texts_are_rejected_without_their_content() {
    let parse = |text: &str| Kubeconfig::parse(text).unwrap_err();
    assert_eq!(parse("t0ken: [\n"), KubeconfigError::Yaml);
    assert_eq!(parse(""), KubeconfigError::Missing("context"));
    assert_eq!(parse("- a"), KubeconfigError::Missing("context"));
    let text = kubeconfig(&format!("{{{SERVER}}}"), "{token: a}");
    assert_eq!(parse(&text.replace("cluster: prod, ", "")), KubeconfigError::Missing("cluster"));
    assert_eq!(parse(&text.replace("user: admin, ", "")), KubeconfigError::Missing("user"));
    assert_eq!(parse(&"#".repeat(LARGEST + 1)), KubeconfigError::TooLarge);
}

#[test]
fn neither_merge_keys_nor_aliases_bring_back_what_is_rejected() {
    let merged = format!("{{<<: {{proxy-url: 'http://proxy.example'}}, {SERVER}}}");
    let text = kubeconfig(&merged, "{token: a}");
    assert!(!Kubeconfig::parse(&text).is_ok_and(|parsed| parsed.text().contains("proxy")));
    let levels = (1..40).map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}]", level - 1));
    let bomb = levels.collect::<Vec<_>>().join(
        "
",
    );
    let text = format!("a0: &a0 [x, x]\n{bomb}\n{}", kubeconfig(&format!("{{{SERVER}}}"), "{token: a}"));
    assert_eq!(Kubeconfig::parse(&text), Err(KubeconfigError::Yaml), "it is not expanded");
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text in ".{0,200}", member in "[a-z-]{0,12}", value in "[a-z:/@{}\\[\\]0-9. -]{0,40}") {
        let _ = Kubeconfig::parse(&text);
        let _ = Kubeconfig::parse(&kubeconfig(&format!("{{{SERVER}, {member}: {value}}}"), &value));
        let _ = Kubeconfig::parse(&kubeconfig(&value, "{token: a}").replace(&member, &value));
    }
}
