//! One call's way through the simulator: faults, checks, the handler, the log.

use std::time::Duration;

use crate::{
    Answer, ApiError, Call, Tree,
    autoscaling::refresh_calls,
    events::Event,
    facts::{self, ServiceFacts},
    faults::{Effect, Seen},
    happening::{Change, What},
    iam::{self, Asked, Caller, Denial},
    log::{self, LogEntry, Outcome},
    operations::{self, Handler, Operation},
    region::{Region, State, View},
    throttle,
    time::millis,
    world::World,
};

pub(crate) fn answer(world: &mut World, call: Call) -> Answer {
    let now = world.now;
    let known = operations::find(call.service, &call.action);
    let caller = world.iam.caller(
        (&call.scope, call.service),
        (call.access_key.as_deref(), call.session_token.as_deref()),
        now,
    );
    let is_identity = known.is_some_and(|known| matches!(known.handler, Handler::Identity(_)));
    let groups = if is_identity {
        Vec::new()
    } else {
        let region = world.region(&call.scope);
        region.advance(now);
        concerned(region, &call.params)
    };
    let fault = world.faults.take(&Seen {
        scope: &call.scope,
        service: call.service,
        action: &call.action,
        params: &call.params,
        access_key: call.access_key.as_deref(),
        groups: &groups,
    });
    let delay = fault.as_ref().map_or(Duration::ZERO, |fault| Duration::from_millis(fault.delay_millis));
    let throttled = match known {
        Some(operation) if !is_identity => throttle::refusal(world.region(&call.scope), operation),
        _ => None,
    };
    let (permitted, denied) = permitted(world, &call, caller.as_ref());
    let result = match (known, fault.map(|fault| fault.effect)) {
        _ if throttled.is_some() => throttled.map_or_else(|| Ok(Tree::new()), Err),
        (None, _) => Err(ApiError::refused(
            "InvalidAction",
            format!("The action {} is not valid for this web service.", call.action),
        )),
        (Some(_), Some(Effect::Error { status, code, message })) => Err(ApiError::new(status, code, message)),
        (Some(_), _) if permitted.is_err() => permitted.map(|()| Tree::new()),
        (Some(operation), Some(Effect::LoseReply)) => {
            check(operation, &call.params).and_then(|()| {
                // A refusal is lost like any other reply.
                let _ = run(world, operation, &call, caller.as_ref().ok());
                Err(ApiError::lost())
            })
        }
        (Some(operation), Some(Effect::Blind)) => blind(world, operation, &call, caller.as_ref().ok()),
        (Some(operation), Some(Effect::LoseRequest)) => {
            check(operation, &call.params).and_then(|()| Err(ApiError::lost()))
        }
        (Some(operation), Some(Effect::ApplyLate { after_millis })) => check(operation, &call.params)
            .and_then(|()| {
                let params = Box::new(call.params.clone());
                let event = Event::Late(operation.service, operation.action, call.access_key.clone(), params);
                world.region(&call.scope).schedule_at(now + millis(after_millis), event);
                Err(ApiError::lost())
            }),
        (Some(operation), Some(Effect::None) | None) => run(world, operation, &call, caller.as_ref().ok()),
    };
    let identity = if call.action == UNSIGNED && call.access_key.is_none() {
        iam::bearer(&call.params)
    } else {
        caller.ok().map(|caller| caller.arn)
    };
    let instances = log::instances_of(&call.params);
    let outcome = match &result {
        Ok(_) => Outcome::Ok,
        Err(error) if error.is_lost() => Outcome::Lost,
        Err(error) => {
            Outcome::Error { status: error.status, code: error.code.clone(), message: error.message.clone() }
        }
    };
    let sequence = world.log.next_sequence();
    let request_id = format!("00000000-0000-4000-8000-{sequence:012x}");
    world.log.push(LogEntry {
        sequence,
        request_id: request_id.clone(),
        time: now,
        wall_time: call.wall_time,
        access_key: call.access_key,
        identity,
        account: call.scope.account,
        region: call.scope.region,
        service: call.service,
        action: call.action,
        groups,
        instances,
        params: log::redacted(&call.params),
        mutation: known.is_some_and(Operation::is_mutation),
        denied,
        outcome,
    });
    Answer { result, delay, request_id }
}

/// The one operation that needs no signature.
pub(crate) const UNSIGNED: &str = "AssumeRoleWithWebIdentity";

