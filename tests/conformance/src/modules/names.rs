//! The names in the code of a module that lead to other modules.

use std::collections::{BTreeMap, HashSet};

use proc_macro2::{Span, TokenStream};
use syn::{
    Attribute, Block, ImplItem, Item, ItemUse, Local, Macro, Meta, Pat, PatIdent, Path, QSelf, Signature,
    TraitItem, Visibility,
    visit::{self, Visit},
};

use super::{
    graph::{Graph, Place},
    scope::{Meaning, Scope},
    source::{self, Crate, Import, name},
    tokens,
};

/// The graph of a crate.
pub fn graph(krate: &Crate) -> Graph {
    let scope = Scope::new(krate);
    let mut edges: BTreeMap<(usize, usize), Vec<Place>> = BTreeMap::new();
    for index in 0..krate.modules.len() {
        let mut reader = Reader { scope: &scope, module: index, functions: Vec::new(), edges: &mut edges };
        for import in &krate.modules[index].imports {
            reader.import(import);
        }
        for item in &krate.modules[index].code {
            reader.visit_item(item);
        }
    }
    globs(&scope, &mut edges);
    for places in edges.values_mut() {
        places.sort();
        places.dedup();
    }
    let modules = krate.modules.iter().map(|module| match module.path.as_slice() {
        [] => "crate".to_owned(),
        path => path.join("::"),
    });
    Graph { name: krate.name.clone(), modules: modules.collect(), edges }
}

/// A glob through which no name was found brings in what is not named: the methods of a trait.
fn globs(scope: &Scope<'_>, edges: &mut BTreeMap<(usize, usize), Vec<Place>>) {
    for (index, module) in scope.krate.modules.iter().enumerate() {
        for (number, import) in module.imports.iter().enumerate().filter(|(_, import)| import.glob) {
            if scope.used_globs.borrow().contains(&(index, number)) {
                continue;
            }
            for meaning in scope.resolve(index, &import.path) {
                if let Meaning::Module(target) = meaning {
                    let mut reader =
                        Reader { scope, module: index, functions: Vec::new(), edges: &mut *edges };
                    if !(import.public && reader.is_below(target)) {
                        reader.edge(target, &import.path, import.span);
                    }
                }
            }
        }
    }
}

/// The keys of attributes whose strings are paths though they may be a single word.
const NAMING: [&str; 11] = [
    "default",
    "with",
    "serialize_with",
    "deserialize_with",
    "schema_with",
    "skip_serializing_if",
    "from",
    "into",
    "try_from",
    "remote",
    "transform",
];

/// Reads the code of one module.
struct Reader<'a, 'b> {
    scope: &'a Scope<'b>,
    module: usize,
    /// The functions that are being read, from the outermost.
    functions: Vec<Function>,
    edges: &'a mut BTreeMap<(usize, usize), Vec<Place>>,
}

/// What a function declares for itself.
#[derive(Default)]
struct Function {
    /// Variables, type parameters, and items.
    names: HashSet<String>,
    imports: Vec<Import>,
}

impl Reader<'_, '_> {
    fn is_below(&self, other: usize) -> bool {
        let modules = &self.scope.krate.modules;
        other != self.module && modules[other].path.starts_with(&modules[self.module].path)
    }

    fn edge(&mut self, to: usize, path: &[String], span: Span) {
        if to == self.module {
            return;
        }
        let place = Place {
            file: self.scope.krate.modules[self.module].file.clone(),
            line: span.start().line,
            item: path.join("::"),
        };
        self.edges.entry((self.module, to)).or_default().push(place);
    }

    fn import(&mut self, import: &Import) {
        let meanings = self.scope.resolve(self.module, &import.path);
        // A module alone is no item; and of a name that is both, the code shows which is meant.
        if meanings.iter().any(|meaning| matches!(meaning, Meaning::Module(_))) {
            return;
        }
        for meaning in meanings {
            if let Meaning::ItemOf(to) = meaning
                && !(import.public && self.is_below(to))
            {
                self.edge(to, &import.path, import.span);
            }
        }
    }

    fn path(&mut self, path: &[String], span: Span) {
        for meaning in self.meanings(path) {
            if let Meaning::ItemOf(to) = meaning {
                self.edge(to, path, span);
            }
        }
    }

