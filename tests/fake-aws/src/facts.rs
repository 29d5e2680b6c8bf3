//! The official service model's names, types and required members, by which both edges of the core are checked.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use serde::Deserialize;

use crate::{ApiError, Service, Tree};

const FILE: &str = include_str!("../testdata/service-model-facts.json");

/// The facts of every service, as `tools/service_model_facts.py` wrote them.
#[expect(clippy::expect_used, reason = "the file is compiled in and parsed by every test of this crate")]
static FACTS: LazyLock<BTreeMap<String, ServiceFacts>> =
    LazyLock::new(|| serde_json::from_str::<File>(FILE).expect("the facts file is valid").services);

#[derive(Deserialize)]
struct File {
    services: BTreeMap<String, ServiceFacts>,
}

/// One service of the model.
#[derive(Deserialize)]
pub struct ServiceFacts {
    /// API version, also the end of the reply's name space.
    pub version: String,
    /// XML name space of replies.
    pub namespace: String,
    /// Input and output shapes by operation.
    pub operations: BTreeMap<String, OperationFacts>,
    /// Looked up for every member of every reply.
    shapes: HashMap<String, ShapeFacts>,
}

/// Shapes of one operation.
#[derive(Deserialize)]
pub struct OperationFacts {
    /// Name of the input structure.
    pub input: String,
    /// Name of the output structure, if the reply has members.
    pub output: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ShapeFacts {
    Structure {
        members: BTreeMap<String, MemberFacts>,
        #[serde(default)]
        required: Vec<String>,
    },
    List {
        list: String,
        item: String,
        flat: bool,
        #[serde(default)]
        bounds: Option<(Option<usize>, Option<usize>)>,
    },
    Map {
        map: (String, String),
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MemberFacts {
    Plain(String),
    Renamed(String, String, String),
}

/// A member of a structure with its names on the wire.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    /// Name in the service model; the name used in trees.
    pub name: &'a str,
    /// Name in query requests.
    pub request: &'a str,
    /// Name in XML replies.
    pub reply: &'a str,
    /// What it holds.
    pub shape: Shape<'a>,
}

/// What a member holds.
#[derive(Clone, Copy)]
pub enum Shape<'a> {
    /// A structure, by name.
    Structure(&'a str),
    /// A list: element shape, element name in replies, flattened in requests, bounds on its length.
    List {
        /// What the elements are.
        item: &'a str,
        /// Element name in XML.
        element: &'a str,
        /// Whether requests write `.N` instead of `.member.N`.
        flat: bool,
        /// Least and greatest number of items.
        bounds: (Option<usize>, Option<usize>),
    },
    /// A map from text to the named shape.
    Map(&'a str),
    /// A scalar: its kind and what follows it (`[min,max]` or `{a,b}`).
    Scalar(&'a str, &'a str),
}

impl ServiceFacts {
    /// The facts of one service.
    ///
    /// # Panics
    /// Never: every [`Service`] is in the compiled-in file, which a test reads whole.
    #[must_use]
    pub fn of(service: Service) -> &'static Self {
        &FACTS[service.as_str()]
    }

    /// Resolves the name of a shape.
    #[must_use]
    pub fn shape<'a>(&'a self, name: &'a str) -> Shape<'a> {
        match self.shapes.get(name) {
            Some(ShapeFacts::Structure { .. }) => Shape::Structure(name),
            Some(ShapeFacts::List { list, item, flat, bounds }) => {
                Shape::List { item: list, element: item, flat: *flat, bounds: bounds.unwrap_or_default() }
            }
            Some(ShapeFacts::Map { map }) => Shape::Map(&map.1),
            None => {
                let end = name.find(['[', '{']).unwrap_or(name.len());
                Shape::Scalar(&name[..end], &name[end..])
            }
        }
    }

    /// The members of a structure in name order.
    pub fn members<'a>(&'a self, structure: &str) -> impl Iterator<Item = Member<'a>> {
        let members = match self.shapes.get(structure) {
            Some(ShapeFacts::Structure { members, .. }) => Some(members),
            _ => None,
        };
        members.into_iter().flatten().map(|(name, facts)| self.resolve(name, facts))
    }

