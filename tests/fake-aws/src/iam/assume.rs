//! The operations of STS.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{Caller, Iam, Policy, Role, authorize::denied, role, session::Wanted, web_identity::Claims};
use crate::{ApiError, Service, Tree};

/// The longest session in seconds of a role that a session of another role assumes ("role chaining").
const CHAINED: i64 = 3_600;

/// Who asks STS, and when.
pub(crate) struct Asked<'a> {
    /// Absent only where nobody has to sign.
    pub(crate) caller: Option<&'a Caller>,
    /// Virtual time.
    pub(crate) now: DateTime<Utc>,
    /// The time by which tokens of others expire: the wall clock at an edge.
    pub(crate) token_time: DateTime<Utc>,
}

/// `GetCallerIdentity`.
pub(crate) fn caller_identity(_: &mut Iam, asked: &Asked<'_>, _: &Tree) -> Result<Tree, ApiError> {
    let caller = asked.caller.ok_or_else(unsigned)?;
    Ok(Tree::new().with("UserId", &caller.id).with("Account", &caller.account).with("Arn", &caller.arn))
}

/// `AssumeRole`.
pub(crate) fn assume_role(iam: &mut Iam, asked: &Asked<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let (arn, name) = names(params)?;
    let caller = asked.caller.ok_or_else(unsigned)?;
    let admitted = match iam.roles.get(arn) {
        Some(role) => role.admits(caller, params),
        None => iam.any_role,
    };
    if !admitted {
        let words =
            format!("User: {} is not authorized to perform: sts:AssumeRole on resource: {arn}", caller.arn);
        return Err(denied(Service::Sts, &words));
    }
    let is_chained = caller.role.is_some();
    let seconds = duration(params, iam.roles.get(arn), is_chained)?;
    let (tags, transitive) = tags(caller, params)?;
    let policy = session_policy(params)?;
    iam.issue(Wanted { role: arn, name, seconds, tags, transitive, policy }, asked.now)
}

/// `AssumeRoleWithWebIdentity`.
pub(crate) fn with_web_identity(iam: &mut Iam, asked: &Asked<'_>, params: &Tree) -> Result<Tree, ApiError> {
    let (arn, name) = names(params)?;
    let claims = Claims::of(params.text_of("WebIdentityToken").unwrap_or_default())?;
    claims.check_time(asked.token_time)?;
    let role = iam.roles.get(arn);
    let admitted = match role {
        Some(role) => role.admits_token(&claims),
        None => iam.any_role,
    };
    if !admitted {
        return Err(denied(Service::Sts, "Not authorized to perform sts:AssumeRoleWithWebIdentity"));
    }
    let seconds = duration(params, role, false)?;
    let (tags, transitive) = (BTreeMap::new(), BTreeSet::new());
    let policy = session_policy(params)?;
    let reply = iam.issue(Wanted { role: arn, name, seconds, tags, transitive, policy }, asked.now)?;
    Ok(reply
        .with("SubjectFromWebIdentityToken", &claims.subject)
        .with("Provider", &claims.issuer)
        .with_opt("Audience", claims.audience()))
}

fn unsigned() -> ApiError {
    ApiError::new(403, "MissingAuthenticationToken", "Request is missing Authentication Token")
}

/// The subject of the token in a request.
pub(crate) fn bearer(params: &Tree) -> Option<String> {
    let claims = Claims::of(params.text_of("WebIdentityToken")?).ok()?;
    Some(claims.subject)
}

/// The session policy, of at most 2 048 characters (`AssumeRole` of the AWS STS API reference).
fn session_policy(params: &Tree) -> Result<Option<Policy>, ApiError> {
    let Some(text) = params.text_of("Policy") else { return Ok(None) };
    if text.chars().count() > 2_048 {
        let words = "1 validation error detected: Value at 'policy' failed to satisfy constraint: Member must have length less \
                     than or equal to 2048";
        return Err(ApiError::validation(words.to_owned()));
    }
    let policy = serde_json::from_str(text).map_err(|error| error.to_string());
    let policy = policy.and_then(|policy| Policy::parse(&policy));
    policy.map(Some).map_err(|why| ApiError::new(400, "MalformedPolicyDocument", &why))
}

/// The role's ARN and the session's name.
fn names(params: &Tree) -> Result<(&str, &str), ApiError> {
    let arn = params.text_of("RoleArn").unwrap_or_default();
    let name = params.text_of("RoleSessionName").unwrap_or_default();
    if role::parts(arn).is_none() {
        return Err(ApiError::validation(format!("{arn} is invalid")));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte)) {
        return Err(ApiError::validation(format!(
            "1 validation error detected: Value '{name}' at 'roleSessionName' failed to satisfy constraint: Member must \
             satisfy regular expression pattern: [\\w+=,.@-]*"
        )));
    }
    Ok((arn, name))
}

fn duration(params: &Tree, role: Option<&Role>, is_chained: bool) -> Result<i64, ApiError> {
    let seconds = params.number_of("DurationSeconds").unwrap_or(CHAINED);
    if is_chained && seconds > CHAINED {
        return Err(ApiError::validation(
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.",
        ));
    }
    if role.is_some_and(|role| seconds > role.max_session_seconds) {
        return Err(ApiError::validation(
            "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
        ));
    }
    Ok(seconds)
}

/// The tags of a session: those that the caller's own session passes on, and those of the request, which may not
/// replace them.
fn tags(caller: &Caller, params: &Tree) -> Result<(BTreeMap<String, String>, BTreeSet<String>), ApiError> {
    let mut tags = caller.tags.clone();
    tags.retain(|key, _| caller.transitive.contains(key));
    let mut transitive: BTreeSet<String> = tags.keys().cloned().collect();
    let mut given = BTreeSet::new();
    for tag in params.items_of("Tags") {
        let key = tag.text_of("Key").unwrap_or_default().to_owned();
        if transitive.contains(&key) {
            return Err(ApiError::refused(
                "InvalidParameterValue",
                format!(
                    "One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from the calling session: {key}"
                ),
            ));
        }
        if !given.insert(key.to_lowercase()) {
            return Err(ApiError::refused(
                "InvalidParameterValue",
                "Duplicate tag keys found. Please note that Tag keys are case insensitive.",
            ));
        }
        tags.insert(key, tag.text_of("Value").unwrap_or_default().to_owned());
    }
    for key in params.texts_of("TransitiveTagKeys") {
        if !tags.contains_key(&key) {
            return Err(ApiError::refused(
                "InvalidParameterValue",
                "The specified transitive tag key must be included in the requested tags.",
            ));
        }
        transitive.insert(key);
    }
    Ok((tags, transitive))
}