    fn meanings(&self, path: &[String]) -> Vec<Meaning> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        for function in self.functions.iter().rev() {
            let imported: Vec<Meaning> = function
                .imports
                .iter()
                .filter(|import| !import.glob && import.name == *first)
                .flat_map(|import| self.scope.resolve(self.module, &import.path))
                .collect();
            if !imported.is_empty() {
                return self.scope.resolve_from(imported, rest);
            }
            let is_variable = first.starts_with(|c: char| c.is_lowercase());
            if function.names.contains(first) && (rest.is_empty() || !is_variable) {
                return Vec::new();
            }
        }
        self.scope.resolve(self.module, path)
    }

    fn macro_name(&mut self, path: &[String], span: Span) {
        if let [only] = path
            && let Some(to) = self.scope.macro_by_order(self.module, only)
        {
            return self.edge(to, path, span);
        }
        self.path(path, span);
    }

    fn tokens(&mut self, tokens: TokenStream, in_attribute: bool) {
        let found = tokens::scan(tokens);
        for path in found.paths {
            if path.is_macro {
                self.macro_name(&path.path, path.span);
            } else {
                self.path(&path.path, path.span);
            }
        }
        if in_attribute {
            for (key, text, span) in found.strings {
                self.string(key.as_deref(), &text, span);
            }
        }
    }

    /// A string in an attribute: `#[serde(default = "defaults::size")]`, `#[serde(with = "crate::time")]`.
    fn string(&mut self, key: Option<&str>, text: &str, span: Span) {
        let Ok(path) = syn::parse_str::<Path>(text) else { return };
        let path = segments(&path);
        if path.len() < 2 && !key.is_some_and(|key| NAMING.contains(&key)) {
            return;
        }
        for meaning in self.meanings(&path) {
            match meaning {
                Meaning::ItemOf(to) => self.edge(to, &path, span),
                // Of a module it takes `serialize` and `deserialize`.
                Meaning::Module(to) if key == Some("with") => self.edge(to, &path, span),
                Meaning::Module(_) => {}
            }
        }
    }

    fn within(&mut self, function: Function, read: impl FnOnce(&mut Self)) {
        self.functions.push(function);
        read(self);
        self.functions.pop();
    }

    fn qualified(&mut self, qself: Option<&QSelf>, path: &Path) {
        let Some(qself) = qself else { return self.visit_path(path) };
        self.visit_type(&qself.ty);
        if qself.position > 0 {
            return self.visit_path(path);
        }
        for segment in &path.segments {
            self.visit_path_arguments(&segment.arguments);
        }
    }
}

fn segments(path: &Path) -> Vec<String> {
    let outside = path.leading_colon.map(|_| String::new());
    outside.into_iter().chain(path.segments.iter().map(|segment| name(&segment.ident))).collect()
}

/// What a function declares: a first pass over it.
struct Declared(Function);

impl Declared {
    fn of(signature: &Signature, block: Option<&Block>) -> Function {
        let mut declared = Self(Function::default());
        declared.visit_signature(signature);
        if let Some(block) = block {
            declared.visit_block(block);
        }
        declared.0
    }

    fn of_generics(generics: &syn::Generics) -> Function {
        let mut declared = Self(Function::default());
        declared.visit_generics(generics);
        declared.0
    }
}

impl<'ast> Visit<'ast> for Declared {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        let name = name(&pattern.ident);
        if name.starts_with(|c: char| c.is_lowercase() || c == '_') {
            self.0.names.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_type_param(&mut self, parameter: &'ast syn::TypeParam) {
        self.0.names.insert(name(&parameter.ident));
        visit::visit_type_param(self, parameter);
    }

    fn visit_const_param(&mut self, parameter: &'ast syn::ConstParam) {
        self.0.names.insert(name(&parameter.ident));
    }

    fn visit_item(&mut self, item: &'ast Item) {
        if let Item::Use(import) = item {
            self.0.imports.extend(source::imports(import));
        }
        self.0.names.extend(source::defined(item).into_iter().map(|(name, _)| name));
    }
}

impl<'ast> Visit<'ast> for Reader<'_, '_> {
    fn visit_path(&mut self, path: &'ast Path) {
        if let Some(first) = path.segments.first() {
            self.path(&segments(path), first.ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.qualified(path.qself.as_ref(), &path.path);
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        self.qualified(path.qself.as_ref(), &path.path);
    }

    fn visit_pat(&mut self, pattern: &'ast Pat) {
        // A constant or a variant stands in a pattern like a variable.
        if let Pat::Ident(ident) = pattern
            && name(&ident.ident).starts_with(|c: char| c.is_uppercase())
        {
            self.path(&[name(&ident.ident)], ident.ident.span());
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        if let Some(first) = called.path.segments.first() {
            self.macro_name(&segments(&called.path), first.ident.span());
        }
        self.tokens(called.tokens.clone(), false);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => {}
            Meta::List(list) => {
                self.visit_path(&list.path);
                self.tokens(list.tokens.clone(), true);
            }
            _ => visit::visit_attribute(self, attribute),
        }
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        for import in source::imports(import) {
            self.import(&import);
        }
    }

    fn visit_item(&mut self, item: &'ast Item) {
        if source::for_tests(source::attributes(item)) {
            return;
        }
        let generics = match item {
            Item::Impl(item) => &item.generics,
            Item::Trait(item) => &item.generics,
            Item::Struct(item) => &item.generics,
            Item::Enum(item) => &item.generics,
            Item::Type(item) => &item.generics,
            _ => return visit::visit_item(self, item),
        };
        self.within(Declared::of_generics(generics), |this| visit::visit_item(this, item));
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let declared = Declared::of(&function.sig, Some(&function.block));
        self.within(declared, |this| visit::visit_item_fn(this, function));
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            _ => return,
        };
        if !source::for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        let declared = Declared::of(&function.sig, Some(&function.block));
        self.within(declared, |this| visit::visit_impl_item_fn(this, function));
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let attributes = match item {
            TraitItem::Const(item) => &item.attrs,
            TraitItem::Fn(item) => &item.attrs,
            TraitItem::Type(item) => &item.attrs,
            TraitItem::Macro(item) => &item.attrs,
            _ => return,
        };
        if !source::for_tests(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        let declared = Declared::of(&function.sig, function.default.as_ref());
        self.within(declared, |this| visit::visit_trait_item_fn(this, function));
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if !source::for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_expr_block(&mut self, block: &'ast syn::ExprBlock) {
        if !source::for_tests(&block.attrs) {
            visit::visit_expr_block(self, block);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !source::for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        if !source::for_tests(&value.attrs) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !source::for_tests(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !source::for_tests(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }
}
