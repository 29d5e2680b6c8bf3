//! IDs of rules, in the names of tests and in comments.

/// The rules whose IDs lead the name of a test: `d7_d10_scale_in` shows D7 and D10.
#[must_use]
pub fn leading(name: &str) -> Vec<String> {
    all_leading(name).filter(|id| !is_pain(id)).collect()
}

/// The weaknesses and pains whose numbers lead the name of a test, after those of rules: `d8_w11_p45_marks` is about W11
/// and P45.
#[must_use]
pub fn pains(name: &str) -> Vec<String> {
    all_leading(name).filter(|id| is_pain(id)).collect()
}

fn all_leading(name: &str) -> impl Iterator<Item = String> {
    name.split('_').take_while(|part| is_id(part, char::is_ascii_lowercase)).map(str::to_uppercase)
}

fn is_pain(id: &str) -> bool {
    id.starts_with(['W', 'P'])
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
        assert_eq!(leading("d8_w11_p45_marks"), ["D8"]);
        assert_eq!(pains("d8_w11_p45_marks"), ["W11", "P45"]);
    }

    #[test]
    fn ids_stand_in_parentheses() {
        assert_eq!(in_parentheses("status.ready (B6), unlike (B5, B7; see Ready)."), ["B6", "B5", "B7"]);
        assert_eq!(in_parentheses("B6 alone, (an M5 or m5 type)"), ["M5"]);
        assert_eq!(in_parentheses("an open (B6"), [""; 0]);
        assert_eq!(in_parentheses("(EC2) (S3x) (v1)"), [""; 0]);
    }
}
