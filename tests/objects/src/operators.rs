//! `ASGIdentity` and `ASGGuard`: objects that are accepted, and those that each rule rejects.

use serde_json::{Value, json};

use super::{
    case::{CelCase, ValidCase, refused, taken},
    edit::with,
};

const ROLE: &str = "arn:aws:iam::123456789012:role/capasg";

fn object(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": kind,
        "metadata": { "name": "team-a" },
        "spec": spec,
    })
}

fn role() -> Value {
    object("ASGIdentity", &json!({ "type": "Role", "role": { "arn": ROLE } }))
}

/// At least one wrong object for every rule.
pub fn operator_cases() -> Vec<CelCase> {
    let secret = "spec.secret: is required with type Secret, and not allowed with other types";
    let no_role =
        "spec.role: is required with type Role and type WebIdentity, and not allowed with other types";
    let web = "spec.role: externalID, sessionTags and sourceIdentityRef are not allowed with type WebIdentity: \
               AssumeRoleWithWebIdentity does not accept them";
    vec![
        refused("identity-without-role", object("ASGIdentity", &json!({ "type": "Role" })), no_role),
        refused("identity-with-role-of-no-use", with(role(), "spec/type", "Controller"), no_role),
        refused("identity-without-secret", object("ASGIdentity", &json!({ "type": "Secret" })), secret),
        refused(
            "identity-with-secret-of-no-use",
            with(role(), "spec/secret", json!({ "name": "keys" })),
            secret,
        ),
        refused(
            "identity-web-external-id",
            with(with(role(), "spec/type", "WebIdentity"), "spec/role/externalID", "abc"),
            web,
        ),
        refused(
            "identity-chain-too-long",
            with(
                with(role(), "spec/role/sourceIdentityRef", json!({ "name": "hub" })),
                "spec/role/durationSeconds",
                7200,
            ),
            "spec.role.durationSeconds: must be at most 3600 with sourceIdentityRef: AWS limits sessions of a role \
             that is assumed with another role to one hour",
        ),
        refused(
            "identity-role-of-no-arn",
            with(role(), "spec/role/arn", "capasg"),
            "spec.role.arn: must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/capasg",
        ),
    ]
}

/// Objects that are accepted.
pub fn valid_operators() -> Vec<ValidCase> {
    let full = json!({
        "type": "Role",
        "role": {
            "arn": "arn:aws-us-gov:iam::123456789012:role/path/capasg", "externalID": "tenant/a",
            "sessionName": "capasg@a", "sessionTags": { "team": "a" }, "durationSeconds": 3600,
            "sourceIdentityRef": { "name": "hub" },
        },
        "allowedNamespaces": { "names": ["a", "b"], "selector": { "matchLabels": { "team": "a" } } },
        "selectionPolicy": "Default",
        "eventQueue": "https://sqs.eu-west-1.amazonaws.com/123456789012/capasg",
    });
    let every = json!({ "selector": { "matchExpressions": [
        { "key": "kubernetes.io/metadata.name", "operator": "Exists" }] } });
    let guard = json!({
        "namespaces": every, "regions": ["eu-*"], "vpcIDs": ["vpc-1"], "subnetIDs": [], "securityGroupIDs": [],
        "instanceProfiles": ["*"], "sshKeyNames": [], "ssmParameterPrefixes": ["/aws/service/"], "kmsKeyIDs": [],
        "groupNames": ["a-*"], "adoption": "Allowed",
        "limits": { "maxReplicasPerPool": 10, "maxPools": 5, "maxReplicas": 50 },
    });
    vec![
        taken("identity-controller", object("ASGIdentity", &json!({ "type": "Controller" }))),
        taken("identity-role", object("ASGIdentity", &full)),
        taken("identity-web", with(role(), "spec/type", "WebIdentity")),
        taken(
            "identity-secret",
            object("ASGIdentity", &json!({ "type": "Secret", "secret": { "name": "keys" } })),
        ),
        taken("guard-maximal", object("ASGGuard", &guard)),
        taken("guard-minimal", object("ASGGuard", &json!({ "namespaces": {} }))),
    ]
}
