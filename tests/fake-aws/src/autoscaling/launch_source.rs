//! What a group launches from: a launch template or a mixed instances policy, checked when it is set.

pub(crate) use super::source::{Distribution, LaunchSource, Mixed, Override, Specification};
use crate::{
    ApiError, Settings, Tree,
    ec2::{Market, template_data},
    region::State,
};

impl Default for Distribution {
    fn default() -> Self {
        Self {
            on_demand_strategy: "prioritized".to_owned(),
            base: 0,
            percentage: 100,
            spot_strategy: "lowest-price".to_owned(),
            pools: None,
            max_price: None,
        }
    }
}

impl Specification {
    pub(crate) fn render(&self) -> Tree {
        Tree::new()
            .with("LaunchTemplateId", &self.id)
            .with("LaunchTemplateName", &self.name)
            .with("Version", &self.version)
    }

    fn read(state: &State, tree: &Tree) -> Result<Self, ApiError> {
        let (id, name) = (tree.text_of("LaunchTemplateId"), tree.text_of("LaunchTemplateName"));
        if id.is_some() == name.is_some() {
            return Err(ApiError::validation(
                "Valid requests must contain either launchTemplateId or LaunchTemplateName",
            ));
        }
        let template = state.template(id, name).ok_or_else(|| {
            let words = match (id, name) {
                (Some(id), _) => {
                    format!("The specified launch template, with template ID {id}, does not exist.")
                }
                (None, name) => format!(
                    "The specified launch template, with template name {}, does not exist.",
                    name.unwrap_or_default()
                ),
            };
            unusable(&words)
        })?;
        let version = tree.text_of("Version").unwrap_or("$Default").to_owned();
        if template.version(&version).is_none() {
            return Err(unusable(&format!(
                "Could not find the specified version {version} for the launch template with ID {}.",
                template.id
            )));
        }
        Ok(Self { id: template.id.clone(), name: template.name.clone(), version })
    }

