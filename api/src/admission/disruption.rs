//! Times that a schema can only half check: schedules, time zones and instants.

use super::FieldError;
use crate::{
    ASGMachinePoolSpec,
    pool::{Window, WindowError, rollout_instant},
};

/// Refuses windows that cannot be read or never open, and a `spec.rollout.after` that is no point in time. What stays as
/// it was `before` is let through: nothing may keep others from writing to a pool that got past (M6).
#[must_use]
pub fn times_can_be_read(spec: &ASGMachinePoolSpec, before: Option<&ASGMachinePoolSpec>) -> Vec<FieldError> {
    if before.is_some_and(|before| before.disruption == spec.disruption && before.rollout == spec.rollout) {
        return Vec::new();
    }
    let windows = spec.disruption.iter().flat_map(|disruption| &disruption.windows).enumerate();
    let mut errors: Vec<FieldError> =
        windows.filter_map(|(index, window)| Some(refusal(index, &Window::new(window).err()?))).collect();
    let after = spec.rollout.as_ref().and_then(|rollout| rollout.after.as_deref());
    if after.is_some_and(|after| rollout_instant(after).is_none()) {
        errors.push(FieldError {
            field: "spec.rollout.after",
            message: "is no point in time; write it as 2026-03-01T00:00:00Z".to_owned(),
        });
    }
    errors
}

fn refusal(index: usize, error: &WindowError) -> FieldError {
    let (field, text) = match error {
        WindowError::Schedule(_) | WindowError::Never(_) => {
            ("spec.disruption.windows[].schedule", "schedule: ")
        }
        WindowError::TimeZone(_) => ("spec.disruption.windows[].timeZone", "timeZone: "),
    };
    let message = error.to_string();
    let message = message.strip_prefix(text).unwrap_or(&message);
    FieldError { field, message: format!("windows[{index}]: {message}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(spec: &serde_json::Value) -> Vec<(&'static str, String)> {
        let mut whole = json!({
            "region": "eu-west-1", "subnets": [], "instanceTypes": [], "machine": { "image": {} },
        });
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec: ASGMachinePoolSpec = serde_json::from_value(whole).unwrap();
        assert!(times_can_be_read(&spec, Some(&spec)).is_empty(), "an edit of something else");
        let new = ASGMachinePoolSpec { region: spec.region.clone(), ..ASGMachinePoolSpec::default() };
        let errors = times_can_be_read(&spec, Some(&new));
        assert_eq!(errors, times_can_be_read(&spec, None));
        errors.into_iter().map(|error| (error.field, error.message)).collect()
    }

    #[test]
    fn a_window_that_cannot_be_read_is_refused_by_its_field() {
        let windows = json!({ "disruption": { "windows": [
            { "schedule": "0 22 * * 1-5", "durationSeconds": 3600 },
            { "schedule": "0 25 * * *", "durationSeconds": 3600 },
            { "schedule": "0 0 31 2 *", "durationSeconds": 3600 },
            { "schedule": "0 0 * * *", "durationSeconds": 3600, "timeZone": "Europe/Dubln" },
        ] } });
        assert_eq!(
            refused(&windows),
            [
                (
                    "spec.disruption.windows[].schedule",
                    "windows[1]: \"0 25 * * *\" is not a cron schedule of five fields, such as \"0 22 * * 1-5\"".to_owned()
                ),
                ("spec.disruption.windows[].schedule", "windows[2]: \"0 0 31 2 *\" never comes".to_owned()),
                (
                    "spec.disruption.windows[].timeZone",
                    "windows[3]: there is no time zone \"Europe/Dubln\"; use a name of the IANA database, such as \
                     Europe/Dublin"
                        .to_owned()
                ),
            ]
        );
    }

    #[test]
    fn after_must_be_a_point_in_time() {
        assert_eq!(refused(&json!({ "rollout": { "after": "2026-02-30T00:00:00Z" } })).len(), 1);
        assert!(refused(&json!({ "rollout": { "after": "2026-02-28T00:00:00+01:00" } })).is_empty());
        assert!(refused(&json!({})).is_empty());
    }
}
