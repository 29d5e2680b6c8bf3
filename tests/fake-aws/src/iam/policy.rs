//! The grammar of policies, and how a request is decided by them ("Policy evaluation logic" of the IAM user guide).

use serde_json::{Map, Value};

use super::{condition::Condition, matching, values::texts};

/// A policy of an identity, or the trust policy of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    statements: Vec<Statement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    sid: String,
    allows: bool,
    /// Only a trust policy has principals: the kind (`AWS`, `Service`, `Federated`, `*`) and the value.
    principals: Option<Vec<(String, String)>>,
    actions: Matcher,
    /// A trust policy has none.
    resources: Option<Matcher>,
    conditions: Vec<Condition>,
}

/// `Action` or `NotAction`, `Resource` or `NotResource`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Matcher {
    negated: bool,
    patterns: Vec<String>,
}

/// What is asked of a policy: one action on one resource. A call may ask several.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// For example `ec2:RunInstances`.
    pub action: String,
    /// An ARN; `*` for actions without resource-level permissions.
    pub resource: String,
    /// Condition keys in lower case, with their values.
    pub context: std::collections::BTreeMap<String, Vec<String>>,
}

/// What policies say of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A statement allows it and none denies it.
    Allowed,
    /// No statement allows it.
    DeniedImplicitly,
    /// A statement denies it, whatever others allow.
    DeniedExplicitly,
}

impl Request {
    /// A request without condition keys.
    #[must_use]
    pub fn new(action: &str, resource: &str) -> Self {
        Self { action: action.to_owned(), resource: resource.to_owned(), ..Self::default() }
    }

    /// Adds a condition key with a value, or another value of a key that has several.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.context.entry(key.to_lowercase()).or_default().push(value.into());
        self
    }

    /// Adds a condition key for each tag, and none without tags.
    #[must_use]
    pub(crate) fn with_tags<'a>(
        self,
        prefixes: &[&str],
        tags: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Self {
        tags.into_iter().fold(self, |request, (key, value)| {
            prefixes
                .iter()
                .fold(request, |request, prefix| request.with(&format!("{prefix}/{key}"), value.clone()))
        })
    }
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// Names what is no valid policy, or what of the grammar is not known here: policy variables, and operators for
    /// numbers, dates and addresses.
    pub fn parse(policy: &Value) -> Result<Self, String> {
        let members = policy.as_object().ok_or("a policy is an object")?;
        known(members, &["Version", "Id", "Statement"])?;
        if members.get("Version") != Some(&Value::from("2012-10-17")) {
            return Err("Version must be 2012-10-17".to_owned());
        }
        let statements = match members.get("Statement").ok_or("Statement is missing")? {
            Value::Array(all) => all.iter().map(Statement::parse).collect::<Result<_, _>>()?,
            one => vec![Statement::parse(one)?],
        };
        Ok(Self { statements })
    }

    /// Decides a request of an identity that has this policy.
    #[must_use]
    pub fn decide(&self, request: &Request) -> Decision {
        Self::all(std::slice::from_ref(self), request)
    }

    /// Decides a request of an identity that has several policies.
    pub(crate) fn all(policies: &[Self], request: &Request) -> Decision {
        let hits = policies.iter().flat_map(|policy| &policy.statements).filter(|one| one.holds(request));
        combined(hits)
    }

    /// Decides, as the trust policy of a role, a request of somebody who is each of these principals.
    pub(crate) fn trusts(&self, request: &Request, principals: &[(&str, String)]) -> Decision {
        combined(self.statements.iter().filter(|one| one.names(principals) && one.holds(request)))
    }

    /// The statements that hold for a request.
    #[must_use]
    pub fn statements_for(&self, request: &Request) -> Vec<&str> {
        self.statements.iter().filter(|one| one.holds(request)).map(|one| one.sid.as_str()).collect()
    }
}

fn combined<'a>(hits: impl Iterator<Item = &'a Statement>) -> Decision {
    let mut decision = Decision::DeniedImplicitly;
    for statement in hits {
        if !statement.allows {
            return Decision::DeniedExplicitly;
        }
        decision = Decision::Allowed;
    }
    decision
}

impl Statement {
    fn parse(statement: &Value) -> Result<Self, String> {
        let members = statement.as_object().ok_or("a statement is an object")?;
        known(
            members,
            &["Sid", "Effect", "Principal", "Action", "NotAction", "Resource", "NotResource", "Condition"],
        )?;
        let allows = match members.get("Effect").and_then(Value::as_str) {
            Some("Allow") => true,
            Some("Deny") => false,
            _ => return Err("Effect must be Allow or Deny".to_owned()),
        };
        let principals = members.get("Principal").map(principals).transpose()?;
        let resources = Matcher::parse(members, "Resource")?;
        if resources.is_some() == principals.is_some() {
            return Err("a statement has a Resource, or, in a trust policy, a Principal".to_owned());
        }
        Ok(Self {
            sid: members.get("Sid").and_then(Value::as_str).unwrap_or_default().to_owned(),
            allows,
            principals,
            actions: Matcher::parse(members, "Action")?.ok_or("Action is missing")?.in_lower_case(),
            resources,
            conditions: members.get("Condition").map(Condition::parse_all).transpose()?.unwrap_or_default(),
        })
    }

    fn holds(&self, request: &Request) -> bool {
        let action = request.action.to_lowercase();
        self.actions.matches(|pattern| matching::like(pattern, &action))
            && self.resources.as_ref().is_none_or(|resources| {
                resources.matches(|pattern| pattern == "*" || matching::arn_like(pattern, &request.resource))
            })
            && self.conditions.iter().all(|condition| condition.holds(&request.context))
    }

    fn names(&self, principals: &[(&str, String)]) -> bool {
        let own = self.principals.as_deref().unwrap_or_default();
        own.iter().any(|(kind, value)| {
            value == "*" || principals.iter().any(|(other, name)| kind == other && value == name)
        })
    }
}

impl Matcher {
    fn parse(members: &Map<String, Value>, name: &str) -> Result<Option<Self>, String> {
        let not = format!("Not{name}");
        let (value, negated) = match (members.get(name), members.get(&not)) {
            (Some(_), Some(_)) => return Err(format!("{name} and {not} exclude each other")),
            (Some(value), None) => (value, false),
            (None, Some(value)) => (value, true),
            (None, None) => return Ok(None),
        };
        Ok(Some(Self { negated, patterns: texts(value)? }))
    }

    /// Names of actions are not case sensitive; ARNs are.
    fn in_lower_case(mut self) -> Self {
        for pattern in &mut self.patterns {
            *pattern = pattern.to_lowercase();
        }
        self
    }

    fn matches(&self, is_hit: impl Fn(&str) -> bool) -> bool {
        self.patterns.iter().any(|pattern| is_hit(pattern)) != self.negated
    }
}

fn principals(value: &Value) -> Result<Vec<(String, String)>, String> {
    match value {
        Value::String(all) if all == "*" => Ok(vec![("*".to_owned(), "*".to_owned())]),
        Value::Object(kinds) => {
            let mut all = Vec::new();
            for (kind, value) in kinds {
                all.extend(texts(value)?.into_iter().map(|one| (kind.clone(), one)));
            }
            Ok(all)
        }
        _ => Err("Principal is * or an object".to_owned()),
    }
}

fn known(members: &Map<String, Value>, names: &[&str]) -> Result<(), String> {
    match members.keys().find(|name| !names.contains(&name.as_str())) {
        Some(unknown) => Err(format!("the element {unknown} is not known")),
        None => Ok(()),
    }
}
