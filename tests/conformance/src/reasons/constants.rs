//! The constants with texts of a Rust source, and their comments.

use std::fmt;

use anyhow::{Context as _, Result};
use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta};

/// The constants of a file, or of a module in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Empty for the file itself.
    pub name: String,
    /// The paragraphs of its comment.
    comment: Vec<String>,
    /// Those that are text.
    pub constants: Vec<Constant>,
}

/// A constant that is text.
#[derive(Debug, PartialEq, Eq)]
pub struct Constant {
    /// The text.
    pub value: String,
    /// The paragraphs of its comment.
    comment: Vec<String>,
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl Constant {
    /// The first paragraph.
    pub fn meaning(&self) -> Result<String> {
        self.comment.first().cloned().with_context(|| format!("{self} has no comment"))
    }

    /// The paragraph that begins with `Remedy:`, as a sentence.
    pub fn remedy(&self) -> Option<String> {
        let text = self.comment.iter().find_map(|paragraph| paragraph.strip_prefix("Remedy: "))?;
        Some(sentence(text))
    }
}

impl Module {
    /// The name in backticks that its comment begins with.
    pub fn title(&self) -> Result<String> {
        let comment = self.comment.first().with_context(|| format!("{} has no comment", self.name))?;
        Ok(comment.split('`').nth(1).unwrap_or(comment.trim_end_matches('.')).to_owned())
    }
}

/// The constants of a source: those of the file first, then those of each module.
pub fn modules(source: &str) -> Result<Vec<Module>> {
    let file = syn::parse_file(source)?;
    let mut modules = vec![Module { constants: constants(&file.items), ..Module::default() }];
    for item in &file.items {
        if let Item::Mod(module) = item
            && let Some((_, items)) = &module.content
        {
            modules.push(Module {
                name: module.ident.to_string(),
                comment: comment(&module.attrs),
                constants: constants(items),
            });
        }
    }
    Ok(modules)
}

fn constants(items: &[Item]) -> Vec<Constant> {
    let of = |item: &Item| match item {
        Item::Const(constant) => match &*constant.expr {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                Some(Constant { value: text.value(), comment: comment(&constant.attrs) })
            }
            _ => None,
        },
        _ => None,
    };
    items.iter().filter_map(of).collect()
}

/// The paragraphs of a comment, each on one line.
fn comment(attributes: &[Attribute]) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for attribute in attributes {
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { continue };
        if !pair.path.is_ident("doc") {
            continue;
        }
        let line = text.value();
        match (line.trim(), paragraphs.last_mut()) {
            ("", _) | (_, None) => paragraphs.push(String::new()),
            (line, Some(last)) if last.is_empty() => line.clone_into(last),
            (line, Some(last)) => {
                last.push(' ');
                last.push_str(line);
            }
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// With a capital letter, unless it begins with the path of a field.
pub fn sentence(text: &str) -> String {
    if text.split(' ').next().is_some_and(|word| word.trim_end_matches(['.', ',']).contains('.')) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