    /// A member by its name in the model.
    #[must_use]
    pub fn member<'a>(&'a self, structure: &str, name: &str) -> Option<Member<'a>> {
        match self.shapes.get(structure) {
            Some(ShapeFacts::Structure { members, .. }) => {
                members.get_key_value(name).map(|(name, facts)| self.resolve(name, facts))
            }
            _ => None,
        }
    }

    /// The required members of a structure.
    #[must_use]
    pub fn required(&self, structure: &str) -> &[String] {
        match self.shapes.get(structure) {
            Some(ShapeFacts::Structure { required, .. }) => required,
            _ => &[],
        }
    }

    fn resolve<'a>(&'a self, name: &'a str, facts: &'a MemberFacts) -> Member<'a> {
        match facts {
            MemberFacts::Plain(shape) => {
                Member { name, request: name, reply: name, shape: self.shape(shape) }
            }
            MemberFacts::Renamed(shape, request, reply) => {
                Member { name, request, reply, shape: self.shape(shape) }
            }
        }
    }
}

/// Checks parameters against the model: unknown members, missing ones, kinds, enumerations and bounds.
///
/// # Errors
/// `ValidationError` (`MissingParameter`, `UnknownParameter` or `InvalidParameterValue` for EC2).
pub fn check_input(service: Service, input: &str, params: &Tree) -> Result<(), ApiError> {
    Check { service, facts: ServiceFacts::of(service), reply: false }.structure(input, params, "")
}

/// Checks a reply against the model, so that no handler can emit a member that AWS does not have.
///
/// # Errors
/// Says which member is wrong.
pub fn check_output(service: Service, output: &str, reply: &Tree) -> Result<(), ApiError> {
    Check { service, facts: ServiceFacts::of(service), reply: true }.structure(output, reply, "")
}

struct Check {
    service: Service,
    facts: &'static ServiceFacts,
    reply: bool,
}

impl Check {
    fn structure(&self, structure: &str, tree: &Tree, path: &str) -> Result<(), ApiError> {
        if !matches!(tree, Tree::Map(_)) {
            return Err(self.wrong(path, "must be a structure"));
        }
        for name in self.facts.required(structure) {
            if tree.get(name).is_none() {
                return Err(self.missing(&join(path, name)));
            }
        }
        for (name, value) in tree.members() {
            let path = join(path, name);
            match self.facts.member(structure, name) {
                Some(member) => self.shape(member.shape, value, &path)?,
                None => return Err(self.unknown(&path)),
            }
        }
        Ok(())
    }

    fn shape(&self, shape: Shape<'_>, tree: &Tree, path: &str) -> Result<(), ApiError> {
        match (shape, tree) {
            (Shape::Structure(name), _) => self.structure(name, tree, path),
            (Shape::List { item, bounds: (low, high), .. }, Tree::List(items)) => {
                if !self.reply && low.is_some_and(|low| items.len() < low) {
                    return Err(self.wrong(path, "Member must have length greater than or equal to 1"));
                }
                if let Some(high) = high.filter(|high| items.len() > *high) {
                    return Err(
                        self.wrong(path, &format!("Member must have length less than or equal to {high}"))
                    );
                }
                items.iter().try_for_each(|value| self.shape(self.facts.shape(item), value, path))
            }
            (Shape::Map(value), Tree::Map(members)) => {
                members.values().try_for_each(|member| self.shape(self.facts.shape(value), member, path))
            }
            (Shape::Scalar(kind, limits), Tree::Text(text)) => self.scalar(kind, limits, text, path),
            _ => Err(self.wrong(path, "has the wrong kind")),
        }
    }

