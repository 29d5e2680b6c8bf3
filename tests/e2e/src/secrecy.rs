//! Rule H8 in every test: bootstrap data is where it has to be, and nowhere else.

use anyhow::{Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use crate::{Rig, setup::marker};

impl Rig<'_> {
    /// Rule H8 in every test: what the bootstrap Secret holds is in no log, event or object of ours.
    ///
    /// # Errors
    /// When it is; the error says where.
    pub async fn keeps_bootstrap_data_secret(&self) -> Result<()> {
        let canary = marker(self.scenario);
        let mut places = vec![("the manager's log", self.manager_log())];
        for kind in ["asgmachinepools", "asgmachines", "machinepools", "machines", "events"] {
            places.push((kind, self.scenario.kubectl(&["get", kind, "--output=json"]).await?));
        }
        for (place, text) in places {
            ensure!(!text.contains(&canary), "{place} holds bootstrap data");
            for encoded in base64_forms(&canary) {
                ensure!(!text.contains(&encoded), "{place} holds encoded bootstrap data");
            }
        }
        Ok(())
    }
}

/// What base64 makes of the middle of a text, wherever in a longer one it stands.
fn base64_forms(text: &str) -> Vec<String> {
    (0..3)
        .map(|offset| {
            let shifted = format!("{}{text}", "-".repeat(offset));
            let encoded = STANDARD_NO_PAD.encode(shifted);
            // The first and the last characters depend on the neighbours.
            encoded[4..encoded.len() - 4].to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_text_is_found_at_every_offset() {
        for before in ["", "a", "ab", "abc", "abcd"] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}canary-of-a-test-0451 and more"));
            assert!(
                base64_forms("canary-of-a-test-0451").iter().any(|form| encoded.contains(form)),
                "{before}"
            );
        }
    }
}
