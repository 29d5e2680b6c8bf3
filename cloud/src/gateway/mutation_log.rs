//! One log line for each change that was sent to AWS: the call, what it concerns, and its result. Of what is sent, only names,
//! IDs and the desired capacity are logged: launch templates contain bootstrap data.

use crate::{Result, Write, WriteReply, Written, gateway::observer::outcome};

/// Logs a change once it is answered, or when its caller gives it up.
pub(super) struct MutationLog<'a> {
    write: &'a Write,
    outcome: &'static str,
    code: Option<String>,
    request_id: Option<String>,
}

impl<'a> MutationLog<'a> {
    pub(super) fn of(write: &'a Write) -> Self {
        Self { write, outcome: "Cancelled", code: None, request_id: None }
    }

    /// The answer without AWS's request ID.
    pub(super) fn answered(mut self, answer: Result<WriteReply>) -> Result<Written> {
        self.outcome = outcome(&answer);
        match answer {
            Ok(WriteReply { written, request_id }) => {
                self.request_id = request_id;
                Ok(written)
            }
            Err(mut error) => {
                self.request_id = error.request_id.take();
                self.code = Some(error.code.clone());
                Err(error)
            }
        }
    }
}

impl Drop for MutationLog<'_> {
    fn drop(&mut self) {
        let instances = self.write.instances();
        let instances = (!instances.is_empty()).then(|| instances.join(","));
        tracing::info!(
            api = self.write.api(),
            group = self.write.group(),
            launch_template = self.write.launch_template(),
            instances = instances.as_deref(),
            desired_capacity = self.write.desired_capacity(),
            outcome = self.outcome,
            code = self.code.as_deref(),
            request_id = self.request_id.as_deref(),
            "write call to AWS"
        );
    }
}
