//! I2: what `clusterctl describe cluster` shows of our objects, word for word.

use anyhow::Result;
use capasg_e2e::{CLUSTER, Rig, Setup, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::Fault;
use serde_json::json;

/// Our objects in the tree, with all their conditions, without what differs from run to run: ages, the namespace, and the
/// ids of instances. Core's own objects are left out, since each of its versions tells of them in words of its own.
async fn described(rig: &Rig<'_>) -> Result<String> {
    let args = [
        "describe",
        "cluster",
        CLUSTER,
        "--show-conditions=all",
        "--echo",
        "--grouping=false",
        "--color=false",
    ];
    let mut shown = rig.scenario.clusterctl(&args).await?;
    shown = shown.replace(&rig.scenario.namespace, "<namespace>").replace(&rig.scenario.region, "<region>");
    let mut instances: Vec<String> = rig.instances().into_iter().map(|instance| instance.id).collect();
    instances.sort();
    for (number, id) in instances.iter().enumerate() {
        shown = shown.replace(id, &format!("<instance {}>", number + 1));
    }
    let mut ours: Vec<Vec<String>> = Vec::new();
    let mut within = false;
    for line in shown.lines().map(without_tree) {
        // Below an object stand its conditions, then the next object, which has a namespace.
        let object = line.contains(" <namespace>/");
        within = if object { line.starts_with("ASGMachine") } else { within };
        if within {
            let words = line.split_whitespace().map(|word| if is_age(word) { "<age>" } else { word });
            let line = words.collect::<Vec<_>>().join(" ");
            match ours.last_mut().filter(|_| !object) {
                Some(conditions) => conditions.push(line),
                None => ours.push(vec![line]),
            }
        }
    }
    // Where an object stands in the tree is another thing that versions of core see differently.
    ours.sort();
    Ok(ours.concat().join("\n"))
}

/// The line without its branches. Before v1.14 it says `role - Kind/name` of an object, and since then `Kind namespace/name`.
fn without_tree(line: &str) -> String {
    let line = line.trim_start_matches(|one| " │├└─".contains(one));
    let is_object = line.split_whitespace().take(3).any(|word| word.contains('/'));
    if line.contains(" <namespace>/") || !is_object {
        return line.to_owned();
    }
    let line = line.split_once(" - ").map_or(line, |(_, object)| object);
    line.replacen('/', " <namespace>/", 1)
}

/// Such as `12s`, `3m4s` or `2d`.
fn is_age(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h', 'd'])
        && word.chars().all(|one| one.is_ascii_digit() || "smhd".contains(one))
}

// Rules: I2, J7
#[tokio::test]
async fn clusterctl_describe_shows_the_conditions_of_a_pool() -> Result<()> {
    rule("i2-describe", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let text = eventually("the tree says that all is well", async || {
            let text = described(rig).await?;
            let well = text.lines().filter(|line| line.starts_with("Ready True Ready")).count() == 3
                && !text.contains("Unknown");
            Ok(Look::from_option(well.then(|| text.clone()), text))
        })
        .await?;
        insta::assert_snapshot!("healthy", text);

        // What AWS refuses stands there in AWS's own words.
        let words = "The subnet ID 'subnet-0c1d2e3f' does not exist";
        let refused = Fault::error("UpdateAutoScalingGroup", 400, "ValidationError", words).times(None);
        rig.scenario.simulator().add_fault(refused.in_region(&rig.scenario.region));
        rig.patch_pool("workers", &json!({"spec": {"subnets": [{"id": "subnet-0c1d2e3f"}]}})).await?;
        let text = eventually("the tree says what is wrong", async || {
            let text = described(rig).await?;
            Ok(Look::from_option(text.contains("subnet-0c1d2e3f").then(|| text.clone()), text))
        })
        .await?;
        insta::assert_snapshot!("wrong_subnet", text);
        rig.scenario.simulator().clear_faults(Some(&rig.scenario.region));
        rig.delete("workers").await
    })
    .await
}

#[test]
fn ages_are_distinguished_from_other_words() {
    assert!(["12s", "3m4s", "2d"].into_iter().all(is_age));
    assert!(!["s", "2", "m7i.large", "2x", "1/2"].into_iter().any(is_age));
}
