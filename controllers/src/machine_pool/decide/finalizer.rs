//! Decides about our finalizer: it is added before anything is created in AWS (C6, C8), and removed once nothing is
//! left there. Until the first call that creates or changes a resource, an annotation says that nothing is there (E3).

use capasg_api::names::finalizers;
use kube::ResourceExt;

use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::{Part, Plan, PoolObjects};

/// Adds the finalizer and the owner ID. The write wakes the pool again.
#[must_use]
pub fn add(objects: &PoolObjects, owner_id: &str) -> Part {
    let mut all = objects.pool.finalizers().to_vec();
    if !objects.has_finalizer() {
        all.push(finalizers::POOL.to_owned());
    }
    Part::of(KubeWrite::AddPoolFinalizer {
        pool: objects.key.clone(),
        resource_version: objects.pool.resource_version().unwrap_or_default(),
        finalizers: all,
        owner_id: owner_id.to_owned(),
        // With any of them, a pool may have created something before.
        nothing_created: !objects.has_finalizer()
            && objects.owner_id().is_none()
            && !objects.records_resources(),
    })
}

/// Removes the annotation that says that nothing was created, if the plan calls AWS to create or change something. The API
/// server has to acknowledge it before: the answer to the call may be lost, and the process may end.
#[must_use]
pub fn record_creation(objects: &PoolObjects, plan: &Plan) -> Part {
    let is_first = objects.has_creation_mark() && plan.writes().next().is_some();
    Part::of_all(is_first.then(|| KubeWrite::RemoveNothingCreated {
        pool: objects.key.clone(),
        uid: objects.pool.uid().unwrap_or_default(),
    }))
}

/// Removes the finalizer.
#[must_use]
pub fn remove(objects: &PoolObjects) -> Part {
    let others = objects.pool.finalizers().iter().filter(|finalizer| *finalizer != finalizers::POOL);
    Part::of(KubeWrite::RemovePoolFinalizer {
        pool: objects.key.clone(),
        resource_version: objects.pool.resource_version().unwrap_or_default(),
        finalizers: others.cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capasg_api::{
        ASGMachinePoolStatus,
        names::annotations,
        pool::{GroupStatus, LaunchTemplateStatus},
    };
    use capasg_cloud::Write;

    use super::*;
    use crate::machine_pool::decide::testing::{ARN, Stage};
    use crate::machine_pool::model::{Phase, Step};

    fn marks(objects: &PoolObjects) -> bool {
        add(objects, "me").steps.iter().any(|step| {
            matches!(step, Step::Kubernetes(KubeWrite::AddPoolFinalizer { nothing_created: true, .. }))
        })
    }

    #[test]
    fn e3_only_a_pool_that_had_neither_owner_id_nor_finalizer_has_created_nothing() {
        let fresh = Stage::new(0).objects;
        assert!(marks(&fresh));
        let mut claimed = fresh.clone();
        Arc::make_mut(&mut claimed.pool).metadata.finalizers = Some(vec![finalizers::POOL.to_owned()]);
        assert!(!marks(&claimed), "its owner ID was removed");
        let mut owned = fresh.clone();
        Arc::make_mut(&mut owned.pool)
            .annotations_mut()
            .insert(annotations::OWNER_ID.to_owned(), "me".to_owned());
        assert!(!marks(&owned), "restored, or its finalizer was removed");
        let mut recorded = fresh;
        Arc::make_mut(&mut recorded.pool).spec.provider_id = Some(ARN.to_owned());
        assert!(!marks(&recorded));
    }

    /// `kubectl replace` with a manifest removes annotations, finalizers and provider IDs.
    #[test]
    fn e3_a_pool_whose_status_names_a_resource_has_created_something() {
        let fresh = Stage::new(0).objects;
        let of = |status: ASGMachinePoolStatus| {
            let mut objects = fresh.clone();
            let pool = Arc::make_mut(&mut objects.pool);
            pool.status = Some(status);
            let claimed = marks(&objects);
            let pool = Arc::make_mut(&mut objects.pool);
            pool.annotations_mut().insert(annotations::NOTHING_CREATED.to_owned(), "true".to_owned());
            (claimed, objects.has_created_nothing())
        };
        assert_eq!(of(ASGMachinePoolStatus::default()), (true, true));
        let group = Some(GroupStatus::default());
        assert_eq!(of(ASGMachinePoolStatus { group, ..Default::default() }), (false, false));
        let launch_template = Some(LaunchTemplateStatus::default());
        assert_eq!(of(ASGMachinePoolStatus { launch_template, ..Default::default() }), (false, false));
    }

    #[test]
    fn e3_the_first_write_to_aws_removes_the_annotation_once() {
        let mut objects = Stage::new(0).objects;
        let mut plan = Plan::default();
        let records = |objects: &PoolObjects, plan: &Plan| !record_creation(objects, plan).steps.is_empty();
        assert!(!records(&objects, &plan));
        Arc::make_mut(&mut objects.pool)
            .annotations_mut()
            .insert(annotations::NOTHING_CREATED.to_owned(), "true".to_owned());
        assert!(!records(&objects, &plan), "the plan only reads");
        plan.add(Phase::Group, Part::of(Write::DeleteLaunchTemplate { id: "lt-1".to_owned() }));
        assert!(records(&objects, &plan));
        Arc::make_mut(&mut objects.pool).annotations_mut().clear();
        assert!(!records(&objects, &plan));
    }
}
