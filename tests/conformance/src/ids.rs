//! IDs of rules and numbers of pains: in the names of tests, in the lines above them, and in comments of the product.

use anyhow::{Result, ensure};

/// The line above a test that lists the rules it shows: `// Rules: D8, D10`.
const RULES: &str = "Rules:";
/// The same for weaknesses and pains: `// Pains: W11, P45`.
const PAINS: &str = "Pains:";

/// The rules whose IDs lead the name of a test: `d7_d10_scale_in` shows D7 and D10.
#[must_use]
pub fn leading(name: &str) -> Vec<String> {
    all_leading(name).filter(|id| !is_pain(id)).collect()
}

/// The weaknesses and pains whose numbers lead the name of a test, after those of rules: `d8_w11_p45_annotations` is about
/// W11 and P45.
#[must_use]
pub fn pains(name: &str) -> Vec<String> {
    all_leading(name).filter(|id| is_pain(id)).collect()
}

/// The IDs that a comment above a test lists, if it is such a line. `comment` is what follows the slashes.
///
/// # Errors
/// When something in the list is no ID, or is one of the other list.
pub fn listed(comment: &str) -> Result<Vec<String>> {
    let comment = comment.trim();
    let (list, pains) = match (comment.strip_prefix(RULES), comment.strip_prefix(PAINS)) {
        (Some(list), _) => (list, false),
        (None, Some(list)) => (list, true),
        (None, None) => return Ok(Vec::new()),
    };
    let ids: Vec<String> = list.split(',').map(|id| id.trim().to_owned()).collect();
    for id in &ids {
        ensure!(
            is_id(id, char::is_ascii_uppercase) && is_pain(id) == pains,
            "{id:?} is no ID for this list: {comment}"
        );
    }
    Ok(ids)
}

/// Whether an ID is that of a weakness or a pain.
#[must_use]
pub fn is_pain(id: &str) -> bool {
    id.starts_with(['W', 'P'])
}

fn all_leading(name: &str) -> impl Iterator<Item = String> {
    name.split('_').take_while(|part| is_id(part, char::is_ascii_lowercase)).map(str::to_uppercase)
}

/// The IDs that stand in parentheses in a comment: `(B5, B6)`, `(J2: see there)`.
#[must_use]
pub fn in_parentheses(text: &str) -> Vec<String> {
    let inside = text.split('(').skip(1).filter_map(|rest| rest.split_once(')').map(|(inside, _)| inside));
    inside
        .flat_map(|inside| inside.split(|c: char| !c.is_ascii_alphanumeric()))
        .filter(|word| is_id(word, char::is_ascii_uppercase))
        .map(str::to_owned)
        .collect()
}

/// One letter and a number.
fn is_id(word: &str, letter: fn(&char) -> bool) -> bool {
    let mut chars = word.chars();
    let number = chars.next().filter(letter).map(|_| chars.as_str());
    number.is_some_and(|number| (1..=2).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_names() {
        assert_eq!(leading("d7_d10_scale_in_deletes_machines"), ["D7", "D10"]);
        assert_eq!(leading("a_pool_runs"), [""; 0]);
        assert_eq!(leading("a1b_a2"), [""; 0]);
        assert_eq!(leading("b6"), ["B6"]);
        assert_eq!(leading("m7i_large_is_a_type"), [""; 0]);
        assert_eq!(leading("d8_w11_p45_annotations"), ["D8"]);
        assert_eq!(pains("d8_w11_p45_annotations"), ["W11", "P45"]);
    }

    #[test]
    fn ids_are_listed_above_a_test() {
        assert_eq!(listed(" Rules: D8, D10").unwrap(), ["D8", "D10"]);
        assert_eq!(listed(" Pains: W11,P45 ").unwrap(), ["W11", "P45"]);
        assert_eq!(listed(" The rules: D8").unwrap(), [""; 0]);
        assert!(listed(" Rules: D8 and D10").is_err());
        assert!(listed(" Rules: D8, P45").is_err());
        assert!(listed(" Pains: 45").is_err());
        assert!(listed(" Rules:").is_err());
    }

    #[test]
    fn ids_stand_in_parentheses() {
        assert_eq!(in_parentheses("status.ready (B6), unlike (B5, B7; see Ready)."), ["B6", "B5", "B7"]);
        assert_eq!(in_parentheses("B6 alone, (an M5 or m5 type)"), ["M5"]);
        assert_eq!(in_parentheses("an open (B6"), [""; 0]);
        assert_eq!(in_parentheses("(EC2) (S3x) (v1)"), [""; 0]);
    }
}
