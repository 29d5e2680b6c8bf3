//! Times that a schema cannot validate completely: schedules, time zones and instants.

use super::FieldError;
use crate::{
    ASGMachinePoolSpec,
    pool::{Window, WindowError, rollout_instant},
};

/// The most windows that the schema accepts; what else a list has is not read.
const MOST: usize = 20;

/// Rejects invalid windows, windows that never open, and a `spec.rollout.after` that is not a time. Fields that equal those of
/// `before` are accepted: an invalid pool that exists must not prevent other writes to it (M6).
#[must_use]
pub fn validate_times(spec: &ASGMachinePoolSpec, before: Option<&ASGMachinePoolSpec>) -> Vec<FieldError> {
    if before.is_some_and(|before| before.disruption == spec.disruption && before.rollout == spec.rollout) {
        return Vec::new();
    }
    let windows = spec.disruption.iter().flat_map(|disruption| &disruption.windows).take(MOST).enumerate();
    let mut errors: Vec<FieldError> =
        windows.filter_map(|(index, window)| Some(rejection(index, &Window::new(window).err()?))).collect();
    let after = spec.rollout.as_ref().and_then(|rollout| rollout.after.as_deref());
    if after.is_some_and(|after| rollout_instant(after).is_none()) {
        errors.push(FieldError {
            field: "spec.rollout.after".into(),
            message: "is not a time in RFC 3339, such as 2026-03-01T00:00:00Z".to_owned(),
        });
    }
    errors
}

fn rejection(index: usize, error: &WindowError) -> FieldError {
    let (field, text) = match error {
        WindowError::Schedule(_) | WindowError::Never(_) => ("schedule", "schedule: "),
        WindowError::TimeZone(_) => ("timeZone", "timeZone: "),
    };
    let message = error.to_string();
    FieldError {
        field: format!("spec.disruption.windows[{index}].{field}").into(),
        message: message.strip_prefix(text).unwrap_or(&message).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rejected(spec: &serde_json::Value) -> Vec<(String, String)> {
        let mut complete = json!({
            "region": "eu-west-1", "subnets": [], "instanceTypes": [], "machine": { "image": {}, "securityGroups": [] },
        });
        complete.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec: ASGMachinePoolSpec = serde_json::from_value(complete).unwrap();
        assert!(validate_times(&spec, Some(&spec)).is_empty(), "an edit of something else");
        let new = ASGMachinePoolSpec { region: spec.region.clone(), ..ASGMachinePoolSpec::default() };
        let errors = validate_times(&spec, Some(&new));
        assert_eq!(errors, validate_times(&spec, None));
        errors.into_iter().map(|error| (error.field.into_owned(), error.message)).collect()
    }

    #[test]
    fn an_invalid_window_is_rejected_with_its_field() {
        let windows = json!({ "disruption": { "windows": [
            { "schedule": "0 22 * * 1-5", "durationSeconds": 3600 },
            { "schedule": "0 25 * * *", "durationSeconds": 3600 },
            { "schedule": "0 0 31 2 *", "durationSeconds": 3600 },
            { "schedule": "0 0 * * *", "durationSeconds": 3600, "timeZone": "Europe/Dubln" },
        ] } });
        let expected = [
            (
                "spec.disruption.windows[1].schedule",
                "\"0 25 * * *\" is not a cron schedule with five fields, such as \"0 22 * * 1-5\"",
            ),
            ("spec.disruption.windows[2].schedule", "\"0 0 31 2 *\" matches no day"),
            (
                "spec.disruption.windows[3].timeZone",
                "the time zone \"Europe/Dubln\" does not exist; use a name of the IANA time zone database, such \
                 as Europe/Dublin",
            ),
        ];
        assert_eq!(rejected(&windows), expected.map(|(field, text)| (field.to_owned(), text.to_owned())));
    }

    #[test]
    fn after_must_be_a_time() {
        assert_eq!(rejected(&json!({ "rollout": { "after": "2026-02-30T00:00:00Z" } })).len(), 1);
        assert!(rejected(&json!({ "rollout": { "after": "2026-02-28T00:00:00+01:00" } })).is_empty());
        assert!(rejected(&json!({})).is_empty());
    }
}