    /// Checks that the group could launch from the version now.
    fn check(&self, state: &State, settings: &Settings, types: &[String]) -> Result<(), ApiError> {
        let version =
            state.template(Some(&self.id), None).and_then(|template| template.version(&self.version));
        match version {
            Some((_, version)) => match template_data::refusal(state, settings, &version.data, types) {
                Some(words) => Err(unusable(&words)),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }
}

fn unusable(words: &str) -> ApiError {
    ApiError::validation(format!("You must use a valid fully-formed launch template. {words}"))
}

impl Distribution {
    fn overlaid(mut self, tree: Option<&Tree>) -> Result<Self, ApiError> {
        let Some(tree) = tree else { return Ok(self) };
        if let Some(strategy) = tree.text_of("OnDemandAllocationStrategy") {
            known(strategy, &["lowest-price", "prioritized"], "OnDemandAllocationStrategy")?;
            strategy.clone_into(&mut self.on_demand_strategy);
        }
        if let Some(strategy) = tree.text_of("SpotAllocationStrategy") {
            let strategies = [
                "lowest-price",
                "capacity-optimized",
                "capacity-optimized-prioritized",
                "price-capacity-optimized",
            ];
            known(strategy, &strategies, "SpotAllocationStrategy")?;
            strategy.clone_into(&mut self.spot_strategy);
        }
        self.base = tree.number_of("OnDemandBaseCapacity").unwrap_or(self.base);
        self.percentage = tree.number_of("OnDemandPercentageAboveBaseCapacity").unwrap_or(self.percentage);
        if self.base < 0 || !(0..=100).contains(&self.percentage) {
            return Err(ApiError::validation(
                "OnDemandBaseCapacity must be at least 0 and OnDemandPercentageAboveBaseCapacity between 0 and 100",
            ));
        }
        self.pools = tree.number_of("SpotInstancePools").or(self.pools);
        if let Some(price) = tree.text_of("SpotMaxPrice") {
            self.max_price = (!price.is_empty()).then(|| price.to_owned());
        }
        Ok(self)
    }

    fn render(&self) -> Tree {
        let pools = (self.spot_strategy == "lowest-price").then(|| self.pools.unwrap_or(2));
        Tree::new()
            .with("OnDemandAllocationStrategy", &self.on_demand_strategy)
            .with("OnDemandBaseCapacity", self.base)
            .with("OnDemandPercentageAboveBaseCapacity", self.percentage)
            .with("SpotAllocationStrategy", &self.spot_strategy)
            .with_opt("SpotInstancePools", pools)
            .with_opt("SpotMaxPrice", self.max_price.as_deref())
    }

    /// The market of the next launch, given how many of each there are.
    fn market(&self, on_demand: i64, spot: i64) -> Market {
        let above = on_demand + spot + 1 - self.base;
        // On-demand capacity above the base rounds up, as AWS says it does.
        let wanted = self.base.min(on_demand + spot + 1) + (above.max(0) * self.percentage + 99) / 100;
        if on_demand < wanted { Market::OnDemand } else { Market::Spot }
    }
}

fn known(value: &str, values: &[&str], name: &str) -> Result<(), ApiError> {
    if values.contains(&value) {
        return Ok(());
    }
    Err(ApiError::validation(format!("{name} '{value}' is not one of {}", values.join(", "))))
}

impl LaunchSource {
    /// Reads `LaunchTemplate` or `MixedInstancesPolicy`, of which a request may hold one. Without either the
    /// result is `None`. `previous` is what an update starts from.
    pub(crate) fn read(
        state: &State,
        settings: &Settings,
        params: &Tree,
        previous: Option<&Self>,
    ) -> Result<Option<Self>, ApiError> {
        let source = match (params.get("LaunchTemplate"), params.get("MixedInstancesPolicy")) {
            (Some(_), Some(_)) => {
                return Err(ApiError::validation(
                    "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.",
                ));
            }
            (None, None) => return Ok(None),
            (Some(template), None) => Self::Template(Specification::read(state, template)?),
            (None, Some(policy)) => Self::Mixed(Mixed::read(state, policy, previous)?),
        };
        source.check(state, settings)?;
        Ok(Some(source))
    }

    fn check(&self, state: &State, settings: &Settings) -> Result<(), ApiError> {
        match self {
            Self::Template(template) => template.check(state, settings, &[]),
            Self::Mixed(mixed) => {
                let types: Vec<String> = mixed.overrides.iter().map(|own| own.kind.clone()).collect();
                mixed.template.check(state, settings, &types)?;
                mixed.overrides.iter().try_for_each(|own| match &own.template {
                    Some(template) => template.check(state, settings, &types),
                    None => Ok(()),
                })
            }
        }
    }

    /// What `DescribeAutoScalingGroups` shows, as the member's name and value.
    pub(crate) fn render(&self) -> (&'static str, Tree) {
        match self {
            Self::Template(template) => ("LaunchTemplate", template.render()),
            Self::Mixed(mixed) => {
                let overrides = mixed.overrides.iter().map(|own| {
                    let template = own.template.as_ref().map(Specification::render);
                    Tree::new()
                        .with("InstanceType", &own.kind)
                        .with_opt("LaunchTemplateSpecification", template)
                        .with_opt("WeightedCapacity", own.weight.as_deref())
                });
                let template = Tree::new()
                    .with("LaunchTemplateSpecification", mixed.template.render())
                    .with("Overrides", Tree::list(overrides));
                let policy = Tree::new()
                    .with("LaunchTemplate", template)
                    .with("InstancesDistribution", mixed.distribution.render());
                ("MixedInstancesPolicy", policy)
            }
        }
    }

    /// The template whose versions the group's scale-in compares.
    pub(crate) fn template(&self) -> &Specification {
        match self {
            Self::Template(template) => template,
            Self::Mixed(mixed) => &mixed.template,
        }
    }

    /// What could be launched next, best first: template and instance type (`None`: the template's own).
    pub(crate) fn candidates(&self) -> Vec<(&Specification, Option<&str>)> {
        match self {
            Self::Mixed(mixed) if !mixed.overrides.is_empty() => mixed
                .overrides
                .iter()
                .map(|own| (own.template.as_ref().unwrap_or(&mixed.template), Some(own.kind.as_str())))
                .collect(),
            source => vec![(source.template(), None)],
        }
    }

    /// The market of the next launch; `None` where the template decides.
    pub(crate) fn market(&self, on_demand: i64, spot: i64) -> Option<Market> {
        match self {
            Self::Template(_) => None,
            Self::Mixed(mixed) => Some(mixed.distribution.market(on_demand, spot)),
        }
    }
}

impl Mixed {
    fn read(state: &State, policy: &Tree, previous: Option<&LaunchSource>) -> Result<Self, ApiError> {
        let before = match previous {
            Some(LaunchSource::Mixed(mixed)) => Some(mixed),
            _ => None,
        };
        let template = match (policy.at("LaunchTemplate.LaunchTemplateSpecification"), before) {
            (Some(tree), _) => Specification::read(state, tree)?,
            (None, Some(before)) => before.template.clone(),
            (None, None) => {
                return Err(ApiError::validation("MixedInstancesPolicy must have a LaunchTemplate"));
            }
        };
        let given = policy.get("LaunchTemplate").and_then(|tree| tree.get("Overrides"));
        let overrides = match (given, before) {
            (Some(list), _) => {
                list.items().iter().map(|own| Override::read(state, own)).collect::<Result<Vec<_>, _>>()?
            }
            // Only a policy that leaves out LaunchTemplate as a whole keeps the overrides it had.
            (None, Some(before)) if policy.get("LaunchTemplate").is_none() => before.overrides.clone(),
            (None, _) => Vec::new(),
        };
        if overrides.len() > 40 {
            return Err(ApiError::validation("A mixed instances policy can have at most 40 overrides"));
        }
        for (index, own) in overrides.iter().enumerate() {
            if overrides[..index].iter().any(|earlier| earlier.kind == own.kind) {
                return Err(ApiError::validation(format!(
                    "Duplicate instance type '{}' in overrides",
                    own.kind
                )));
            }
        }
        let distribution = before.map(|before| before.distribution.clone()).unwrap_or_default();
        let distribution = distribution.overlaid(policy.get("InstancesDistribution"))?;
        Ok(Self { template, overrides, distribution })
    }
}

impl Override {
    fn read(state: &State, tree: &Tree) -> Result<Self, ApiError> {
        let kind = tree
            .text_of("InstanceType")
            .ok_or_else(|| ApiError::validation("Every override must have an InstanceType"))?
            .to_owned();
        let template = tree.get("LaunchTemplateSpecification");
        let template = template.map(|tree| Specification::read(state, tree)).transpose()?;
        Ok(Self { kind, template, weight: tree.text_of("WeightedCapacity").map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_on_demand_and_the_rest_is_split() {
        let distribution = Distribution { base: 2, percentage: 50, ..Distribution::default() };
        let mut counts = (0, 0);
        for _ in 0..6 {
            match distribution.market(counts.0, counts.1) {
                Market::OnDemand => counts.0 += 1,
                Market::Spot => counts.1 += 1,
            }
        }
        assert_eq!(counts, (4, 2));
        let all_spot = Distribution { percentage: 0, ..Distribution::default() };
        assert_eq!(all_spot.market(0, 3), Market::Spot);
    }
}
