//! What counts as a duplicate.

use anyhow::Result;
use capasg_api::{ASGMachine, ASGMachineSpec};

use crate::{World, api_server::State, run};

#[test]
fn a_second_machine_of_an_instance_breaks_a_rule() -> Result<()> {
    run(async {
        let world = World::judged();
        let create = |name: &str, instance: &str| {
            let provider_id = format!("aws:///eu-west-1a/{instance}");
            let spec = ASGMachineSpec { provider_id, instance_id: instance.to_owned() };
            let mut machine = ASGMachine::new(name, spec);
            machine.metadata.namespace = Some("teams".to_owned());
            {
                let State { ledger, asg_machines, .. } = &mut *world.api.state();
                let _ = asg_machines.create(ledger, machine.clone());
            }
            let invariants = world.invariants().unwrap();
            invariants.no_second_machine(&mut invariants.inner(), &machine);
            invariants.broken().len()
        };
        assert_eq!(create("one", "i-0a"), 0);
        assert_eq!(create("two", "i-0b"), 0);
        assert_eq!(create("three", "i-0a"), 1);
    })
}
