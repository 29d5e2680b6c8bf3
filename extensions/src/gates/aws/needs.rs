//! What one pool requires of AWS for one step, and the questions that follow from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
};

use capasg_api::{
    ASGMachinePool, ASGMachinePoolSpec,
    pool::{Image, InstancesDistribution, RolloutMode, RolloutType},
};
use capasg_cloud::{Place, Selector};
use kube::ResourceExt as _;

use super::launch::Launch;
use crate::{
    lookups::{ImageSource, Question},
    topology::PlannedPool,
};

/// The most types or IDs that one call of AWS takes. A pool has fewer.
const MOST: usize = 200;

/// What a pool requires. What is not part of the step, or not known, is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// What messages call the pool.
    pub(crate) name: String,
    /// The region.
    pub(crate) region: String,
    /// Whether the identity has to have access.
    pub(crate) identity: bool,
    /// Its subnets.
    pub(crate) subnets: BTreeSet<Selector>,
    /// Whether [`Self::subnets`] are all that it has.
    pub(crate) all_subnets: bool,
    /// The zones that it uses; empty for those of its subnets.
    pub(crate) zones: BTreeSet<String>,
    /// Security groups by ID.
    pub(crate) security_groups: BTreeSet<String>,
    /// Images.
    pub(crate) images: BTreeSet<ImageSource>,
    /// Instance types, of which one has to be offered in each zone.
    pub(crate) types: BTreeSet<String>,
    /// Instances that are launched.
    pub(crate) instances: i64,
    /// Those of them that are known to count towards a quota.
    pub(crate) launches: Vec<Launch>,
}

impl Needs {
    /// What is to be known before a pool of a topology is created. Subnets and security groups that are selected by tags or
    /// names may be created later.
    pub(crate) fn to_create(pool: &PlannedPool, version: Option<&str>) -> Self {
        let ids = pool.subnets.iter().flatten().filter_map(|subnet| subnet.id.clone());
        let ids: BTreeSet<String> = ids.take(MOST).collect();
        let all_subnets =
            pool.subnets.as_ref().is_some_and(|subnets| subnets.iter().all(|subnet| subnet.id.is_some()));
        let types: BTreeSet<String> = pool.types.iter().flatten().take(MOST).cloned().collect();
        let instances = i64::from(pool.replicas);
        let launches = pool.distribution.as_ref().map(InstancesDistribution::resolve);
        let launches = launches.map(|distribution| Launch::to_create(&types, &distribution, instances));
        let groups = pool.security_groups.iter().flatten().filter_map(|group| group.id.clone());
        Self {
            name: format!("machine pool {}", pool.name),
            region: pool.region.clone(),
            identity: true,
            subnets: (!ids.is_empty()).then_some(Selector::Ids(ids)).into_iter().collect(),
            all_subnets,
            zones: pool.zones.clone(),
            security_groups: groups.take(MOST).collect(),
            images: pool.image.iter().filter_map(|image| source_of(image, version)).collect(),
            types,
            instances,
            launches: launches.unwrap_or_default(),
        }
    }

