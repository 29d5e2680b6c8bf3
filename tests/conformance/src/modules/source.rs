//! The modules of a crate as its sources declare them: their items, their imports, and their code.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{Attribute, Ident, Item, ItemMod, ItemUse, Meta, UseTree, Visibility, ext::IdentExt as _};

use super::crates::Target;
use crate::root;

/// A crate.
pub struct Crate {
    pub name: String,
    /// The first is the root.
    pub modules: Vec<Module>,
    /// Whether modules of tests are read as well.
    with_tests: bool,
}

/// A module without what is compiled for tests alone.
pub struct Module {
    /// From the root of the crate; empty for the root itself.
    pub path: Vec<String>,
    /// From the root of the tree.
    pub file: String,
    pub parent: Option<usize>,
    pub children: HashMap<String, usize>,
    /// The names of the items that it defines, macros included.
    pub items: HashMap<String, Kind>,
    pub imports: Vec<Import>,
    /// All but child modules and imports.
    pub code: Vec<Item>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Macro,
    Other,
}

/// One name, or all names of a path, that a `use` brings in.
pub struct Import {
    /// Empty where nothing is named, for a glob or `as _`.
    pub name: String,
    pub path: Vec<String>,
    pub glob: bool,
    /// Whether others can name it through this module.
    pub public: bool,
    pub span: Span,
}

/// Reads a crate.
pub fn load(target: &Target) -> Result<Crate> {
    read(target, false)
}

/// The files of a crate, those of tests included.
pub fn files(target: &Target) -> Result<BTreeSet<String>> {
    Ok(read(target, true)?.modules.into_iter().map(|module| module.file).collect())
}

fn read(target: &Target, with_tests: bool) -> Result<Crate> {
    let mut found = Crate { name: target.name.clone(), modules: Vec::new(), with_tests };
    let folder = target.source.parent().context("a source outside of any folder")?;
    found.read(None, Vec::new(), &target.source, folder)?;
    Ok(found)
}

/// A crate of one file.
#[cfg(test)]
pub fn parse(text: &str) -> Result<Crate> {
    let mut found = Crate { name: "sample".to_owned(), modules: Vec::new(), with_tests: false };
    let file = syn::parse_file(text)?;
    found.add(None, Vec::new(), Place { file: Path::new("sample.rs"), folder: Path::new("") }, file.items)?;
    Ok(found)
}

/// Where the declaration of a module stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a Path,
    /// Where the files of its children are.
    folder: &'a Path,
}

impl Crate {
    fn read(
        &mut self,
        parent: Option<usize>,
        path: Vec<String>,
        file: &Path,
        folder: &Path,
    ) -> Result<usize> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("cannot parse {}", file.display()))?;
        self.add(parent, path, Place { file, folder }, parsed.items)
    }

    fn add(
        &mut self,
        parent: Option<usize>,
        path: Vec<String>,
        place: Place<'_>,
        items: Vec<Item>,
    ) -> Result<usize> {
        let index = self.modules.len();
        self.modules.push(Module {
            path,
            file: place.file.strip_prefix(root()).unwrap_or(place.file).display().to_string(),
            parent,
            children: HashMap::new(),
            items: HashMap::new(),
            imports: Vec::new(),
            code: Vec::new(),
        });
        for item in items {
            if self.with_tests || !for_tests(attributes(&item)) {
                self.add_item(index, place, item)?;
            }
        }
        Ok(index)
    }

    fn add_item(&mut self, index: usize, place: Place<'_>, item: Item) -> Result<()> {
        match item {
            Item::Mod(module) => {
                let name = name(&module.ident);
                let mut path = self.modules[index].path.clone();
                path.push(name.clone());
                let child = self.add_child(index, path, place, module)?;
                self.modules[index].children.insert(name, child);
            }
            Item::Use(import) => self.modules[index].imports.extend(imports(&import)),
            item => {
                let module = &mut self.modules[index];
                module.items.extend(defined(&item));
                module.code.push(item);
            }
        }
        Ok(())
    }

    fn add_child(
        &mut self,
        parent: usize,
        path: Vec<String>,
        place: Place<'_>,
        module: ItemMod,
    ) -> Result<usize> {
        let folder = place.folder.join(name(&module.ident));
        if let Some((_, items)) = module.content {
            return self.add(Some(parent), path, Place { file: place.file, folder: &folder }, items);
        }
        let named = path_attribute(&module.attrs)
            .and_then(|named| Some(place.file.parent()?.join(named)))
            .map(|file| (file.clone(), file.with_extension("")));
        let candidates: Vec<(PathBuf, PathBuf)> = named
            .into_iter()
            .chain([(folder.with_extension("rs"), folder.clone()), (folder.join("mod.rs"), folder.clone())])
            .collect();
        let Some((file, folder)) = candidates.iter().find(|(file, _)| file.is_file()) else {
            bail!("{}: there is no file of module {}", place.file.display(), module.ident)
        };
        self.read(Some(parent), path, file, folder)
    }
}

