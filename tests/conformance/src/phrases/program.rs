//! The texts of a program: its string literals, and the comments that clap prints as help. Tests are left out.

use anyhow::{Context as _, Result};
use proc_macro2::{Span, TokenStream};
use syn::{
    Attribute, Expr, ExprLit, Item, Lit, LitStr, Macro, Meta,
    visit::{self, Visit},
};

use super::Text;
use crate::modules::{literals, only_for_tests};

pub fn texts(path: &str, source: &str) -> Result<Vec<Text>> {
    if path.ends_with("tests.rs") || path.contains("/tests/") || path.contains("/testing") {
        return Ok(Vec::new());
    }
    let file = syn::parse_file(source).with_context(|| format!("cannot parse {path}"))?;
    let mut reader = Reader { path, texts: Vec::new(), is_help: false };
    reader.visit_file(&file);
    Ok(reader.texts)
}

/// The attributes whose strings are printed: of thiserror, and of clap.
const PRINTED: [&str; 3] = ["error", "arg", "command"];

/// What clap prints the comments of.
const HELP: [&str; 4] = ["Parser", "Args", "Subcommand", "ValueEnum"];

struct Reader<'a> {
    path: &'a str,
    texts: Vec<Text>,
    /// Whether clap prints the comments.
    is_help: bool,
}

impl Reader<'_> {
    fn add(&mut self, text: String, span: Span) {
        self.texts.push(Text { path: self.path.to_owned(), place: span.start().line.to_string(), text });
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for (text, span) in literals(tokens) {
            self.add(text, span);
        }
    }
}

fn is_help(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("derive") => {
            let derived = list.tokens.to_string();
            derived.split(|c: char| !c.is_alphanumeric()).any(|name| HELP.contains(&name))
        }
        _ => false,
    })
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = crate::modules::attributes(item);
        if only_for_tests(attributes) {
            return;
        }
        let around = std::mem::replace(&mut self.is_help, is_help(attributes));
        visit::visit_item(self, item);
        self.is_help = around;
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !only_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.add(text.value(), text.span());
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.tokens(called.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") && self.is_help => {
                if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value {
                    self.add(text.value(), text.span());
                }
            }
            Meta::List(list) if PRINTED.iter().any(|name| list.path.is_ident(name)) => {
                self.tokens(list.tokens.clone());
            }
            _ => {}
        }
    }
}