    fn scalar(&self, kind: &str, limits: &str, text: &str, path: &str) -> Result<(), ApiError> {
        let well_formed = match kind {
            "boolean" => text == "true" || text == "false",
            "integer" => text.parse::<i32>().is_ok(),
            "long" => text.parse::<i64>().is_ok(),
            "float" | "double" => text.parse::<f64>().is_ok(),
            "timestamp" => chrono::DateTime::parse_from_rfc3339(text).is_ok(),
            _ => true,
        };
        if !well_formed {
            return Err(self.wrong(path, &format!("Value '{text}' must be a {kind}")));
        }
        if let Some(values) = limits.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            if !values.split(',').any(|value| value == text) {
                let spaced = values.replace(',', ", ");
                return Err(self.constraint(
                    path,
                    text,
                    &format!("Member must satisfy enum value set: [{spaced}]"),
                ));
            }
        } else if let Some((low, high)) = limits
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .and_then(|rest| rest.split_once(','))
        {
            let (size, noun) = if kind == "string" {
                (i64::try_from(text.chars().count()).unwrap_or(i64::MAX), "have length")
            } else {
                (text.parse::<i64>().unwrap_or_default(), "have value")
            };
            // An empty text takes the placement group away, in spite of its least length in the model.
            let clears = path == "PlacementGroup" && text.is_empty();
            if !clears && low.parse::<i64>().is_ok_and(|low| size < low) {
                let words = format!("Member must {noun} greater than or equal to {low}");
                return Err(self.constraint(path, text, &words));
            }
            if high.parse::<i64>().is_ok_and(|high| size > high) {
                let words = format!("Member must {noun} less than or equal to {high}");
                return Err(self.constraint(path, text, &words));
            }
        }
        Ok(())
    }

    fn constraint(&self, path: &str, text: &str, words: &str) -> ApiError {
        if self.service == Service::Ec2 {
            return ApiError::refused("InvalidParameterValue", format!("{path}: {words}"));
        }
        self.detected(&format!(
            "Value '{text}' at '{}' failed to satisfy constraint: {words}",
            wire_path(path)
        ))
    }

    fn missing(&self, path: &str) -> ApiError {
        if self.reply {
            return self.wrong(path, "is missing");
        }
        if self.service == Service::Ec2 {
            return ApiError::refused(
                "MissingParameter",
                format!("The request must contain the parameter {path}"),
            );
        }
        self.detected(&format!(
            "Value null at '{}' failed to satisfy constraint: Member must not be null",
            wire_path(path)
        ))
    }

    fn unknown(&self, path: &str) -> ApiError {
        if self.reply {
            return self.wrong(path, "is not in the service model");
        }
        if self.service == Service::Ec2 {
            return ApiError::refused("UnknownParameter", format!("The parameter {path} is not recognized"));
        }
        ApiError::refused("UnknownParameter", format!("The parameter {path} is not in the service model."))
    }

    fn wrong(&self, path: &str, words: &str) -> ApiError {
        if self.reply {
            return ApiError::new(500, "SimulatorBug", format!("Reply member {path} {words}."));
        }
        match self.service {
            Service::Ec2 => ApiError::refused("InvalidParameterValue", format!("{path}: {words}")),
            _ => self
                .detected(&format!("Value at '{}' failed to satisfy constraint: {words}", wire_path(path))),
        }
    }

    fn detected(&self, words: &str) -> ApiError {
        let code = match self.service {
            Service::ServiceQuotas => "IllegalArgumentException",
            Service::Ssm => "ValidationException",
            _ => "ValidationError",
        };
        ApiError::refused(code, format!("1 validation error detected: {words}"))
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// AWS's validation texts name members in lower camel case.
fn wire_path(path: &str) -> String {
    let lower = |name: &str| {
        let mut characters = name.chars();
        characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
    };
    path.split('.').map(lower).collect::<Vec<_>>().join(".")
}
