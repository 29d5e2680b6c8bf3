//! Answers are kept, shared and bounded in time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// An AWS that answers after a time, denies access, or is silent.
#[derive(Default)]
struct Fake {
    takes: Duration,
    silent: bool,
    denies: AtomicBool,
    reads: AtomicUsize,
}

#[async_trait]
impl Reader for Arc<Fake> {
    async fn read(&self, _: &Question) -> Result<Answer, NoAnswer> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.silent {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(self.takes).await;
        if self.denies.load(Ordering::SeqCst) { Err(NoAnswer) } else { Ok(Answer::Identity) }
    }
}

struct OfProcess;

#[async_trait]
impl Access for OfProcess {
    async fn place(&self, _: &IdentityRequest, region: &str) -> Result<Place, NotAllowed> {
        Ok(Place::of_process(region))
    }
}

fn start(fake: Fake) -> (Arc<Fake>, Lookups) {
    let fake = Arc::new(fake);
    (Arc::clone(&fake), Lookups::new(Arc::new(Arc::clone(&fake)), Arc::new(OfProcess)))
}

fn questions(regions: &[&str]) -> BTreeSet<Question> {
    regions.iter().map(|region| Question::Identity { place: Place::of_process(region) }).collect()
}

// The clock of tokio stands still unless nothing else can run, so that these times are exact.
#[tokio::test(start_paused = true)]
async fn questions_that_are_asked_at_the_same_time_or_soon_again_are_read_once() {
    let (fake, lookups) = start(Fake { takes: Duration::from_millis(300), ..Fake::default() });
    let asked = questions(&["a", "b"]);
    let (one, two) = tokio::join!(lookups.ask(&asked), lookups.ask(&asked));
    assert_eq!((one.len(), two.len(), fake.reads.load(Ordering::SeqCst)), (2, 2, 2));
    let start = Instant::now();
    assert_eq!(lookups.ask(&asked).await.len(), 2);
    assert_eq!((Instant::now() - start, fake.reads.load(Ordering::SeqCst)), (Duration::ZERO, 2));
    tokio::time::advance(FRESH).await;
    lookups.ask(&asked).await;
    assert_eq!(fake.reads.load(Ordering::SeqCst), 4, "answers that are not fresh are read again");
}

// Rules: R7
#[tokio::test(start_paused = true)]
async fn a_hook_waits_no_longer_than_its_budget_and_the_read_continues() {
    let (fake, lookups) = start(Fake { takes: Duration::from_secs(5), ..Fake::default() });
    let (start, asked) = (Instant::now(), questions(&["a"]));
    assert!(lookups.ask(&asked).await.is_empty());
    assert_eq!(Instant::now() - start, BUDGET);
    tokio::time::advance(Duration::from_secs(4)).await;
    assert_eq!(lookups.ask(&asked).await.len(), 1, "the read that the first call began");
    assert_eq!(fake.reads.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_counts_while_aws_does_not_answer_and_not_for_ever() {
    let (fake, lookups) = start(Fake::default());
    let asked = questions(&["a"]);
    assert_eq!(lookups.ask(&asked).await.len(), 1);
    fake.denies.store(true, Ordering::SeqCst);
    tokio::time::advance(FRESH).await;
    assert_eq!(lookups.ask(&asked).await.len(), 1);
    let reads = fake.reads.load(Ordering::SeqCst);
    assert_eq!(lookups.ask(&asked).await.len(), 1);
    assert_eq!(fake.reads.load(Ordering::SeqCst), reads, "a failure is not repeated at once");
    tokio::time::advance(AFTER_FAILURE).await;
    lookups.ask(&asked).await;
    assert_eq!(fake.reads.load(Ordering::SeqCst), reads + 1);
    tokio::time::advance(STALE).await;
    assert!(lookups.ask(&asked).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_silent_aws_costs_one_read_of_each_question_and_bounded_memory() {
    let (fake, lookups) = start(Fake { silent: true, ..Fake::default() });
    for _ in 0..3 {
        assert!(lookups.ask(&questions(&["a"])).await.is_empty());
    }
    assert_eq!(fake.reads.load(Ordering::SeqCst), 1);

    let (fake, lookups) = start(Fake::default());
    for number in 0..MOST + 50 {
        lookups.ask(&questions(&[&number.to_string()])).await;
    }
    assert_eq!((lookups.remembered(), fake.reads.load(Ordering::SeqCst)), (MOST, MOST + 50));
}

#[tokio::test(start_paused = true)]
async fn without_room_a_question_is_not_read_and_has_no_answer() {
    let (fake, lookups) = start(Fake { silent: true, ..Fake::default() });
    let all: BTreeSet<Question> = (0..MOST + 5)
        .map(|number| Question::Identity { place: Place::of_process(&number.to_string()) })
        .collect();
    assert!(lookups.ask(&all).await.is_empty());
    assert_eq!(lookups.remembered(), MOST);
    assert!(fake.reads.load(Ordering::SeqCst) <= AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn identities_share_no_answers() {
    let (fake, lookups) = start(Fake::default());
    let of = |name: &str| {
        let identity =
            Arc::new(capasg_cloud::Identity { name: name.to_owned(), ..capasg_cloud::Identity::process() });
        BTreeSet::from([Question::Identity { place: Place { identity, region: "a".to_owned() } }])
    };
    assert_eq!(lookups.ask(&of("one")).await.len(), 1);
    fake.denies.store(true, Ordering::SeqCst);
    assert!(lookups.ask(&of("two")).await.is_empty());
    assert_eq!(fake.reads.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_asked_any_more_is_forgotten() {
    let (_, lookups) = start(Fake::default());
    lookups.ask(&questions(&["a", "b"])).await;
    tokio::time::advance(STALE / 2).await;
    lookups.ask(&questions(&["b"])).await;
    tokio::time::advance(STALE / 2).await;
    lookups.forget_unused();
    assert_eq!(lookups.remembered(), 1);
}
