//! The console output of one instance, read with the credentials of the user, and masked. It is printed and not stored.

use anyhow::{Context as _, Result, bail};
use capasg_cloud_aws::AwsConnector;
use chrono::SecondsFormat;

use super::{mask::Mask, pool::PoolWhy};

/// The last lines are those that tell why a Node does not join.
const LINES: usize = 300;
/// The most that is printed of one line.
const LINE_LENGTH: usize = 1000;

/// Reads the console output of an instance of a pool, without its secrets.
///
/// # Errors
/// If the credentials are of another account than the group, or AWS rejects a call. Without the user data nothing is printed,
/// since they could not be masked.
pub async fn read(aws: &AwsConnector, pool: &PoolWhy, instance: &str) -> Result<String> {
    let region = pool.region.as_str();
    let own = aws.connect(region).account().await;
    let own = own.context("cannot read to which account your AWS credentials belong")?;
    if let Some(problem) = other_account(&own, pool) {
        bail!(problem);
    }
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

/// Why credentials of an account cannot read the instances of a pool.
fn other_account(own: &str, pool: &PoolWhy) -> Option<String> {
    let account = pool.account.as_deref().filter(|account| *account != own)?;
    let named = pool.status.identity.as_ref().and_then(|used| used.kind.zip(used.name.as_ref()));
    let through = named.map_or_else(String::new, |(kind, name)| format!(" with {kind} {name}"));
    let PoolWhy { namespace, name, .. } = pool;
    Some(format!(
        "your AWS credentials belong to account {own}, but the group of ASGMachinePool {namespace}/{name} is in account \
         {account}, which the controller uses{through}: use credentials of account {account}, for example with AWS_PROFILE"
    ))
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
    use std::net::Ipv4Addr;

    use capasg_api::ASGMachinePool;
    use capasg_fake_aws::{LogFilter, Simulator, http::Server};
    use capasg_test_objects::{minimal_pool, with};
    use serde_json::json;

    use super::*;
    use crate::extension::tests::identities::connector;

    #[tokio::test(flavor = "multi_thread")]
    async fn credentials_of_another_account_are_named_and_nothing_is_read() {
        let arn = "arn:aws:autoscaling:eu-west-1:999988887777:autoScalingGroup:1:autoScalingGroupName/a";
        let object = with(minimal_pool(), "spec/providerID", json!(arn));
        let identity = json!({"kind": "ASGIdentity", "name": "tenant", "origin": "Cluster"});
        let object = with(object, "metadata", json!({"name": "a", "namespace": "teams"}));
        let object = with(object, "status", json!({"identity": identity}));
        let pool: ASGMachinePool = serde_json::from_value(object).unwrap();
        let pool = PoolWhy::new(&pool, None, None, &[], &[], chrono::Utc::now());
        let simulator = Simulator::default();
        let server = Server::start(simulator.clone(), (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let error = read(&connector(&server).await, &pool, "i-0123456789abcdef0").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "your AWS credentials belong to account 123456789012, but the group of ASGMachinePool teams/a is in account \
             999988887777, which the controller uses with ASGIdentity tenant: use credentials of account 999988887777, for \
             example with AWS_PROFILE"
        );
        let calls = simulator.log(&LogFilter::default());
        assert!(calls.iter().all(|call| call.action == "GetCallerIdentity"), "{calls:?}");
        assert_eq!(other_account("999988887777", &pool), None);
    }

    #[test]
    fn the_last_lines_are_shown_and_none_is_endless() {
        let text: Vec<String> = (0..LINES + 5).map(|number| format!("line {number}\n")).collect();
        let all = shown(&text.concat(), &Mask::new(b""));
        assert!(all.starts_with("  (5 earlier lines left out)\n  line 5\n"), "{all}");
        let long = shown(&"é ".repeat(LINE_LENGTH), &Mask::new(b""));
        assert!(long.len() < LINE_LENGTH + 10 && long.ends_with(" …\n"), "{long}");
    }
}
