//! One call's way through the simulator: faults, checks, the handler, the log.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    ApiError, Scope, Service, Tree,
    autoscaling::refresh_calls,
    events::Event,
    facts::{self, ServiceFacts},
    faults::{Effect, Seen},
    happening::{Change, What},
    log::{self, LogEntry, Outcome},
    operations::{self, Handler, Operation},
    region::{Region, State, View},
    throttle,
    time::millis,
    world::World,
};

/// A call as an edge received it.
#[derive(Debug, Clone)]
pub struct Call {
    /// Whose call it is.
    pub scope: Scope,
    /// The API.
    pub service: Service,
    /// The operation's name.
    pub action: String,
    /// Its parameters.
    pub params: Tree,
    /// The access key that it was signed with, for the log.
    pub access_key: Option<String>,
    /// When it arrived by the wall clock, for the log; the core reads no clock itself.
    pub wall_time: Option<DateTime<Utc>>,
}

/// What a call ended with.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The reply or the error.
    pub result: Result<Tree, ApiError>,
    /// How long (wall clock) to hold the answer back.
    pub delay: Duration,
    /// The id of the request, also in the log.
    pub request_id: String,
}

pub(crate) fn answer(world: &mut World, call: Call) -> Answer {
    let now = world.now;
    let known = operations::find(call.service, &call.action);
    let region = world.region(&call.scope);
    region.advance(now);
    let groups = concerned(region, &call.params);
    let fault = world.faults.take(&Seen {
        scope: &call.scope,
        service: call.service,
        action: &call.action,
        params: &call.params,
        access_key: call.access_key.as_deref(),
        groups: &groups,
    });
    let delay = fault.as_ref().map_or(Duration::ZERO, |fault| Duration::from_millis(fault.delay_millis));
    let region = world.region(&call.scope);
    let throttled = known.and_then(|operation| throttle::refusal(region, operation));
    let result = match (known, fault.map(|fault| fault.effect)) {
        _ if throttled.is_some() => throttled.map_or_else(|| Ok(Tree::new()), Err),
        (None, _) => Err(ApiError::refused(
            "InvalidAction",
            format!("The action {} is not valid for this web service.", call.action),
        )),
        (Some(_), Some(Effect::Error { status, code, message })) => Err(ApiError::new(status, code, message)),
        (Some(operation), Some(Effect::LoseReply)) => {
            check(operation, &call.params).and_then(|()| {
                // A refusal is lost like any other reply.
                let _ = run(region, operation, &call.params, call.access_key.as_deref());
                Err(ApiError::lost())
            })
        }
        (Some(operation), Some(Effect::Blind)) => blind(region, operation, &call.params),
        (Some(operation), Some(Effect::LoseRequest)) => {
            check(operation, &call.params).and_then(|()| Err(ApiError::lost()))
        }
        (Some(operation), Some(Effect::ApplyLate { after_millis })) => check(operation, &call.params)
            .and_then(|()| {
                let params = Box::new(call.params.clone());
                let event = Event::Late(operation.service, operation.action, call.access_key.clone(), params);
                region.schedule_at(now + millis(after_millis), event);
                Err(ApiError::lost())
            }),
        (Some(operation), Some(Effect::None) | None) => {
            run(region, operation, &call.params, call.access_key.as_deref())
        }
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
        account: call.scope.account,
        region: call.scope.region,
        service: call.service,
        action: call.action,
        groups,
        instances,
        params: log::redacted(&call.params),
        mutation: known.is_some_and(Operation::is_mutation),
        outcome,
    });
    Answer { result, delay, request_id }
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
fn blind(region: &mut Region, operation: &Operation, params: &Tree) -> Result<Tree, ApiError> {
    let Handler::Read(handler) = operation.handler else {
        return run(region, operation, params, None);
    };
    check(operation, params)?;
    let (network, parameters) = (region.state.network.clone(), region.state.parameters.clone());
    let state = State { network, parameters, ..State::default() };
    handler(&View { scope: &region.scope, settings: &region.settings, state: &state }, params)
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
    region: &mut Region,
    operation: &Operation,
    params: &Tree,
    by: Option<&str>,
) -> Result<Tree, ApiError> {
    check(operation, params)?;
    let reply = match operation.handler {
        Handler::Read(handler) => handler(&region.view(), params)?,
        Handler::Queue(handler) => handler(region, params)?,
        Handler::Write(_) => {
            region.remember();
            change(region, operation, params, by.map(str::to_owned))?
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
    if operation.action == "DescribeInstanceRefreshes" && !region.disguises.is_empty() {
        return Ok(refresh_calls::disguised(&region.disguises, reply));
    }
    Ok(reply)
}
