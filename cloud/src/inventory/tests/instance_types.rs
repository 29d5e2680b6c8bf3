//! Instance types are read together, once.

use std::{collections::BTreeSet, time::Duration};

use futures::future::join_all;

use super::{Bench, bench};
use crate::{
    CloudError, InstanceType, InstanceTypes, Result,
    testing::{Upset, pass},
};

const API: &str = "DescribeInstanceTypes";

fn kind(name: &str) -> InstanceType {
    InstanceType {
        name: name.to_owned(),
        vcpus: 2,
        memory_mib: 8192,
        architectures: BTreeSet::from(["x86_64".to_owned()]),
        gpus: Vec::new(),
        neuron_devices: 0,
        neuron_cores: 0,
    }
}

fn offer(bench: &Bench, names: &[&str]) {
    for name in names {
        bench.cloud.world().instance_types.insert((*name).to_owned(), kind(name));
    }
}

async fn get(bench: &Bench, names: &[&str]) -> Result<InstanceTypes> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    bench.inventory.instance_types(&names).await
}

fn names(found: &InstanceTypes) -> (Vec<&str>, Vec<&str>) {
    let offered = found.offered.iter().map(|kind| kind.name.as_str()).collect();
    (offered, found.unknown.iter().map(String::as_str).collect())
}

// Rules: G5
#[tokio::test(start_paused = true)]
async fn pools_that_ask_together_share_a_read_that_is_kept_for_a_day() -> Result<()> {
    let bench = bench();
    offer(&bench, &["a.large", "b.large", "c.large"]);
    bench.cloud.upset(API, [Upset::Slow(Duration::from_secs(1))]);
    let asked: Vec<Vec<&str>> = (0..500)
        .map(|pool| if pool % 2 == 0 { vec!["b.large", "a.large"] } else { vec!["c.large"] })
        .collect();
    let found = join_all(asked.iter().map(|names| get(&bench, names))).await;
    assert_eq!(names(found[0].as_ref().unwrap()), (vec!["b.large", "a.large"], vec![]));
    // The first reads for itself, the second for all that came meanwhile.
    assert_eq!(bench.cloud.count(API), 2);
    pass(Duration::from_hours(20)).await;
    get(&bench, &["a.large", "c.large"]).await?;
    assert_eq!(bench.cloud.count(API), 2, "what is known is not read again");
    pass(Duration::from_hours(5)).await;
    get(&bench, &["a.large"]).await?;
    assert_eq!(bench.cloud.count(API), 3, "but once a day");
    assert!(bench.cloud.calls(API)[2].args.contains(&"c.large".to_owned()), "together with what others use");
    Ok(())
}

// Rules: G5
#[tokio::test(start_paused = true)]
async fn types_that_the_region_does_not_offer_are_named_and_looked_for_again() -> Result<()> {
    let bench = bench();
    offer(&bench, &["a.large"]);
    for _ in 0..3 {
        let found = get(&bench, &["x.large", "a.large"]).await?;
        assert_eq!(names(&found), (vec!["a.large"], vec!["x.large"]));
    }
    assert_eq!(bench.cloud.count(API), 1);
    offer(&bench, &["x.large"]);
    pass(Duration::from_mins(11)).await;
    let found = get(&bench, &["x.large", "a.large"]).await?;
    assert_eq!(names(&found), (vec!["x.large", "a.large"], vec![]));
    assert_eq!(bench.cloud.calls(API)[1].args, ["x.large"], "only that one is read again");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_is_repeated_by_its_class_and_takes_nothing_back() -> Result<()> {
    let bench = bench();
    offer(&bench, &["a.large"]);
    let denied = CloudError::answered(API, 403, "UnauthorizedOperation", "You are not authorized");
    bench.cloud.upset(API, [Upset::Fail(denied)]);
    assert!(get(&bench, &["a.large"]).await.is_err());
    pass(Duration::from_secs(29)).await;
    assert!(get(&bench, &["a.large"]).await.is_err(), "a missing permission is not asked for all the time");
    assert_eq!(bench.cloud.count(API), 1);
    pass(Duration::from_secs(2)).await;
    let denied = CloudError::answered(API, 403, "UnauthorizedOperation", "You are not authorized");
    bench.cloud.upset(API, [Upset::Fail(denied)]);
    assert!(get(&bench, &["a.large"]).await.is_err());
    pass(Duration::from_secs(59)).await;
    assert!(get(&bench, &["a.large"]).await.is_err());
    assert_eq!(bench.cloud.count(API), 2, "the delay doubles");
    pass(Duration::from_secs(2)).await;
    get(&bench, &["a.large"]).await?;
    pass(Duration::from_hours(25)).await;
    bench.cloud.upset(API, [Upset::LoseReply]);
    let found = get(&bench, &["a.large"]).await?;
    assert_eq!(names(&found), (vec!["a.large"], vec![]), "a type does not change while AWS cannot be asked");
    bench.cloud.upset(API, [Upset::LoseReply]);
    assert!(get(&bench, &["b.large"]).await.is_err());
    pass(Duration::from_secs(3)).await;
    assert_eq!(names(&get(&bench, &["b.large"]).await?), (vec![], vec!["b.large"]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn names_that_nobody_uses_any_more_are_forgotten() -> Result<()> {
    let bench = bench();
    offer(&bench, &["a.large", "b.large"]);
    get(&bench, &["a.large", "b.large"]).await?;
    pass(Duration::from_hours(25)).await;
    get(&bench, &["a.large"]).await?;
    assert_eq!(bench.cloud.calls(API)[1].args, ["a.large"]);
    Ok(())
}
