//! The two adapters of the cloud ports agree: the one over the SDK, through HTTP, and that of the simulation. For each
//! call they send the same parameters, and they read the same from each reply and each error.

mod calls;
mod contents;
mod errors;
mod model;

use std::{
    cell::Cell,
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Result, anyhow, ensure};
use capasg_cloud::{CloudError, ErrorClass};
use capasg_fake_aws::{ApiError, Scope, Service, Settings, Tree};
use capasg_simulation::SimulatedCloud;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use tokio::runtime::Runtime;

use self::{
    calls::{Call, Operation, every_operation},
    errors::ERRORS,
};
use crate::{
    replay::REGION,
    world::{ACCOUNT, World},
};

/// Generated calls of each operation.
const CASES: u32 = 100;

/// What a call came to; `None` if the adapters did not send it.
type Outcome = Option<Result<String, CloudError>>;

/// What AWS answers next, and what it was asked.
struct Tape {
    reply: Result<Tree, ApiError>,
    asked: Vec<(Service, String, Tree)>,
}

/// Both adapters in front of the same AWS.
struct Adapters {
    runtime: Runtime,
    sdk: World,
    simulation: SimulatedCloud,
    tape: Arc<Mutex<Tape>>,
}

impl Adapters {
    fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let sdk = runtime.block_on(World::start(Settings::default()))?;
        // A receive over HTTP waits until there is a message.
        let scope = Scope::account(ACCOUNT, REGION);
        let message =
            Tree::new().with("QueueUrl", sdk.simulator.put_queue(&scope, "capasg")).with("MessageBody", "{}");
        sdk.simulator.call(&scope, Service::Sqs, "SendMessage", message)?;
        let tape = Arc::new(Mutex::new(Tape { reply: Ok(Tree::new()), asked: Vec::new() }));
        let running = Arc::clone(&tape);
        sdk.simulator.set_script(move |call| {
            let mut tape = running.lock().unwrap_or_else(PoisonError::into_inner);
            tape.asked.push((call.service, call.action, call.params));
            tape.reply.clone()
        });
        let simulation = SimulatedCloud::new(sdk.simulator.clone(), REGION);
        Ok(Self { runtime, sdk, simulation, tape })
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call through each.
    fn compare(
        &self,
        operation: &Operation,
        call: &Call,
        reply: Result<Tree, ApiError>,
    ) -> Result<Outcome, TestCaseError> {
        let lost = reply.as_ref().is_err_and(ApiError::is_lost);
        *self.tape() = Tape { reply, asked: Vec::new() };
        let (sdk, simulation) = self.runtime.block_on(async {
            let sdk = call.make(&*self.sdk.cloud, &*self.sdk.queues).await;
            (sdk, call.make(&self.simulation, &self.simulation).await)
        });
        let comparable = |mut error: CloudError| {
            error.request_id = None;
            if lost {
                // The network's words, which the simulation has no reason to repeat.
                error.message.clear();
            }
            error
        };
        let outcome = sdk.map_err(comparable);
        prop_assert_eq!(&outcome, &simulation.map_err(comparable), "left: SDK, right: simulation");
        let asked = std::mem::take(&mut self.tape().asked);
        // One call each, or as many pages.
        let (sdk, simulation) = asked.split_at(asked.len() / 2);
        prop_assert_eq!(sdk, simulation, "left: SDK, right: simulation");
        if sdk.is_empty() {
            return Ok(None);
        }
        for call in sdk {
            prop_assert_eq!((call.0, call.1.as_str()), (operation.service, operation.name));
        }
        Ok(Some(outcome))
    }
}

/// Repeatable, so that a failure is that of the commit.
fn runner() -> TestRunner {
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 5_000,
        ..ProptestConfig::default()
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn both_adapters_send_the_same_parameters_and_read_the_same_from_replies() -> Result<()> {
    let adapters = Adapters::start()?;
    for operation in every_operation() {
        let successes = Cell::new(0_u32);
        let replies = model::replies(operation.service, operation.name);
        let result = runner().run(&(operation.calls.clone(), replies), |(call, reply)| {
            let outcome = adapters.compare(&operation, &call, Ok(reply))?;
            successes.set(successes.get() + u32::from(matches!(outcome, Some(Ok(_)))));
            Ok(())
        });
        result.map_err(|failure| anyhow!("{}: {failure}", operation.name))?;
        ensure!(successes.get() > CASES / 20, "{}: {} replies were read", operation.name, successes.get());
    }
    Ok(())
}

#[test]
fn both_adapters_read_the_same_from_errors() -> Result<()> {
    let adapters = Adapters::start()?;
    let mut runner = runner();
    let mut classes = BTreeSet::new();
    for operation in every_operation() {
        let named = |failure: TestCaseError| anyhow!("{}: {failure}", operation.name);
        let call = loop {
            let call = operation.calls.new_tree(&mut runner).map_err(|reason| anyhow!("{reason}"))?.current();
            if adapters.compare(&operation, &call, Ok(Tree::new())).map_err(named)?.is_some() {
                break call;
            }
        };
        let errors = ERRORS.iter().map(|(status, code, message)| ApiError::new(*status, *code, *message));
        for error in errors.chain([ApiError::lost()]) {
            let outcome = adapters.compare(&operation, &call, Err(error)).map_err(named)?;
            classes.extend(outcome.and_then(Result::err).map(|error| error.class));
        }
    }
    // The gateway alone says that this process does not lead.
    let every = [
        ErrorClass::Throttled,
        ErrorClass::Transient,
        ErrorClass::Denied,
        ErrorClass::Invalid,
        ErrorClass::Quota,
        ErrorClass::Capacity,
        ErrorClass::NotFound,
        ErrorClass::Conflict,
    ];
    assert_eq!(classes, BTreeSet::from(every));
    Ok(())
}
