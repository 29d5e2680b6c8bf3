//! What users get wrong, in which words they learn it, and what corrects it.

use capasg_e2e::MAP;
use capasg_environment::{Chart, ChartRepository};
use serde_json::{Value, json};

pub const STRICT: Chart<'static> = Chart {
    name: "strict",
    files: &[
        ("templates/map.yaml", MAP),
        ("values.schema.json", r#"{"type": "object", "properties": {"replicas": {"type": "integer"}}}"#),
    ],
};
pub const PICKY: Chart<'static> = Chart {
    name: "picky",
    files: &[
        ("templates/map.yaml", MAP),
        ("templates/check.yaml", "# {{ required \"greeting\" .Values.greeting }}\n"),
    ],
};
/// No node fits its pod.
pub const SLOW: Chart<'static> = Chart {
    name: "slow",
    files: &[(
        "templates/deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  selector:\n    \
         matchLabels:\n      app: slow\n  template:\n    metadata:\n      labels:\n        app: slow\n    spec:\n      \
         nodeSelector:\n        e2e: none\n      containers:\n      - name: main\n        image: main\n",
    )],
};

/// One mistake, with its own `HelmChartProxy`.
pub struct Case {
    /// The name of the `HelmChartProxy` and of its release.
    pub name: &'static str,
    /// What the spec has beyond the chart `demo` in version 1.0.0.
    pub spec: Value,
    /// The outcome of the operation of Helm that fails; none if Helm is not called.
    pub outcome: Option<&'static str>,
    /// Reason and message of the condition that says it.
    pub words: (&'static str, &'static str),
    /// What corrects the spec.
    pub correction: Value,
}

/// All that fail on the Cluster that responds.
pub fn cases(private: &ChartRepository) -> [Case; 7] {
    let failed = "HelmInstallOrUpgradeFailed";
    [
        Case {
            name: "unknown",
            spec: json!({"chartName": "nope"}),
            outcome: Some("ChartNotFound"),
            words: (
                failed,
                "ChartNotFound: helm pull: the repository has no such chart or version; check chartName, repoURL and \
                 version",
            ),
            correction: json!({"chartName": "demo"}),
        },
        Case {
            name: "locked",
            spec: json!({
                "repoURL": private.url, "credentials": {"secret": {"name": "login"}},
                "tlsConfig": {"caSecret": {"name": "authority"}},
            }),
            outcome: Some("RepositoryRejectsCredentials"),
            words: (
                failed,
                "RepositoryRejectsCredentials: helm repo update: the repository rejects the request; check \
                 spec.credentials and the permissions of that user",
            ),
            // The Secret is corrected, and this has the operation repeated at once.
            correction: json!({"options": {"timeout": "2m"}}),
        },
        Case {
            name: "strict",
            spec: json!({"chartName": "strict", "valuesTemplate": "replicas: many\n"}),
            outcome: Some("ValuesInvalid"),
            words: (
                failed,
                "ValuesInvalid: helm install: the values do not match the schema of the chart; compare them by helm lint \
                 --values",
            ),
            correction: json!({"valuesTemplate": "replicas: 3\n"}),
        },
        Case {
            name: "picky",
            spec: json!({"chartName": "picky"}),
            outcome: Some("TemplateFailed"),
            words: (
                failed,
                "TemplateFailed: helm install: a template of the chart cannot be rendered with these values; check them \
                 by helm template --values (at picky/templates/check.yaml:1:5)",
            ),
            correction: json!({"valuesTemplate": "greeting: hello\n"}),
        },
        Case {
            name: "slow",
            spec: json!({"chartName": "slow", "options": {"wait": true, "timeout": "2s"}}),
            outcome: Some("NotReadyInTime"),
            words: (
                failed,
                "NotReadyInTime: helm install: the resources were not ready within options.timeout; check the Pods of the \
                 release. It is tried again",
            ),
            correction: json!({"options": {"wait": false}}),
        },
        Case {
            name: "foreign",
            spec: json!({}),
            outcome: None,
            words: (
                failed,
                "another actor installed a release of this name; uninstall it, change releaseName, or set \
                 options.takeOwnership to take it over",
            ),
            correction: json!({"options": {"takeOwnership": true}}),
        },
        Case {
            name: "template",
            spec: json!({"valuesTemplate": "a: {{ .Cluster.metadata.name.wrong }}\n"}),
            outcome: None,
            words: ("ValueParsingFailed", "Cluster prod: valuesTemplate cannot be rendered: "),
            correction: json!({"valuesTemplate": "a: b\n"}),
        },
    ]
}
