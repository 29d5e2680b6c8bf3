//! The policies of IAM that the documentation has, with what `capasg iam print` adds for roles of instance profiles, adoptions
//! and identities.

use capasg_api::names::tags;
use serde_json::{Value, json};

const MANAGER: &str = include_str!("../../../docs/iam-policy.json");
const EXTENSION: &str = include_str!("../../../docs/iam-policy-extension.json");

/// What the manager may do.
///
/// # Errors
/// If a file is no JSON.
pub fn manager_policies() -> Result<[Value; 2], serde_json::Error> {
    let unowned = format!("aws:ResourceTag/{}", tags::OWNER_ID);
    let owned = format!("aws:RequestTag/{}", tags::OWNER_ID);
    let more = json!({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*"},
        {"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"], "Resource": "*"},
        {
            "Effect": "Allow", "Action": "autoscaling:CreateOrUpdateTags", "Resource": "*",
            "Condition": {"Null": {unowned: "true", owned: "false"}},
        },
    ]});
    Ok([serde_json::from_str(MANAGER)?, more])
}

/// What the Runtime Extension may do.
///
/// # Errors
/// If the file is no JSON.
pub fn extension_policies() -> Result<[Value; 1], serde_json::Error> {
    Ok([serde_json::from_str(EXTENSION)?])
}
