//! Whether the policies of a caller allow a call, and the answer of each service if they do not.

use super::{
    Caller, Decision, Denial, Iam, Policy,
    requests::{self, Via},
};
use crate::{ApiError, Call, Service, world::World};

/// Whether the policies of a caller allow a call; without policies everything is allowed.
///
/// # Errors
/// The answer, and what it does not tell.
pub(crate) fn authorize(world: &mut World, call: &Call, caller: &Caller) -> Result<(), (ApiError, Denial)> {
    // "No permissions are required", not even where a policy denies it (reference of the API).
    if call.action == "GetCallerIdentity" {
        return Ok(());
    }
    if caller.is_revoked {
        let action = format!("{}:{}", call.service.as_str(), call.action);
        let denial = Denial { action, resource: "*".to_owned(), is_explicit: true, is_absent: false };
        return Err((refusal(call, caller, &denial, &Via::Itself), denial));
    }
    let principal = caller.role.as_ref().unwrap_or(&caller.arn);
    let policies = world.iam.policies.get(principal).cloned();
    if policies.is_none() && caller.session_policy.is_none() {
        record_roles(world, call);
        return Ok(());
    }
    if call.service == Service::Sts && world.iam.trusts_directly(call, caller) {
        return Ok(());
    }
    world.region(&call.scope);
    let Some(region) = world.regions.get(&call.scope) else { return Ok(()) };
    for asked in requests::of(region, &world.iam, call) {
        let request =
            asked.request.with("aws:PrincipalArn", principal).with("aws:PrincipalAccount", &caller.account);
        let request = request.with_tags(&["aws:PrincipalTag"], &caller.tags);
        let of_role = policies.as_ref().map_or(Decision::Allowed, |all| Policy::all(all, &request));
        let of_session = caller.session_policy.as_ref().filter(|_| of_role == Decision::Allowed);
        let decision = of_session.map_or(of_role, |policy| policy.decide(&request));
        let (action, resource) = (request.action.clone(), request.resource.clone());
        if let Some(asked) = &mut world.iam.asked {
            asked.entry(principal.clone()).or_default().insert(request);
        }
        if decision != Decision::Allowed {
            let is_explicit = decision == Decision::DeniedExplicitly;
            let denial = Denial { action, resource, is_explicit, is_absent: asked.is_absent };
            return Err((refusal(call, caller, &denial, &asked.via), denial));
        }
    }
    record_roles(world, call);
    Ok(())
}

/// The service-linked roles of an account exist once its first group was made.
fn record_roles(world: &mut World, call: &Call) {
    if call.action == "CreateAutoScalingGroup" {
        let account = call.scope.account.clone();
        world.iam.service_linked.insert((account.clone(), "autoscaling.amazonaws.com".to_owned()));
        if call.params.get("MixedInstancesPolicy").is_some() {
            world.iam.service_linked.insert((account, "spot.amazonaws.com".to_owned()));
        }
    }
}

impl Iam {
    /// Whether a role of the caller's own account names the caller in its trust: then that alone suffices.
    fn trusts_directly(&self, call: &Call, caller: &Caller) -> bool {
        let role = call.params.text_of("RoleArn").and_then(|arn| self.roles.get(arn));
        role.is_some_and(|role| {
            let own = caller.role.as_ref().unwrap_or(&caller.arn);
            super::role_parts(&role.arn).is_some_and(|(account, _)| account == caller.account)
                && role.trusts.contains(own)
        })
    }
}

fn refusal(call: &Call, caller: &Caller, denial: &Denial, via: &Via) -> ApiError {
    let Denial { action, resource, is_explicit, .. } = denial;
    let why = if *is_explicit {
        "with an explicit deny in an identity-based policy".to_owned()
    } else {
        format!("because no identity-based policy allows the {action} action")
    };
    let words =
        format!("User: {} is not authorized to perform: {action} on resource: {resource} {why}", caller.arn);
    match via {
        Via::Itself => denied(call.service, &words),
        Via::Template(id) => {
            denied(Service::AutoScaling, &format!("You are not authorized to use launch template: {id}"))
        }
        Via::ServiceLinkedRole => denied(
            Service::AutoScaling,
            &format!("The default Service-Linked Role for Auto Scaling could not be created. {words}"),
        ),
    }
}

/// The answer to a call that a policy denies.
pub(crate) fn denied(service: Service, words: &str) -> ApiError {
    match service {
        Service::AutoScaling | Service::Sts | Service::Sqs => ApiError::new(403, "AccessDenied", words),
        Service::Ec2 => ApiError::new(
            403,
            "UnauthorizedOperation",
            format!(
                "You are not authorized to perform this operation. {words}. Encoded authorization failure message: c2ltdWxhdGVk"
            ),
        ),
        Service::ServiceQuotas | Service::Ssm => ApiError::refused("AccessDeniedException", words),
    }
}
