//! The simulator's own tables against the facts of the official service model.

use capasg_simulator::{
    Service,
    facts::{ServiceFacts, Shape},
    operations,
};

/// Whether a path of member names leads somewhere in the model; lists are walked through.
fn leads(facts: &ServiceFacts, structure: &str, path: &str) -> bool {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let Some(member) = facts.member(structure, name) else { return false };
    let Some(rest) = rest else { return true };
    match member.shape {
        Shape::Structure(inner) => leads(facts, inner, rest),
        Shape::List { item, .. } => match facts.shape(item) {
            Shape::Structure(inner) => leads(facts, inner, rest),
            _ => false,
        },
        _ => false,
    }
}

#[test]
fn every_operation_is_in_the_model_and_the_other_way_round() {
    for service in Service::ALL {
        let facts = ServiceFacts::of(service);
        let own: Vec<&str> =
            operations().iter().filter(|own| own.service == service).map(|own| own.action).collect();
        for action in &own {
            assert!(facts.operations.contains_key(*action), "{action} is not in the model");
        }
        for action in facts.operations.keys() {
            assert!(own.contains(&action.as_str()), "{action} is in the facts and not simulated");
        }
    }
}

#[test]
fn every_accepted_parameter_is_in_the_model() {
    for operation in operations() {
        let facts = ServiceFacts::of(operation.service);
        let input = &facts.operations[operation.action].input;
        for path in operation.accepts {
            assert!(leads(facts, input, path), "{} does not have {path}", operation.action);
        }
    }
}

#[test]
fn every_required_parameter_is_accepted() {
    for operation in operations() {
        let facts = ServiceFacts::of(operation.service);
        for required in facts.required(&facts.operations[operation.action].input) {
            let known = operation.accepts.iter().any(|path| path.split('.').next() == Some(required));
            assert!(known, "{} needs {required}", operation.action);
        }
    }
}

#[test]
fn reads_and_mutations_are_told_apart_by_their_names() {
    for operation in operations() {
        let reads = operation.action.starts_with("Describe") || operation.action.starts_with("Get");
        assert_eq!(operation.is_mutation(), !reads, "{}", operation.action);
    }
}
