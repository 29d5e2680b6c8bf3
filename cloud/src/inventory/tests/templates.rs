//! Launch templates of many pools: one listing, and single reads where that does not suffice.

use std::time::Duration;

use futures::future::join_all;

use super::{Bench, bench};
use crate::{
    CloudError, LaunchTemplate, Template, Write,
    testing::{FakeCloud, TEMPLATE_TAG, Upset, pass, version},
};

const TEMPLATES: &str = "DescribeLaunchTemplates";
const VERSIONS: &str = "DescribeLaunchTemplateVersions";

/// A launch template with that many versions.
fn put(cloud: &FakeCloud, name: &str, versions: i64, is_ours: bool) {
    let tags = is_ours.then(|| (TEMPLATE_TAG.to_owned(), "me".to_owned()));
    let template = LaunchTemplate {
        id: format!("lt-{name}"),
        name: name.to_owned(),
        latest_version: versions,
        default_version: 1,
        tags: tags.into_iter().collect(),
    };
    let versions = (1..=versions).map(|number| version(number, "v", "ami-1")).collect();
    cloud.world().templates.insert(name.to_owned(), (template, versions));
}

fn counts(cloud: &FakeCloud) -> (usize, usize) {
    (cloud.count(TEMPLATES), cloud.count(VERSIONS))
}

async fn read(bench: &Bench, name: &str) -> Template {
    Template::clone(&bench.inventory.template(name).await.unwrap().unwrap())
}

fn numbers(template: &Template) -> Vec<i64> {
    template.versions.keys().copied().collect()
}

#[tokio::test(start_paused = true)]
async fn the_templates_of_all_pools_are_listed_together() {
    let bench = bench();
    for number in 0..100 {
        put(&bench.cloud, &format!("t-{number}"), 1 + number % 3, true);
    }
    let names: Vec<String> = (0..100).map(|number| format!("t-{number}")).collect();
    let read_at_once = join_all(names.iter().map(|name| read(&bench, name))).await;
    assert_eq!(counts(&bench.cloud), (1, 1));
    for template in read_at_once {
        let latest = template.template.latest_version;
        assert_eq!(numbers(&template), [latest]);
        assert_eq!(template.has_all_versions, latest == 1);
    }
    bench.inventory.forget_template("t-2");
    let template = read(&bench, "t-2").await;
    assert_eq!((numbers(&template), template.has_all_versions), (vec![1, 2, 3], true));
    assert_eq!(counts(&bench.cloud), (2, 2), "it is read by itself");
    assert!(bench.inventory.template("new").await.unwrap().is_none());
    assert_eq!(counts(&bench.cloud), (3, 2), "so is one that was not listed");
}

#[tokio::test(start_paused = true)]
async fn templates_that_cannot_be_listed_are_read_by_themselves() {
    for api in [TEMPLATES, VERSIONS] {
        let bench = bench();
        put(&bench.cloud, "a", 2, true);
        put(&bench.cloud, "b", 2, true);
        let denied = CloudError::answered(api, 403, "UnauthorizedOperation", "no");
        bench.cloud.upset(api, [Upset::Fail(denied)]);
        for name in ["a", "b"] {
            assert_eq!(numbers(&read(&bench, name).await), [1, 2], "{api}");
        }
        assert_eq!(bench.cloud.count(TEMPLATES), 3, "{api}");
    }
    // One without our tag, and one whose latest version the listing does not show yet.
    let bench = bench();
    put(&bench.cloud, "a", 2, true);
    put(&bench.cloud, "untagged", 2, false);
    bench.cloud.world().templates.get_mut("a").unwrap().0.latest_version = 3;
    for name in ["a", "untagged"] {
        assert!(read(&bench, name).await.has_all_versions, "{name}");
    }
}

/// The versions of other launch templates of the account fill pages of the same listing.
#[tokio::test(start_paused = true)]
async fn a_listing_follows_no_more_pages_than_reads_of_each_would_cost() {
    let bench = bench();
    for number in 0..30 {
        put(&bench.cloud, &format!("other-{number}"), 1, false);
    }
    put(&bench.cloud, "p", 2, true);
    put(&bench.cloud, "q", 2, true);
    bench.cloud.world().page = 10;
    for name in ["p", "q"] {
        assert_eq!(numbers(&read(&bench, name).await), [1, 2]);
    }
    assert_eq!(counts(&bench.cloud), (3, 4), "two pages, and then each by itself");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_listing_keeps_the_versions_that_are_known() {
    let bench = bench();
    for name in ["a", "b", "c"] {
        put(&bench.cloud, name, 2, true);
        bench.inventory.forget_template(name);
        read(&bench, name).await;
        bench.inventory.forget_template(name);
        assert!(read(&bench, name).await.has_all_versions);
    }
    pass(Duration::from_mins(50)).await;
    // Another actor creates a version of b, and CAPASG one of c right after the listing.
    put(&bench.cloud, "b", 3, true);
    pass(Duration::from_mins(20)).await;
    let before = counts(&bench.cloud);
    let (a, b) = (read(&bench, "a").await, read(&bench, "b").await);
    assert_eq!((numbers(&a), a.has_all_versions), (vec![1, 2], true));
    assert_eq!((numbers(&b), b.has_all_versions), (vec![1, 2, 3], false), "others may have been created");
    let created = Write::CreateLaunchTemplateVersion {
        id: "lt-c".to_owned(),
        data: super::lookups::data("ami-2"),
        description: "ours".to_owned(),
        client_token: "token".to_owned(),
    };
    bench.inventory.write(&created).await.unwrap();
    let c = read(&bench, "c").await;
    assert_eq!((numbers(&c), c.has_all_versions), (vec![1, 2, 3], true), "the listing is older");
    let after = counts(&bench.cloud);
    assert_eq!((after.0 - before.0, after.1 - before.1), (2, 2), "a listing, and a read of c");
}
