//! The form of the notes of events.

/// A message of a condition as the note of an event: with a capital letter at its start, and without a full stop at its
/// end.
#[must_use]
pub fn event_note(message: &str) -> String {
    let mut letters = message.strip_suffix('.').unwrap_or(message).chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_begins_with_a_capital_letter_and_has_no_full_stop_at_its_end() {
        assert_eq!(
            event_note("a call failed: x. The controller retries."),
            "A call failed: x. The controller retries"
        );
        assert_eq!(event_note("Done"), "Done");
        assert_eq!(event_note(""), "");
    }
}
