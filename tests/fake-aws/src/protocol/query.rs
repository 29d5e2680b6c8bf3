//! Query requests (`Action=...&Tags.member.1.Key=...`, EC2's `Tag.1.Key=...`) into trees.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use crate::{
    ApiError, Service, Tree,
    facts::{ServiceFacts, Shape},
};

/// Dotted names as a tree of their parts.
#[derive(Default)]
struct Node {
    text: Option<String>,
    children: BTreeMap<String, Self>,
}

/// Reads a form-encoded body: the action, and its parameters by the model's member names.
///
/// # Errors
/// A parameter that the service model does not have, or a body that is no form.
pub fn parse(service: Service, body: &str) -> Result<(String, Tree), ApiError> {
    let mut root = Node::default();
    let mut action = String::new();
    for pair in body.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode(name)?, decode(value)?);
        match name.as_str() {
            "Action" => action = value,
            "Version" => {}
            _ => {
                let mut node = &mut root;
                for part in name.split('.') {
                    node = node.children.entry(part.to_owned()).or_default();
                }
                node.text = Some(value);
            }
        }
    }
    let facts = ServiceFacts::of(service);
    // An action that the facts do not have is refused by the core, whatever its parameters.
    let Some(operation) = facts.operations.get(&action) else { return Ok((action, Tree::new())) };
    let params = Reader { facts, flat: service == Service::Ec2 }.structure(&operation.input, &root, "")?;
    Ok((action, params))
}

fn decode(text: &str) -> Result<String, ApiError> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| ApiError::refused("MalformedQueryString", "The query string is not valid UTF-8."))
}

struct Reader {
    facts: &'static ServiceFacts,
    /// EC2 writes every list flat.
    flat: bool,
}

impl Reader {
    fn structure(&self, structure: &str, node: &Node, path: &str) -> Result<Tree, ApiError> {
        let mut tree = Tree::new();
        for (name, child) in &node.children {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let member = self.facts.members(structure).find(|member| member.request == name);
            let member = member.ok_or_else(|| unknown(&path))?;
            tree.set(member.name, self.value(member.shape, child, &path)?);
        }
        Ok(tree)
    }

    fn value(&self, shape: Shape<'_>, node: &Node, path: &str) -> Result<Tree, ApiError> {
        match shape {
            Shape::Structure(name) => self.structure(name, node, path),
            Shape::List { item, flat, .. } => {
                // The query protocol writes an empty list as an empty value under the list's name.
                if node.children.is_empty() {
                    return Ok(Tree::List(Vec::new()));
                }
                let items = if flat || self.flat { Some(node) } else { node.children.get("member") };
                let items = items.ok_or_else(|| unknown(path))?;
                let mut numbered = Vec::new();
                for (name, child) in &items.children {
                    let index: usize = name.parse().map_err(|_| unknown(&format!("{path}.{name}")))?;
                    numbered
                        .push((index, self.value(self.facts.shape(item), child, &format!("{path}.{name}"))?));
                }
                numbered.sort_by_key(|(index, _)| *index);
                Ok(Tree::List(numbered.into_iter().map(|(_, value)| value).collect()))
            }
            Shape::Map(_) => Err(unknown(path)),
            Shape::Scalar(..) => match &node.text {
                Some(text) if node.children.is_empty() => Ok(Tree::Text(text.clone())),
                _ => Err(unknown(path)),
            },
        }
    }
}

fn unknown(path: &str) -> ApiError {
    ApiError::refused("UnknownParameter", format!("The parameter {path} is not recognized"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_scaling_lists_are_members() {
        let body = "Action=CreateOrUpdateTags&Version=2011-01-01&Tags.member.2.Key=b&Tags.member.1.Key=a%20c&Tags.member.10.Key=z";
        let (action, params) = parse(Service::AutoScaling, body).unwrap();
        assert_eq!(action, "CreateOrUpdateTags");
        let keys: Vec<_> = params.items_of("Tags").iter().filter_map(|tag| tag.text_of("Key")).collect();
        assert_eq!(keys, ["a c", "b", "z"]);
    }

    #[test]
    fn ec2_lists_are_flat_and_named_in_the_singular() {
        let body = "Action=CreateLaunchTemplate&LaunchTemplateData.SecurityGroupId.1=sg-1&LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize=20&TagSpecification.1.Tag.1.Key=k";
        let (_, params) = parse(Service::Ec2, body).unwrap();
        assert_eq!(params.at("LaunchTemplateData").unwrap().texts_of("SecurityGroupIds"), ["sg-1"]);
        let mapping = &params.at("LaunchTemplateData").unwrap().items_of("BlockDeviceMappings")[0];
        assert_eq!(mapping.at("Ebs.VolumeSize").and_then(Tree::text), Some("20"));
        let tags = params.items_of("TagSpecifications")[0].items_of("Tags");
        assert_eq!(tags[0].text_of("Key"), Some("k"));
    }

    #[test]
    fn an_unknown_parameter_is_rejected() {
        let error = parse(Service::AutoScaling, "Action=SetDesiredCapacity&Desired=3").unwrap_err();
        assert_eq!(error.code, "UnknownParameter");
    }

    #[test]
    fn an_empty_list_is_a_list() {
        let (_, params) =
            parse(Service::AutoScaling, "Action=DescribeAutoScalingGroups&AutoScalingGroupNames=").unwrap();
        assert_eq!(params.get("AutoScalingGroupNames"), Some(&Tree::List(Vec::new())));
    }
}
