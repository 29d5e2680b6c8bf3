//! Wildcards in texts and ARNs.

/// Whether a text matches a pattern, in which `*` stands for any characters and `?` for one.
pub(super) fn like(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut next) = (0, 0);
    // Where the last `*` is, and what of the text it stands for so far ends.
    let mut star: Option<(usize, usize)> = None;
    while next < text.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, next));
            at += 1;
        } else if pattern.get(at).is_some_and(|own| *own == '?' || *own == text[next]) {
            at += 1;
            next += 1;
        } else if let Some((from, end)) = star {
            star = Some((from, end + 1));
            at = from + 1;
            next = end + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|own| *own == '*')
}

/// Whether an ARN matches a pattern: each of its six parts by itself, so that no wildcard reaches over a colon, except in
/// the last part.
pub(super) fn arn_like(pattern: &str, arn: &str) -> bool {
    let (pattern, arn): (Vec<&str>, Vec<&str>) =
        (pattern.splitn(6, ':').collect(), arn.splitn(6, ':').collect());
    pattern.len() == 6 && arn.len() == 6 && pattern.iter().zip(&arn).all(|(own, part)| like(own, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_any_characters_or_for_one() {
        for (pattern, text) in [
            ("a*", "a"),
            ("*a*b*", "xaxxb"),
            ("a?c", "abc"),
            ("*", ""),
            ("autoscaling:*Scaling*", "autoscaling:CreateAutoScalingGroup"),
        ] {
            assert!(like(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a?c", "ac"), ("a*b", "abc"), ("", "a"), ("a", "A")] {
            assert!(!like(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn no_wildcard_reaches_into_the_next_part_of_an_arn() {
        let group =
            "arn:aws:autoscaling:eu-west-1:111122223333:autoScalingGroup:6e1c:autoScalingGroupName/a-b";
        assert!(arn_like("arn:*:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/*", group));
        assert!(arn_like("arn:aws:autoscaling:eu-*:111122223333:*", group));
        assert!(!arn_like("arn:aws:autoscaling:*:autoScalingGroup:*", group), "five parts");
        assert!(!arn_like("arn:aws:ec2:*:*:*", group));
        assert!(!arn_like("arn:aws:ec2:*:*:instance/*", "*"), "an action without resource-level permissions");
    }
}
