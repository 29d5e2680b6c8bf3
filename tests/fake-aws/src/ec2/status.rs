//! Instance status checks and scheduled events.

use std::collections::BTreeMap;

use super::{Ec2State, Filters, dry_run, instances};
use crate::{ApiError, Tree, pages::Page, region::View};

pub(crate) fn describe_status(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("InstanceIds");
    instances::all_known(&view.state.instances, &wanted)?;
    let all = params.flag_of("IncludeAllInstances") == Some(true);
    let filters =
        Filters::read(params, &["instance-state-name", "instance-status.status", "availability-zone"])?;
    let page = Page::results(params, 5, 1000)?;
    let entries = view.state.instances.values().filter(|instance| {
        (wanted.is_empty() || wanted.contains(&instance.id))
            && (all || instance.state == Ec2State::Running)
            && filters.match_all(&BTreeMap::new(), |name| {
                vec![match name {
                    "instance-state-name" => instance.state.as_str().to_owned(),
                    "availability-zone" => instance.zone.clone(),
                    _ => status(instance.state, instance.impaired).to_owned(),
                }]
            })
    });
    let entries = entries.map(|instance| {
        let summary = Tree::new().with("Status", status(instance.state, instance.impaired));
        let system = Tree::new().with("Status", status(instance.state, false));
        let tree = Tree::new()
            .with("InstanceId", &instance.id)
            .with("AvailabilityZone", &instance.zone)
            .with("InstanceState", instance.state.render())
            .with("InstanceStatus", summary)
            .with("SystemStatus", system);
        (instance.id.clone(), tree)
    });
    Ok(page.reply(view.settings, "InstanceStatuses", entries.collect()))
}

fn status(state: Ec2State, impaired: bool) -> &'static str {
    match (state, impaired) {
        (Ec2State::Running, true) => "impaired",
        (Ec2State::Running, false) => "ok",
        (Ec2State::Pending, _) => "initializing",
        _ => "not-applicable",
    }
}
