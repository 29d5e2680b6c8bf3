//! Faults and refusals over the wire, by class.

use anyhow::Result;
use capasg_cloud::{ErrorClass, Selector, Write};
use capasg_fake_aws::{Effect, Fault, LogFilter, Settings};

use crate::{
    fixtures::{GROUP, HOOK, map, set},
    replay::{REGION, refused},
    world::{World, data, group_of, template},
};

#[tokio::test]
async fn faults_have_their_classes() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let id = template(&world, GROUP).await?;
    world.done(Write::CreateGroup(Box::new(group_of(&id, 1)))).await?;
    let set_desired = |desired| Write::SetDesiredCapacity { group: GROUP.to_owned(), desired };
    let strike = |fault| world.simulator.add_fault(fault);

    strike(Fault::error("SetDesiredCapacity", 400, "Throttling", "Rate exceeded"));
    let error = refused(world.cloud.write(&set_desired(4)).await)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Throttled, false));

    strike(Fault::error("DescribeSubnets", 503, "RequestLimitExceeded", "Request limit exceeded."));
    let error = refused(world.cloud.subnets(&Selector::Ids(set(&["subnet-1"])), None).await)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Throttled, false));

    strike(Fault::error("SetDesiredCapacity", 500, "InternalFailure", "We encountered an internal error"));
    let error = refused(world.cloud.write(&set_desired(4)).await)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, true));
    assert_eq!(world.group().await?.capacity.desired, 3);

    strike(Fault::new("SetDesiredCapacity", Effect::LoseReply));
    let error = refused(world.cloud.write(&set_desired(5)).await)?;
    assert_eq!((error.class, error.outcome_unknown), (ErrorClass::Transient, true), "{error}");
    assert_eq!(world.group().await?.capacity.desired, 5, "the call had its effect");
    let calls = world.simulator.counts(&LogFilter::region(REGION).action("SetDesiredCapacity")).calls;
    assert_eq!(calls, 3, "nothing is repeated");
    Ok(())
}

#[tokio::test]
async fn what_the_cloud_refuses_has_its_class() -> Result<()> {
    let world = World::start(Settings::default()).await?;
    let id = template(&world, GROUP).await?;
    let class = async |write: Write| anyhow::Ok(refused(world.cloud.write(&write).await)?.class);

    let mut create = group_of(&id, 1);
    create.settings.subnets = set(&["subnet-ffffffff"]);
    assert_eq!(class(Write::CreateGroup(Box::new(create))).await?, ErrorClass::Invalid);
    let group = GROUP.to_owned();
    let absent = Write::SetDesiredCapacity { group: group.clone(), desired: 1 };
    assert_eq!(class(absent).await?, ErrorClass::NotFound);

    world.done(Write::CreateGroup(Box::new(group_of(&id, 1)))).await?;
    assert_eq!(class(Write::CreateGroup(Box::new(group_of(&id, 1)))).await?, ErrorClass::Conflict);
    let too_many = Write::SetDesiredCapacity { group: group.clone(), desired: 99 };
    assert_eq!(class(too_many).await?, ErrorClass::Invalid);
    let unknown = Write::TerminateInstances {
        group: group.clone(),
        instances: set(&["i-0ffffffffffffffff"]),
        decrement: true,
    };
    assert_eq!(class(unknown).await?, ErrorClass::NotFound);
    let nothing_held = Write::CompleteLifecycleAction {
        group: group.clone(),
        hook: HOOK.to_owned(),
        instance: "i-0ffffffffffffffff".to_owned(),
    };
    assert_eq!(class(nothing_held).await?, ErrorClass::NotFound);
    let no_hook = Write::DeleteLifecycleHook { group: group.clone(), hook: "none".to_owned() };
    assert_eq!(class(no_hook).await?, ErrorClass::NotFound);
    world.pass(60);
    let delete = Write::DeleteGroup { group: group.clone(), force: false };
    assert_eq!(class(delete).await?, ErrorClass::Conflict);
    world.done(Write::DeleteGroup { group: group.clone(), force: true }).await?;
    assert_eq!(class(Write::SetDesiredCapacity { group, desired: 1 }).await?, ErrorClass::Conflict);
    let again = Write::CreateLaunchTemplate {
        name: GROUP.to_owned(),
        data: Box::new(data()),
        description: String::new(),
        tags: map(&[]),
        client_token: "another".to_owned(),
    };
    assert_eq!(class(again).await?, ErrorClass::Conflict);
    Ok(())
}
