//! Paths in what the compiler has not parsed yet: the arguments of macros and attributes.

use proc_macro2::{Span, TokenStream, TokenTree};

use super::source::name;

/// A path in a stream of tokens.
#[derive(Debug)]
pub struct Found {
    pub path: Vec<String>,
    pub span: Span,
    /// Whether it is a macro that is called.
    pub is_macro: bool,
}

/// All paths, and all string literals, since attributes name functions by strings.
#[derive(Debug, Default)]
pub struct Scan {
    pub paths: Vec<Found>,
    /// With the word in front of `=`.
    pub strings: Vec<(Option<String>, String, Span)>,
}

/// Reads tokens and the groups within.
pub fn scan(tokens: TokenStream) -> Scan {
    let mut found = Scan::default();
    scan_into(tokens, &mut found);
    found
}

/// All string literals.
pub fn literals(tokens: TokenStream) -> impl Iterator<Item = (String, Span)> {
    scan(tokens).strings.into_iter().map(|(_, text, span)| (text, span))
}

fn scan_into(tokens: TokenStream, found: &mut Scan) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let punct = |at: usize, wanted: char| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == wanted);
    let colons = |at: usize| punct(at, ':') && punct(at + 1, ':');
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => scan_into(group.stream(), found),
            TokenTree::Literal(literal) => {
                if let syn::Lit::Str(text) = syn::Lit::new(literal.clone()) {
                    let key = match at.checked_sub(2).map(|key| &tokens[key]) {
                        Some(TokenTree::Ident(key)) if punct(at - 1, '=') => Some(name(key)),
                        _ => None,
                    };
                    found.strings.push((key, text.value(), literal.span()));
                }
            }
            TokenTree::Ident(first) => {
                let before = at.checked_sub(1);
                // A field or method, a lifetime, a variable of a macro.
                let is_part = before.is_some_and(|before| {
                    (punct(before, '.') && !before.checked_sub(1).is_some_and(|two| punct(two, '.')))
                        || punct(before, '\'')
                        || (punct(before, '$') && first != "crate")
                });
                let leads_outside = before.is_some_and(|before| before > 0 && colons(before - 1));
                let mut path = vec![name(first)];
                while colons(at + 1)
                    && let Some(TokenTree::Ident(next)) = tokens.get(at + 3)
                {
                    path.push(name(next));
                    at += 3;
                }
                // The name of a field, or of an argument.
                let is_key = path.len() == 1
                    && ((punct(at + 1, ':') && !punct(at + 2, ':'))
                        || (punct(at + 1, '=') && !punct(at + 2, '=') && !punct(at + 2, '>')));
                let is_macro = punct(at + 1, '!') && !punct(at + 2, '=');
                if !is_part && !is_key && !leads_outside {
                    found.paths.push(Found { path, span: first.span(), is_macro });
                }
            }
            TokenTree::Punct(_) => {}
        }
        at += 1;
    }
}