/// Whether a call's credentials are valid and allow it.
fn permitted(
    world: &mut World,
    call: &Call,
    caller: Result<&Caller, &ApiError>,
) -> (Result<(), ApiError>, Option<Denial>) {
    match caller {
        _ if call.action == UNSIGNED => (Ok(()), None),
        Ok(caller) => match iam::authorize(world, call, caller) {
            Ok(()) => (Ok(()), None),
            Err((error, denial)) => (Err(error), Some(denial)),
        },
        Err(error) => (Err(error.clone()), None),
    }
}

/// The groups and templates that a call is about: those it names, and those of the instances that it names.
fn concerned(region: &Region, params: &Tree) -> Vec<String> {
    let mut names = log::groups_of(params);
    let own = |id: &String| region.state.instances.get(id).and_then(|instance| instance.group.as_ref());
    names.extend(log::instances_of(params).iter().filter_map(own).map(|own| own.group.clone()));
    let template = params.text_of("LaunchTemplateId").and_then(|id| region.state.template(Some(id), None));
    names.extend(template.map(|template| template.name.clone()));
    names.sort();
    names.dedup();
    names
}

/// What both an immediate and a late call must pass.
fn check(operation: &Operation, params: &Tree) -> Result<(), ApiError> {
    let facts = ServiceFacts::of(operation.service);
    if let Some(shapes) = facts.operations.get(operation.action) {
        facts::check_input(operation.service, &shapes.input, params)?;
    }
    operations::check_known(operation, params)
}

/// A read of a world that seems to hold nothing.
fn blind(
    world: &mut World,
    operation: &Operation,
    call: &Call,
    caller: Option<&Caller>,
) -> Result<Tree, ApiError> {
    let Handler::Read(handler) = operation.handler else {
        return run(world, operation, call, caller);
    };
    check(operation, &call.params)?;
    let region = world.region(&call.scope);
    let (network, parameters) = (region.state.network.clone(), region.state.parameters.clone());
    let state = State { network, parameters, ..State::default() };
    handler(&View { scope: &region.scope, settings: &region.settings, state: &state }, &call.params)
}

/// Carries out a write and tells of it.
pub(crate) fn change(
    region: &mut Region,
    operation: &Operation,
    params: &Tree,
    by: Option<String>,
) -> Result<Tree, ApiError> {
    let Handler::Write(handler) = operation.handler else { return Ok(Tree::new()) };
    if !region.settings.keep_feed {
        return handler(region, params);
    }
    let groups = concerned(region, params);
    let group = groups.into_iter().find(|name| region.state.groups.contains_key(name));
    let group = group.or_else(|| params.text_of("AutoScalingGroupName").map(str::to_owned));
    let desired = |region: &Region| region.state.groups.get(group.as_ref()?).map(|group| group.desired);
    let before = desired(region);
    let reply = handler(region, params)?;
    let after = desired(region);
    let instances = log::instances_of(params);
    let action = operation.action.to_owned();
    let change = Change { action, by, group, instances, desired: (before, after) };
    region.tell(|_| Some(What::Changed(change)));
    Ok(reply)
}

fn run(
    world: &mut World,
    operation: &Operation,
    call: &Call,
    caller: Option<&Caller>,
) -> Result<Tree, ApiError> {
    let params = &call.params;
    check(operation, params)?;
    let reply = match operation.handler {
        Handler::Read(handler) => handler(&world.region(&call.scope).view(), params)?,
        Handler::Queue(handler) => handler(world.region(&call.scope), params)?,
        Handler::Write(_) => {
            let region = world.region(&call.scope);
            region.remember();
            change(region, operation, params, call.access_key.clone())?
        }
        Handler::Identity(handler) => {
            let now = world.now;
            let asked = Asked { caller, now, token_time: call.wall_time.unwrap_or(now) };
            handler(&mut world.iam, &asked, params)?
        }
    };
    // Costs as much as the reply itself, so only builds for tests pay for it.
    if cfg!(debug_assertions)
        && let Some(shapes) = ServiceFacts::of(operation.service).operations.get(operation.action)
    {
        match &shapes.output {
            Some(output) => facts::check_output(operation.service, output, &reply)?,
            None if reply != Tree::new() => {
                return Err(ApiError::new(500, "SimulatorBug", "This operation's reply has no members."));
            }
            None => {}
        }
    }
    if operation.action == "DescribeInstanceRefreshes" {
        let disguises = &world.region(&call.scope).disguises;
        return Ok(if disguises.is_empty() { reply } else { refresh_calls::disguised(disguises, reply) });
    }
    Ok(reply)
}
