//! The console output of one instance, read with the credentials of the user, and masked. It is printed and not stored.

use anyhow::{Context as _, Result};
use capasg_cloud_aws::AwsConnector;
use chrono::SecondsFormat;

use super::mask::Mask;

/// The last lines are those that tell why a Node does not join.
const LINES: usize = 300;
/// The most that is printed of one line.
const LINE_LENGTH: usize = 1000;

/// Reads the console output of an instance, without its secrets.
///
/// # Errors
/// If AWS rejects a call. Without the user data nothing is printed, since they could not be masked.
pub async fn read(region: &str, instance: &str) -> Result<String> {
    let aws = AwsConnector::load().await;
    let hint =
        "your AWS credentials require the permissions ec2:GetConsoleOutput and ec2:DescribeInstanceAttribute";
    let user_data = aws.user_data(region, instance).await;
    let user_data = user_data.with_context(|| {
        format!("cannot read the user data of {instance} in {region}, to mask them; {hint}")
    })?;
    let output = aws.console_output(region, instance).await;
    let output = output
        .with_context(|| format!("cannot read the console output of {instance} in {region}; {hint}"))?;
    let Some(text) = output.text else {
        return Ok(format!(
            "EC2 has no console output of {instance} yet; it takes some minutes after the launch\n"
        ));
    };
    let at = output
        .read_at
        .map_or_else(String::new, |at| format!(" at {}", at.to_rfc3339_opts(SecondsFormat::Secs, true)));
    Ok(format!("Console of {instance}{at}, secrets masked\n{}", shown(&text, &Mask::new(&user_data))))
}

/// The last lines, masked.
fn shown(text: &str, mask: &Mask) -> String {
    let masked = mask.apply(text);
    let lines: Vec<&str> = masked.lines().collect();
    let left_out = lines.len().saturating_sub(LINES);
    let first = (left_out > 0).then(|| format!("  ({left_out} earlier lines left out)\n"));
    let last = lines.iter().skip(left_out).map(|line| {
        let end = line.floor_char_boundary(LINE_LENGTH);
        format!("  {}{}\n", &line[..end], if end < line.len() { " …" } else { "" })
    });
    first.into_iter().chain(last).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_and_none_is_endless() {
        let text: Vec<String> = (0..LINES + 5).map(|number| format!("line {number}\n")).collect();
        let all = shown(&text.concat(), &Mask::new(b""));
        assert!(all.starts_with("  (5 earlier lines left out)\n  line 5\n"), "{all}");
        let long = shown(&"é ".repeat(LINE_LENGTH), &Mask::new(b""));
        assert!(long.len() < LINE_LENGTH + 10 && long.ends_with(" …\n"), "{long}");
    }
}
