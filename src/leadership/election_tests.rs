//! Elections in virtual time.

use capasg_cloud::WriteGuard as _;
use chrono::{DateTime, Utc};
use jiff::ToSpan as _;
use tokio::time::advance;

use super::{
    super::testing::{FakeLeases, Link, TIMING, contender},
    *,
};

#[tokio::test(start_paused = true)]
async fn the_first_contender_wins_and_renews_without_reading() {
    let leases = Arc::new(FakeLeases::default());
    let link = Link::to(&leases);
    let (mut election, seat) = contender("a", &link);
    let stop = CancellationToken::new();
    assert!(!seat.is_held());
    assert!(election.acquire(&stop).await);
    assert!(seat.is_held());

    let first = leases.lease();
    let held = tokio::spawn(async move { election.hold().await });
    sleep(Duration::from_mins(2)).await;
    assert!(seat.is_held());
    let renewed = leases.lease();
    assert!(leases.writes() > 50);
    assert_eq!(link.reads(), 1, "a holder that is never disturbed only writes");
    let (first, renewed) = (first.spec.unwrap(), renewed.spec.unwrap());
    assert_eq!((renewed.holder_identity, renewed.lease_transitions), (Some("a".into()), Some(0)));
    assert_eq!((renewed.acquire_time, renewed.lease_duration_seconds), (first.acquire_time, Some(15)));

    assert!(!held.is_finished());
}

