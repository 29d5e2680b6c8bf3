//! `Ready` against core's own library, over thousands of generated sets of conditions.

#![expect(clippy::unwrap_used, reason = "what these tests share fails as they do")]

use capasg_api::{
    conditions::{self, MACHINE, MACHINE_SUMMARY, POOL, POOL_SUMMARY, summarize},
    time::to_kubernetes,
};
use capasg_environment::{Tools, filter};
use chrono::DateTime;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};

/// The same questions each time.
const SEED: u64 = 20_240_916;
const QUESTIONS: usize = 10_000;

/// What messages are made of: what core's rules for bullets and lines tell apart, and what JSON has to escape.
const PIECES: [&str; 22] = [
    "* ",
    "*",
    "\n",
    "\n* ",
    "\n  * ",
    " ",
    "\t",
    "\r",
    "a",
    "Deleting: ",
    "AWS says \"no\"",
    "<&>",
    "é",
    "漢",
    "…",
    "**",
    "* * ",
    "\n\n",
    "\u{b}* ",
    "\u{a0}",
    "*\u{a0}x",
    "subnet-0123 is gone",
];

struct Question {
    conditions: Vec<Condition>,
    types: Vec<&'static str>,
}

impl Question {
    fn any(random: &mut StdRng) -> Self {
        let all = if random.random() { POOL } else { MACHINE };
        let types = match random.random_range(0..4) {
            0 => POOL_SUMMARY.to_vec(),
            1 => MACHINE_SUMMARY.to_vec(),
            // Any types in any order, but for the summary itself.
            _ => {
                let most = random.random_range(1..=all.len());
                let mut types: Vec<_> = all.sample(random, most).copied().collect();
                types.retain(|type_| *type_ != conditions::READY);
                if types.is_empty() { MACHINE_SUMMARY.to_vec() } else { types }
            }
        };
        // All is well in a fifth of the cases: otherwise hardly any would be. In the others some of what is asked for
        // is missing, and some is there that nobody asked for.
        let well = random.random_range(0..5) == 0;
        let most = random.random_range(0..=all.len());
        let set: Vec<&str> = if well { types.clone() } else { all.sample(random, most).copied().collect() };
        Self { conditions: set.into_iter().map(|type_| condition(random, type_, well)).collect(), types }
    }

    fn json(&self) -> Value {
        let negative: Vec<_> =
            POOL.iter().chain(MACHINE).filter(|type_| conditions::is_negative(type_)).collect();
        json!({"conditions": self.conditions, "types": self.types, "negative": negative})
    }
}

fn condition(random: &mut StdRng, type_: &str, well: bool) -> Condition {
    let statuses: &[&str] = match (well, conditions::is_negative(type_)) {
        (true, true) => &["False"],
        (true, false) => &["True"],
        (false, _) => &["True", "False", "Unknown"],
    };
    let pieces = random.random_range(0..6);
    Condition {
        type_: type_.to_owned(),
        status: (*statuses.choose(random).unwrap()).to_owned(),
        reason: "Because".to_owned(),
        message: (0..pieces).map(|_| *PIECES.choose(random).unwrap()).collect(),
        last_transition_time: to_kubernetes(DateTime::from_timestamp(random.random_range(0..9), 0).unwrap()),
        observed_generation: Some(1),
    }
}

/// What core's library makes of the questions: status, reason, message.
fn answers(questions: &[Question]) -> Vec<Value> {
    let tools = Tools::ready(&|line| eprintln!("{line}")).unwrap();
    let questions: Vec<Value> = questions.iter().map(Question::json).collect();
    filter(&tools.program("core-conditions"), &questions).unwrap()
}

// Rules: I2
#[test]
fn ready_equals_the_result_of_cores_library() {
    let random = &mut StdRng::seed_from_u64(SEED);
    let questions: Vec<_> = (0..QUESTIONS).map(|_| Question::any(random)).collect();
    let answers = answers(&questions);
    let mut seen = [0; 3];
    for (question, core) in questions.iter().zip(&answers) {
        let ours = summarize(&question.conditions, &question.types);
        let told = json!({"status": ours.status.as_str(), "reason": ours.reason, "message": ours.message});
        assert_eq!(&told, core, "for {}", question.json());
        seen[ours.status as usize] += 1;
    }
    assert!(seen.iter().all(|times| *times > QUESTIONS / 10), "one-sided questions: {seen:?}");
}