/// The name without `r#`.
pub fn name(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Whether this is compiled for tests alone: `#[cfg(test)]`, `#[cfg(all(test, ...))]`, `#[test]`.
pub fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => needs_test(list.tokens.clone()),
        _ => attribute.path().segments.last().is_some_and(|last| last.ident == "test"),
    })
}

fn needs_test(condition: TokenStream) -> bool {
    let mut tokens = condition.into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Ident(only)), None) => only == "test",
        (Some(TokenTree::Ident(all)), Some(TokenTree::Group(group))) if all == "all" => {
            let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
            tokens
                .split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ','))
                .any(|part| needs_test(part.iter().cloned().collect()))
        }
        _ => false,
    }
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The names that an item defines.
pub fn defined(item: &Item) -> Vec<(String, Kind)> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => {
            return match &item.ident {
                Some(ident) => vec![(name(ident), Kind::Macro)],
                None => declared(item.mac.tokens.clone()),
            };
        }
        _ => return Vec::new(),
    };
    vec![(name(ident), Kind::Other)]
}

/// What the call of a macro that makes items seems to declare: `string_enum! { pub enum Name { ... } }`.
fn declared(tokens: TokenStream) -> Vec<(String, Kind)> {
    let keywords = ["struct", "enum", "fn", "type", "const", "static", "trait"];
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let pairs = tokens.windows(2).filter_map(|pair| match pair {
        [TokenTree::Ident(keyword), TokenTree::Ident(ident)]
            if keywords.iter().any(|known| keyword == known) =>
        {
            Some((name(ident), Kind::Other))
        }
        _ => None,
    });
    pairs.collect()
}

/// What a `use` brings in.
pub fn imports(import: &ItemUse) -> Vec<Import> {
    let mut found = Vec::new();
    let public = !matches!(import.vis, Visibility::Inherited);
    let start = if import.leading_colon.is_some() { vec![String::new()] } else { Vec::new() };
    flatten(&import.tree, start, public, &mut found);
    found
}

fn flatten(tree: &UseTree, mut path: Vec<String>, public: bool, found: &mut Vec<Import>) {
    let (ident, bound) = match tree {
        UseTree::Path(step) => {
            path.push(name(&step.ident));
            return flatten(&step.tree, path, public, found);
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, path.clone(), public, found);
            }
            return;
        }
        UseTree::Glob(glob) => {
            let span = glob.star_token.spans[0];
            found.push(Import { name: String::new(), path, glob: true, public, span });
            return;
        }
        UseTree::Name(named) => (&named.ident, &named.ident),
        UseTree::Rename(renamed) => (&renamed.ident, &renamed.rename),
    };
    let span = ident.span();
    // `use path::{self}` is `use path`.
    let mut name_of = name(bound);
    if ident == "self" {
        if bound == "self" {
            name_of = path.last().cloned().unwrap_or_default();
        }
    } else {
        path.push(name(ident));
    }
    if name_of == "_" {
        name_of.clear();
    }
    found.push(Import { name: name_of, path, glob: false, public, span });
}
