//! `--event-queue`: which queue the events of a region come from.

use std::{collections::BTreeMap, str::FromStr};

use capasg_cloud::QueueName;
use thiserror::Error;

/// The event queues by region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQueues {
    /// Of a region.
    by_region: BTreeMap<String, QueueName>,
    /// Of every other region: a name.
    everywhere: Option<QueueName>,
}

/// Why a queue was rejected.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum InvalidQueue {
    /// Neither a name nor a URL, or an empty region.
    #[error("`{0}` is not NAME, URL, REGION=NAME or REGION=URL")]
    Form(String),
    /// A URL that does not name its region.
    #[error("`{0}` does not name its region: write REGION={0}")]
    NoRegion(String),
    /// Two queues for the same region.
    #[error("two event queues are configured for region {0}")]
    Twice(String),
    /// Two queues for every region.
    #[error("two event queues are configured without a region: write REGION=NAME for one of them")]
    TwiceEverywhere,
}

impl FromStr for EventQueues {
    type Err = InvalidQueue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut queues = Self::default();
        // clusterctl has no empty values, so that the Deployment says `none`.
        let given = |one: &&str| !one.is_empty() && *one != "none";
        for one in text.split(',').map(str::trim).filter(given) {
            queues.add(one)?;
        }
        Ok(queues)
    }
}

impl EventQueues {
    fn add(&mut self, text: &str) -> Result<(), InvalidQueue> {
        let form = || InvalidQueue::Form(text.to_owned());
        let (region, queue) = match text.split_once('=') {
            Some((region, queue)) if is_region(region) => (Some(region.to_owned()), queue),
            Some(_) => return Err(form()),
            None => (None, text),
        };
        if is_name(queue) {
            return self.put(region, QueueName::Name(queue.to_owned()));
        }
        let host = host_of(queue).ok_or_else(form)?;
        let region =
            region.or_else(|| region_of(host)).ok_or_else(|| InvalidQueue::NoRegion(text.to_owned()))?;
        self.put(Some(region), QueueName::Url(queue.to_owned()))
    }

    fn put(&mut self, region: Option<String>, queue: QueueName) -> Result<(), InvalidQueue> {
        let before = match &region {
            Some(region) => self.by_region.insert(region.clone(), queue),
            None => self.everywhere.replace(queue),
        };
        match before {
            None => Ok(()),
            Some(_) => Err(region.map_or(InvalidQueue::TwiceEverywhere, InvalidQueue::Twice)),
        }
    }

    /// The queues of several flags.
    ///
    /// # Errors
    /// If two of them name a queue for the same region.
    pub fn joined<'a>(all: impl IntoIterator<Item = &'a Self>) -> Result<Self, InvalidQueue> {
        let mut joined = Self::default();
        for one in all {
            if let Some(queue) = &one.everywhere {
                joined.put(None, queue.clone())?;
            }
            for (region, queue) in &one.by_region {
                joined.put(Some(region.clone()), queue.clone())?;
            }
        }
        Ok(joined)
    }

    /// The queue of a region.
    #[must_use]
    pub fn of(&self, region: &str) -> Option<&QueueName> {
        self.by_region.get(region).or(self.everywhere.as_ref())
    }
}

/// As SQS names queues. Names of first-in-first-out queues have the suffix `.fifo`: EventBridge delivers to them, but their
/// order is of no use here.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !text.is_empty() && text.len() <= 80 && text.chars().all(plain)
}

fn is_region(text: &str) -> bool {
    text.contains('-') && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// The host of a queue's URL, which ends in account and name.
fn host_of(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let mut parts = rest.split('/');
    let (host, account, name) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = account.len() == 12 && account.chars().all(|c| c.is_ascii_digit());
    (digits && is_name(name) && parts.next().is_none()).then_some(host)
}

/// `sqs.<region>.amazonaws.com`, in China with `.cn` behind it, or `<region>.queue.amazonaws.com`.
fn region_of(host: &str) -> Option<String> {
    let host = host.strip_suffix(".cn").unwrap_or(host).strip_suffix(".amazonaws.com")?;
    let region = host
        .strip_prefix("sqs.")
        .or_else(|| host.strip_prefix("sqs-fips."))
        .or_else(|| host.strip_suffix(".queue"))?;
    is_region(region).then(|| region.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/capasg";

    fn queue(text: &str, region: &str) -> Option<QueueName> {
        text.parse::<EventQueues>().unwrap().of(region).cloned()
    }

    #[test]
    fn a_name_is_for_every_region_and_a_url_for_its_own() {
        let name = |text: &str| Some(QueueName::Name(text.to_owned()));
        let url = |text: &str| Some(QueueName::Url(text.to_owned()));
        assert_eq!(queue("", "eu-west-1"), None);
        assert_eq!(queue("none", "eu-west-1"), None);
        assert_eq!(queue("capasg", "eu-west-1"), name("capasg"));
        assert_eq!(queue(URL, "eu-west-1"), url(URL));
        assert_eq!(queue(URL, "us-east-1"), None);
        let both = format!("capasg,{URL}, us-east-1=other");
        assert_eq!(queue(&both, "eu-west-1"), url(URL));
        assert_eq!(queue(&both, "us-east-1"), name("other"));
        assert_eq!(queue(&both, "eu-north-1"), name("capasg"));
        let vpc = "http://127.0.0.1:4566/123456789012/capasg";
        assert_eq!(queue(&format!("eu-west-1={vpc}"), "eu-west-1"), url(vpc));
        let china = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/capasg";
        assert_eq!(queue(china, "cn-north-1"), url(china));
    }

    #[test]
    fn refusals_say_what_to_write() {
        let refused = |text: &str| text.parse::<EventQueues>().unwrap_err();
        let vpc = "http://127.0.0.1:4566/123456789012/capasg";
        assert_eq!(refused(vpc), InvalidQueue::NoRegion(vpc.into()));
        assert_eq!(refused("eu-west-1=a,eu-west-1=b"), InvalidQueue::Twice("eu-west-1".into()));
        assert_eq!(refused("a,b"), InvalidQueue::TwiceEverywhere);
        for text in
            ["a.fifo", "=a", "EU=a", "eu-west-1=", "https://sqs.eu-west-1.amazonaws.com/capasg", "a b"]
        {
            assert_eq!(refused(text), InvalidQueue::Form(text.into()), "{text}");
        }
    }

    #[test]
    fn several_flags_add_up() {
        let parse = |text: &str| text.parse::<EventQueues>().unwrap();
        let joined = EventQueues::joined([&parse("capasg"), &parse(URL)]).unwrap();
        assert_eq!(joined, parse(&format!("capasg,{URL}")));
        assert_eq!(EventQueues::joined([&parse("a"), &parse("b")]), Err(InvalidQueue::TwiceEverywhere));
    }
}
