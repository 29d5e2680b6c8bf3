//! Bodies that are many, slow, large or costly, in virtual time.

use futures::{StreamExt as _, future::join_all, stream};
use tokio::time::Instant;

use super::*;

const MIB: usize = 1024 * 1024;
const TURN: Duration = Duration::from_secs(1);
const WITHIN: Duration = Duration::from_secs(5);

fn intake() -> Intake {
    Intake::new(Budget { largest: MIB, bodies: 4 * MIB, parsed: 8 * MIB, replies: MIB })
}

/// A body of so many bytes in parts, with or without an end.
fn body(bytes: usize, ends: bool) -> Body {
    let part = |_| Ok::<_, Infallible>(vec![b'a'; 16 * 1024]);
    let parts = stream::iter(0..bytes.div_ceil(16 * 1024)).map(part);
    if ends { Body::from_stream(parts) } else { Body::from_stream(parts.chain(stream::pending())) }
}

#[tokio::test(start_paused = true)]
async fn small_bodies_wait_for_nothing_and_large_ones_share_a_budget() {
    let intake = intake();
    let read = |bytes, ends| intake.read(body(bytes, ends), MIB, TURN, WITHIN);
    let slow: Vec<_> = join_all((0..20).map(|_| async {
        let started = Instant::now();
        (read(MIB / 2, false).await.map(drop), started.elapsed())
    }))
    .await;
    // Four of them may have the largest size, and the others are told after their turn.
    let late = slow.iter().filter(|(read, _)| *read == Err(Unread::Late)).count();
    let busy = slow.iter().filter(|ended| **ended == (Err(Unread::Busy), TURN)).count();
    assert_eq!((late, busy), (4, 16));

    let (_slow, small) = tokio::join!(join_all((0..20).map(|_| read(MIB / 2, false))), async {
        join_all((0..1000).map(|_| read(SMALL, true))).await
    },);
    assert!(small.iter().all(|read| read.as_ref().is_ok_and(|received| received.bytes.len() == SMALL)));
    // What ended gave its share back.
    assert_eq!(read(MIB, true).await.map(|received| received.bytes.len()), Ok(MIB));
}

#[tokio::test(start_paused = true)]
async fn a_body_has_a_size_and_a_time() {
    let intake = intake();
    let read = async |body: Body, largest| intake.read(body, largest, TURN, WITHIN).await.map(drop);
    assert_eq!(read(body(2 * MIB, true), MIB).await, Err(Unread::TooLarge));
    assert_eq!(read(vec![b'a'; MIB + 1].into(), MIB).await, Err(Unread::TooLarge), "as it declares");
    assert_eq!(read(body(2 * SMALL, true), SMALL).await, Err(Unread::TooLarge));
    assert_eq!(read(vec![b'a'; MIB].into(), MIB).await, Ok(()));
    let started = Instant::now();
    assert_eq!(read(body(0, false), MIB).await, Err(Unread::Late));
    assert_eq!(started.elapsed(), WITHIN);
    let broken = Body::from_stream(stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("cut"))]));
    assert_eq!(read(broken, MIB).await, Err(Unread::TooLarge));
}

#[test]
fn what_parsing_takes_follows_from_the_number_of_values() {
    let intake = intake();
    let of = |text: &str| intake.cost(text.as_bytes());
    assert!(of("{}").unwrap() < 2048);
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(MIB));
    assert!((MIB..MIB + 4096).contains(&of(&long).unwrap()), "a long text takes its size");
    // A `serde_json::Value` of each of these takes 740 bytes.
    let many = |count: usize| format!("{{\"a\": [{}0]}}", r#"{"":0},"#.repeat(count));
    assert!(of(&many(1000)).unwrap() >= 740 * 1000);
    for costly in [many(MIB / 8), format!("{{\"a\": [{}0]}}", "0,".repeat(MIB / 2))] {
        assert_eq!(of(&costly), Err(NotAccepted::TooMany));
    }
    for other in ["", "[]", "7", "{", "{}}", "{\"a\": 01}", &format!("{{\"a\": {}", "[".repeat(MIB / 2))] {
        assert_eq!(of(other), Err(NotAccepted::NotJson), "{}", other.len());
    }
}

#[tokio::test(start_paused = true)]
async fn costly_requests_wait_for_each_other_and_cheap_ones_do_not_wait_for_them() {
    let intake = intake();
    let costly = intake.room(6 * MIB, TURN).await.unwrap();
    assert!(intake.room(6 * MIB, TURN).await.is_none());
    let cheap = intake.room(1000, Duration::ZERO).await.unwrap();
    drop((costly, cheap));
    assert!(intake.room(8 * MIB, Duration::ZERO).await.is_some());
    // The cheap ones have a bound, too.
    let rooms = join_all((0..10).map(|_| intake.room(MIB, TURN))).await;
    assert_eq!(rooms.iter().flatten().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn large_answers_share_a_budget_until_they_are_sent() {
    let intake = intake();
    let unread = intake.reply(vec![b'a'; MIB], TURN).await.unwrap();
    assert!(intake.reply(vec![b'a'; SMALL + 1], TURN).await.is_none());
    assert!(intake.reply(vec![b'a'; SMALL], TURN).await.is_some(), "a small one waits for nothing");
    let sent = axum::body::to_bytes(unread, MIB).await.unwrap();
    assert_eq!(sent.len(), MIB);
    assert!(intake.reply(vec![b'a'; MIB], TURN).await.is_some());
}