    /// The images of a pool that depend on the version.
    pub(crate) fn images_of<'a>(pool: &ASGMachinePool, versions: impl Iterator<Item = &'a str>) -> Self {
        let image = &pool.spec.machine.image;
        let depends = image.ssm_parameter.as_ref().is_some_and(|parameter| parameter.contains('{'));
        let images = versions.filter(|_| depends).filter_map(|version| source_of(image, Some(version)));
        Self { images: images.collect(), ..Self::of(pool) }
    }

    /// What a pool requires before its instances are replaced: also addresses and vCPUs for the surge.
    pub(crate) fn to_roll_out(pool: &ASGMachinePool, version: &str) -> Self {
        let replicas = pool.status.as_ref().map_or(0, |status| status.desired_replicas);
        let rollout = pool.spec.rollout(replicas);
        let images = Self::images_of(pool, std::iter::once(version)).images;
        let types = pool.spec.instance_type_names().into_iter().take(MOST).collect();
        // A rolling update launches at most as many more instances as it replaces, and none while another actor manages the
        // replicas. AWS decides how many an instance refresh launches.
        let is_external = pool.status.as_ref().is_some_and(|status| status.replicas_managed_by.is_some());
        let is_rolling =
            rollout.type_ == RolloutType::RollingUpdate && rollout.mode == RolloutMode::Automatic;
        let surge = if is_rolling && !is_external { rollout.max_surge.min(replicas) } else { 0 };
        let instances = i64::from(surge.max(0));
        let subnets = if instances > 0 { used_subnets(pool) } else { BTreeSet::new() };
        let launches = Launch::to_surge(&types, &pool.spec.instances_distribution(), instances);
        Self { subnets, all_subnets: true, images, instances, launches, ..Self::of(pool) }
    }

    fn of(pool: &ASGMachinePool) -> Self {
        let (name, region) = (format!("ASGMachinePool {}", pool.name_any()), pool.spec.region.clone());
        Self { name, region, ..Self::default() }
    }

    /// Whether nothing is asked about the pool.
    pub(super) fn is_empty(&self) -> bool {
        let Self { subnets, security_groups, images, types, launches, .. } = self;
        !self.identity
            && subnets.is_empty()
            && security_groups.is_empty()
            && images.is_empty()
            && types.is_empty()
            && launches.is_empty()
    }

    /// What is required, in the place where it is checked.
    pub(super) fn at(self, place: Place) -> Check {
        Check { needs: self, place }
    }
}

/// A check in AWS: what a pool requires, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    needs: Needs,
    /// The identity of the pool, in its region.
    pub(super) place: Place,
}

impl Deref for Check {
    type Target = Needs;

    fn deref(&self) -> &Needs {
        &self.needs
    }
}

impl Check {
    /// The questions to AWS.
    pub(crate) fn questions(&self) -> BTreeSet<Question> {
        let mut questions: BTreeSet<Question> = self.subnet_questions().collect();
        if self.identity {
            questions.insert(Question::Identity { place: self.place.clone() });
        }
        questions.extend(self.images.iter().map(|source| self.image_question(source)));
        questions.extend(self.group_question());
        questions.extend(self.type_question());
        questions.extend(self.launches.iter().flat_map(|launch| launch.questions(&self.place)));
        questions
    }

    pub(super) fn subnet_questions(&self) -> impl Iterator<Item = Question> {
        let question =
            |selector: &Selector| Question::Subnets { place: self.place.clone(), selector: selector.clone() };
        self.subnets.iter().map(question)
    }

    pub(super) fn image_question(&self, source: &ImageSource) -> Question {
        Question::Image { place: self.place.clone(), source: source.clone() }
    }

    pub(super) fn group_question(&self) -> Option<Question> {
        let question =
            || Question::SecurityGroups { place: self.place.clone(), ids: self.security_groups.clone() };
        (!self.security_groups.is_empty()).then(question)
    }

    pub(super) fn type_question(&self) -> Option<Question> {
        let question = || Question::Offerings { place: self.place.clone(), types: self.types.clone() };
        (!self.types.is_empty()).then(question)
    }
}

/// The image for a version; `None` without one that the name of the parameter requires.
fn source_of(image: &Image, version: Option<&str>) -> Option<ImageSource> {
    match &image.id {
        Some(id) => Some(ImageSource::Id(id.clone())),
        None => image.ssm_parameter_for(version).ok().flatten().map(ImageSource::Parameter),
    }
}

/// The subnets in the failure domains of the pool, as the controller reports them; what the spec selects until it does.
fn used_subnets(pool: &ASGMachinePool) -> BTreeSet<Selector> {
    let reported = pool.status.iter().flat_map(|status| &status.subnets).map(|subnet| subnet.id.clone());
    let reported: BTreeSet<String> = reported.take(MOST).collect();
    if reported.is_empty() { selectors(&pool.spec) } else { [Selector::Ids(reported)].into() }
}

fn selectors(spec: &ASGMachinePoolSpec) -> BTreeSet<Selector> {
    let ids: BTreeSet<String> = spec.subnets.iter().filter_map(|subnet| subnet.id.clone()).collect();
    let tags = spec.subnets.iter().filter_map(|subnet| subnet.tags.clone());
    let tags = tags.filter(|tags: &BTreeMap<_, _>| !tags.is_empty()).map(Selector::Tags);
    (!ids.is_empty()).then_some(Selector::Ids(ids)).into_iter().chain(tags).collect()
}