#[tokio::test(start_paused = true)]
async fn of_many_contenders_one_leads_and_each_takeover_waits_for_the_end() {
    let leases = Arc::new(FakeLeases::default());
    let stop = CancellationToken::new();
    let mut seats = Vec::new();
    let mut links = Vec::new();
    for name in ["a", "b", "c"] {
        let link = Link::to(&leases);
        links.push(link.clone());
        let (mut election, seat) = contender(name, &link);
        seats.push(seat);
        let stop = stop.clone();
        tokio::spawn(async move {
            while election.acquire(&stop).await {
                election.hold().await;
            }
        });
    }

    let mut leaders = Vec::new();
    for second in 0..600 {
        sleep(Duration::from_secs(1)).await;
        let holding: Vec<usize> = (0..seats.len()).filter(|&index| seats[index].is_held()).collect();
        assert!(holding.len() <= 1, "two leaders after {second} s: {holding:?}");
        if let [leader] = holding[..] {
            if leaders.last() != Some(&leader) {
                leaders.push(leader);
            }
            // Every two minutes the leader loses its connection, for as long as an election takes.
            if second % 120 == 60 {
                links[leader].cut(true);
            }
        }
        if second % 120 == 100 {
            for link in &links {
                link.cut(false);
            }
        }
    }
    assert!(leaders.len() >= 5, "the lead must have changed hands: {leaders:?}");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_cut_off_leader_gives_up_before_another_can_take_over() {
    let leases = Arc::new(FakeLeases::default());
    let link = Link::to(&leases);
    let (mut first, first_seat) = contender("a", &link);
    let stop = CancellationToken::new();
    assert!(first.acquire(&stop).await);
    let (mut second, second_seat) = contender("b", &Link::to(&leases));
    let waiting = tokio::spawn({
        let stop = stop.clone();
        async move { second.acquire(&stop).await }
    });
    let start = Instant::now();
    link.cut(true);
    first.hold().await;
    assert!(start.elapsed() >= TIMING.renew_deadline && start.elapsed() < Duration::from_secs(12));
    assert!(!first_seat.is_held() && !second_seat.is_held());
    assert!(waiting.await.unwrap());
    assert!(start.elapsed() >= TIMING.lease_duration, "took over after {:?}", start.elapsed());
    assert_eq!(leases.lease().spec.unwrap().lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn the_seat_ends_before_the_lease_even_if_the_election_hangs() {
    let leases = Arc::new(FakeLeases::default());
    let (mut election, seat) = contender("a", &Link::to(&leases));
    assert!(election.acquire(&CancellationToken::new()).await);
    let left = seat.deadline().unwrap() - Utc::now();
    assert!((13_400..=13_500).contains(&left.num_milliseconds()), "{left}");
    advance(Duration::from_millis(13_499)).await;
    assert!(seat.is_held());
    advance(Duration::from_millis(1)).await;
    assert!(!seat.is_held() && seat.deadline().is_none());
}

#[tokio::test(start_paused = true)]
async fn clocks_are_not_compared() {
    for skew in [-3_i64, 3] {
        let leases = Arc::new(FakeLeases::default());
        let (mut holder, _) = contender("a", &Link::to(&leases));
        let stop = CancellationToken::new();
        assert!(holder.acquire(&stop).await);
        // The holder's clock is hours off: by its times the Lease is long over, or will not be over for hours.
        let mut lease = leases.lease();
        let spec = lease.spec.as_mut().unwrap();
        spec.renew_time = Some(MicroTime(Timestamp::now().checked_add(skew.hours()).unwrap()));
        spec.acquire_time = spec.renew_time.clone();
        leases.store(&lease);

        let (mut contender, seat) = contender("b", &Link::to(&leases));
        let start = Instant::now();
        assert!(contender.acquire(&stop).await);
        assert!(start.elapsed() >= TIMING.lease_duration, "{skew} h: took over after {:?}", start.elapsed());
        assert!(start.elapsed() <= TIMING.lease_duration + TIMING.retry_period * 2);
        assert!(seat.is_held());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_does_not_lose_the_lease() {
    let leases = Arc::new(FakeLeases::default());
    let link = Link::to(&leases);
    let (mut election, seat) = contender("a", &link);
    let stop = CancellationToken::new();
    assert!(election.acquire(&stop).await);
    link.lose_replies(true);
    let held = tokio::spawn(async move { election.hold().await });
    sleep(Duration::from_secs(4)).await;
    link.lose_replies(false);
    sleep(Duration::from_mins(1)).await;
    assert!(seat.is_held());
    assert_eq!(leases.lease().spec.unwrap().lease_transitions, Some(0));
    assert!(!held.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_lease_taken_by_force_ends_the_term_at_the_next_look() {
    let leases = Arc::new(FakeLeases::default());
    let (mut election, seat) = contender("a", &Link::to(&leases));
    let stop = CancellationToken::new();
    assert!(election.acquire(&stop).await);
    let mut lease = leases.lease();
    lease.spec.as_mut().unwrap().holder_identity = Some("b".into());
    leases.store(&lease);
    let start = Instant::now();
    election.hold().await;
    assert!(!seat.is_held());
    assert!(start.elapsed() <= TIMING.retry_period);
    assert_eq!(leases.holder(), "b");
}

// Rules: N2
#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_try() {
    let leases = Arc::new(FakeLeases::default());
    let (mut first, first_seat) = contender("a", &Link::to(&leases));
    let stop = CancellationToken::new();
    assert!(first.acquire(&stop).await);
    let (mut second, _) = contender("b", &Link::to(&leases));
    let start = Instant::now();
    let waiting = tokio::spawn({
        let stop = stop.clone();
        async move { second.acquire(&stop).await }
    });
    sleep(Duration::from_secs(1)).await;
    first.release().await;
    assert!(!first_seat.is_held());
    assert_eq!(leases.holder(), "");
    assert!(waiting.await.unwrap());
    assert!(start.elapsed() <= Duration::from_secs(4), "took over after {:?}", start.elapsed());
    // Who does not hold the Lease releases nothing.
    first.release().await;
    assert_eq!(leases.holder(), "b");
}

// Rules: N2
#[tokio::test(start_paused = true)]
async fn a_lease_is_released_although_the_last_reply_was_lost() {
    let leases = Arc::new(FakeLeases::default());
    let link = Link::to(&leases);
    let (mut election, _) = contender("a", &link);
    assert!(election.acquire(&CancellationToken::new()).await);
    link.lose_replies(true);
    assert!(timeout(Duration::from_secs(3), election.hold()).await.is_err(), "the lease is not lost yet");
    link.lose_replies(false);
    assert_eq!(leases.writes(), 2);
    election.release().await;
    assert_eq!(leases.holder(), "");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_contender_can_be_stopped() {
    let leases = Arc::new(FakeLeases::default());
    let stop = CancellationToken::new();
    assert!(contender("a", &Link::to(&leases)).0.acquire(&stop).await);
    stop.cancel();
    assert!(!contender("b", &Link::to(&leases)).0.acquire(&stop).await);
    let seat = Seat::always();
    assert!(seat.is_held() && seat.deadline() == Some(DateTime::<Utc>::MAX_UTC));
}
