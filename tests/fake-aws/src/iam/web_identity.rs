//! Tokens of Kubernetes service accounts; their signatures are not verified.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::WebIdentity;
use crate::ApiError;

/// What a token says of its bearer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) issuer: String,
    pub(crate) subject: String,
    audiences: Vec<String>,
    expires: Option<i64>,
}

impl Claims {
    /// Reads the payload of a token.
    ///
    /// # Errors
    /// `InvalidIdentityToken` for anything but a JSON web token with a subject.
    pub(crate) fn of(token: &str) -> Result<Self, ApiError> {
        Self::read(token).ok_or_else(|| {
            let words = "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)";
            ApiError::refused("InvalidIdentityToken", words)
        })
    }

    fn read(token: &str) -> Option<Self> {
        let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
        let claims: Value = serde_json::from_slice(&payload).ok()?;
        let audiences = match claims.get("aud") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        Some(Self {
            issuer: claims.get("iss").and_then(Value::as_str).unwrap_or_default().to_owned(),
            subject: claims.get("sub").and_then(Value::as_str)?.to_owned(),
            audiences,
            expires: claims.get("exp").and_then(Value::as_i64),
        })
    }

    /// The first audience.
    pub(crate) fn audience(&self) -> Option<&str> {
        self.audiences.first().map(String::as_str)
    }

    /// # Errors
    /// `ExpiredTokenException`.
    pub(crate) fn check_time(&self, now: DateTime<Utc>) -> Result<(), ApiError> {
        match self.expires {
            Some(expires) if expires <= now.timestamp() => Err(ApiError::refused(
                "ExpiredTokenException",
                format!(
                    "Token expired: current date/time {} must be before the expiration date/time {expires}",
                    now.timestamp()
                ),
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn satisfies(&self, wanted: &WebIdentity) -> bool {
        wanted.issuer.as_ref().is_none_or(|issuer| *issuer == self.issuer)
            && wanted.subject == self.subject
            && self.audiences.contains(&wanted.audience)
    }
}
