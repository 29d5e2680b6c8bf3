//! Replies and errors of the query protocols, in XML.

use crate::{
    ApiError, Service, Tree,
    facts::{ServiceFacts, Shape},
};

/// Writes a reply.
///
/// # Errors
/// A member that the service model does not have: a bug of the simulator, told instead of dropped.
pub fn reply(service: Service, action: &str, reply: &Tree, request_id: &str) -> Result<String, ApiError> {
    let facts = ServiceFacts::of(service);
    let output = facts.operations.get(action).and_then(|operation| operation.output.as_deref());
    let mut writer = Writer { facts, out: String::with_capacity(1024) };
    let namespace = facts.namespace.trim_end_matches('/');
    writer.out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    writer.open(&format!("{action}Response xmlns=\"{namespace}/\""));
    if service == Service::Ec2 {
        writer.element("requestId", request_id);
        match output {
            Some(output) => writer.structure(output, reply)?,
            None => writer.element("return", "true"),
        }
    } else {
        if let Some(output) = output {
            let result = format!("{action}Result");
            writer.open(&result);
            writer.structure(output, reply)?;
            writer.close(&result);
        }
        writer.out.push_str("<ResponseMetadata>");
        writer.element("RequestId", request_id);
        writer.out.push_str("</ResponseMetadata>");
    }
    writer.close(&format!("{action}Response"));
    Ok(writer.out)
}

/// Writes an error.
#[must_use]
pub fn error(service: Service, error: &ApiError, request_id: &str) -> String {
    let (code, message) = (escaped(&error.code), escaped(&error.message));
    if service == Service::Ec2 {
        return format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code>\
             <Message>{message}</Message></Error></Errors><RequestID>{request_id}</RequestID></Response>"
        );
    }
    let namespace = ServiceFacts::of(service).namespace.as_str();
    let blame = if error.status >= 500 { "Receiver" } else { "Sender" };
    format!(
        "<ErrorResponse xmlns=\"{namespace}\"><Error><Type>{blame}</Type><Code>{code}</Code>\
         <Message>{message}</Message></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    )
}

struct Writer {
    facts: &'static ServiceFacts,
    out: String,
}

impl Writer {
    fn element(&mut self, name: &str, text: &str) {
        self.open(name);
        self.out.push_str(&escaped(text));
        self.close(name);
    }

    fn open(&mut self, name: &str) {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
    }

    fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    fn structure(&mut self, structure: &str, tree: &Tree) -> Result<(), ApiError> {
        for (name, value) in tree.members() {
            let member = self.facts.member(structure, name).ok_or_else(|| bug(structure, name))?;
            self.open(member.reply);
            self.value(member.shape, value, name)?;
            self.close(member.reply);
        }
        Ok(())
    }

    fn value(&mut self, shape: Shape<'_>, tree: &Tree, name: &str) -> Result<(), ApiError> {
        match (shape, tree) {
            (Shape::Structure(structure), Tree::Map(_)) => self.structure(structure, tree),
            (Shape::List { item, element, .. }, Tree::List(items)) => {
                for value in items {
                    self.open(element);
                    self.value(self.facts.shape(item), value, name)?;
                    self.close(element);
                }
                Ok(())
            }
            (Shape::Scalar(..), Tree::Text(text)) => {
                self.out.push_str(&escaped(text));
                Ok(())
            }
            _ => Err(bug("reply", name)),
        }
    }
}

fn bug(structure: &str, name: &str) -> ApiError {
    ApiError::new(500, "SimulatorBug", format!("{structure} has no member {name} of this kind."))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_scaling_wraps_results_and_members() {
        let tag = Tree::new().with("Key", "a&b").with("Value", "<c>");
        let tree = Tree::new().with("Tags", vec![tag]);
        let xml = reply(Service::AutoScaling, "DescribeTags", &tree, "r-1").unwrap();
        assert!(xml.contains("<DescribeTagsResult><Tags><member><Key>a&amp;b</Key><Value>&lt;c&gt;</Value></member></Tags></DescribeTagsResult>"), "{xml}");
        assert!(xml.ends_with(
            "<ResponseMetadata><RequestId>r-1</RequestId></ResponseMetadata></DescribeTagsResponse>"
        ));
    }

    #[test]
    fn ec2_has_lower_camel_names_and_items() {
        let subnet = Tree::new().with("SubnetId", "subnet-1");
        let xml = reply(Service::Ec2, "DescribeSubnets", &Tree::new().with("Subnets", vec![subnet]), "r-1")
            .unwrap();
        assert!(xml.contains("<subnetSet><item><subnetId>subnet-1</subnetId></item></subnetSet>"), "{xml}");
    }

    #[test]
    fn a_reply_member_that_aws_does_not_have_is_a_bug() {
        let error =
            reply(Service::Ec2, "DescribeSubnets", &Tree::new().with("Subnet", "x"), "r").unwrap_err();
        assert_eq!(error.status, 500);
    }
}
