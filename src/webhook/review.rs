//! `AdmissionReview` (`admission.k8s.io/v1`), as far as it is used here.

use std::borrow::Cow;

use capasg_api::admission::FieldError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// What the API server sends.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    #[serde(default)]
    api_version: String,
    /// The request.
    pub request: Option<Request>,
}

impl Asked {
    /// The request, if it is of a known version.
    #[must_use]
    pub fn question(self) -> Option<Request> {
        self.request.filter(|_| self.api_version == API_VERSION)
    }
}

/// One request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// What the response must repeat.
    pub uid: String,
    /// The operation.
    #[serde(default)]
    pub operation: String,
    /// The new object; null if it is deleted.
    #[serde(default)]
    pub object: Value,
    /// The existing object; null if it is created.
    #[serde(default)]
    pub old_object: Value,
}

/// The answer to a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Why it is rejected; empty allows it.
    pub errors: Vec<FieldError>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// The response to the API server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replied {
    api_version: &'static str,
    kind: &'static str,
    response: Response,
}

#[derive(Debug, Serialize)]
struct Response {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Refusal>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A rejection, as the API server words its own.
#[derive(Debug, Serialize)]
struct Refusal {
    status: &'static str,
    reason: &'static str,
    code: u16,
    message: String,
    details: Details,
}

#[derive(Debug, Serialize)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Debug, Serialize)]
struct Cause {
    reason: &'static str,
    field: Cow<'static, str>,
    message: String,
}

impl Answer {
    /// The response to the request with this uid.
    #[must_use]
    pub fn to(self, uid: String) -> Replied {
        let status = (!self.errors.is_empty()).then(|| refusal(self.errors));
        let response = Response { uid, allowed: status.is_none(), status, warnings: self.warnings };
        Replied { api_version: API_VERSION, kind: KIND, response }
    }
}

fn refusal(errors: Vec<FieldError>) -> Refusal {
    let texts: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.field, error.message)).collect();
    let cause =
        |error: FieldError| Cause { reason: "FieldValueInvalid", field: error.field, message: error.message };
    Refusal {
        status: "Failure",
        reason: "Invalid",
        code: 422,
        message: texts.join("; "),
        details: Details { causes: errors.into_iter().map(cause).collect() },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_names_the_field_and_answers_the_question() {
        let error = FieldError { field: "spec.group.name".into(), message: "is taken".to_owned() };
        let reply = Answer { errors: vec![error], warnings: Vec::new() }.to("a-uid".to_owned());
        assert_eq!(
            serde_json::to_value(reply).unwrap(),
            json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": {
                    "uid": "a-uid", "allowed": false,
                    "status": {
                        "status": "Failure", "reason": "Invalid", "code": 422,
                        "message": "spec.group.name: is taken",
                        "details": {"causes": [
                            {"reason": "FieldValueInvalid", "field": "spec.group.name", "message": "is taken"},
                        ]},
                    },
                },
            })
        );
    }

    #[test]
    fn nothing_to_say_allows() {
        let reply = serde_json::to_value(Answer::default().to("a-uid".to_owned())).unwrap();
        assert_eq!(reply["response"], json!({"uid": "a-uid", "allowed": true}));
    }

    #[test]
    fn another_version_is_no_question() {
        let asked = |version: &str| -> Asked {
            let question = json!({"apiVersion": version, "request": {"uid": "a-uid", "operation": "CREATE"}});
            serde_json::from_value(question).unwrap()
        };
        assert!(asked("admission.k8s.io/v1beta1").question().is_none());
        assert_eq!(asked("admission.k8s.io/v1").question().unwrap().uid, "a-uid");
    }
}
