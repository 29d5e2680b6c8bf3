//! `AdmissionReview` (`admission.k8s.io/v1`), as far as it is used here.

use std::borrow::Cow;

use anyhow::{Context as _, Result, anyhow};
use capasg_api::admission::FieldError;
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// The longest uid and operation, in bytes. That of the API server has 36.
const LONGEST: usize = 128;

/// The longest text of an answer, in bytes, and the most errors.
const LONGEST_TEXT: usize = 1024;
const MOST_ERRORS: usize = 32;

/// What the API server sends. `O` is the new object, `P` the existing one; what is not needed is `IgnoredAny`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>, P: Deserialize<'de>"))]
struct Asked<O, P> {
    #[serde(default)]
    api_version: String,
    request: Option<Request<O, P>>,
}

/// One request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>, P: Deserialize<'de>"))]
struct Request<O, P> {
    uid: String,
    #[serde(default)]
    operation: String,
    /// Null if the object is deleted.
    #[serde(default = "Option::default")]
    object: Option<O>,
    /// Null if the object is created.
    #[serde(default = "Option::default")]
    old_object: Option<P>,
}

/// A request whose objects are read as what they are when a rule needs them.
pub struct Review<'a> {
    body: &'a [u8],
    /// What the response must repeat.
    pub uid: String,
    /// The operation.
    pub operation: String,
}

impl<'a> Review<'a> {
    /// The request in a body, if it is one of a known version.
    #[must_use]
    pub fn of(body: &'a [u8]) -> Option<Self> {
        let asked: Asked<IgnoredAny, IgnoredAny> = serde_json::from_slice(body).ok()?;
        let Request { uid, operation, .. } = asked.request.filter(|_| asked.api_version == API_VERSION)?;
        let is_short = uid.len() <= LONGEST && operation.len() <= LONGEST;
        is_short.then_some(Self { body, uid, operation })
    }

    /// The new object.
    ///
    /// # Errors
    /// If there is none of this kind.
    pub fn object<O: DeserializeOwned>(&self) -> Result<O> {
        self.objects::<O, IgnoredAny>()?.object.context("there is no object")
    }

    /// The existing object.
    ///
    /// # Errors
    /// If there is none of this kind.
    pub fn old_object<P: DeserializeOwned>(&self) -> Result<P> {
        self.objects::<IgnoredAny, P>()?.old_object.context("there is no oldObject")
    }

    /// What is wrong is told by its place: its text is the sender's.
    fn objects<O: DeserializeOwned, P: DeserializeOwned>(&self) -> Result<Request<O, P>> {
        let asked: Asked<O, P> = serde_json::from_slice(self.body)
            .map_err(|error| anyhow!("not a valid object at column {}", error.column()))?;
        asked.request.context("there is no request")
    }
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
    /// The response to the request with this uid, bounded since texts may quote the request.
    #[must_use]
    pub fn to(mut self, uid: String) -> Replied {
        self.errors.truncate(MOST_ERRORS);
        let messages = self.errors.iter_mut().map(|error| &mut error.message);
        for text in messages.chain(&mut self.warnings) {
            text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        }
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
    fn what_is_no_review_of_the_version_is_no_request() {
        let review = |version: &str, uid: &str| {
            json!({"apiVersion": version, "request": {"uid": uid, "operation": "CREATE"}}).to_string()
        };
        let uid = |body: String| Review::of(body.as_bytes()).map(|review| review.uid);
        assert_eq!(uid(review(API_VERSION, "a-uid")).as_deref(), Some("a-uid"));
        assert_eq!(uid(review("admission.k8s.io/v1beta1", "a-uid")), None);
        assert_eq!(uid(review(API_VERSION, &"a".repeat(LONGEST + 1))), None, "it would be repeated");
        for other in ["", "[]", "{}", "null", "{\"request\": 1}"] {
            assert_eq!(uid(other.to_owned()), None, "{other}");
        }
    }

    #[test]
    fn an_object_of_another_kind_is_told_without_its_content() {
        let body =
            json!({"apiVersion": API_VERSION, "request": {"uid": "a", "object": "a-secret"}}).to_string();
        let review = Review::of(body.as_bytes()).unwrap();
        let error = review.object::<capasg_api::ASGMachinePool>().unwrap_err().to_string();
        assert!(error.starts_with("not a valid object at column ") && !error.contains("secret"), "{error}");
        assert_eq!(review.old_object::<u8>().unwrap_err().to_string(), "there is no oldObject");
    }
}
