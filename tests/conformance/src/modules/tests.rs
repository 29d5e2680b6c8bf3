//! The dependencies between modules that the check finds, on samples.

use super::{Graph, names, source};

fn graph(text: &str) -> Graph {
    names::graph(&source::parse(text).expect("the sample is Rust"))
}

/// The edges as `from -> to`.
fn edges(text: &str) -> Vec<String> {
    let graph = graph(text);
    graph
        .edges
        .keys()
        .map(|(from, to)| format!("{} -> {}", graph.modules[*from], graph.modules[*to]))
        .collect()
}

fn cycles(text: &str) -> Vec<Vec<String>> {
    let graph = graph(text);
    let names = |cycle: Vec<usize>| cycle.into_iter().map(|module| graph.modules[module].clone()).collect();
    graph.cycles().into_iter().map(names).collect()
}

#[test]
fn a_cycle_through_use_is_found() {
    let text = "mod a { use super::b::B; pub struct A(B); } mod b { use crate::a::A; pub struct B(Box<A>); }";
    assert_eq!(cycles(text), [["a", "b"]]);
    let shown = graph(text).cycles_text();
    assert!(shown.contains("a cycle of 2 modules: a → b → a"), "{shown}");
    assert!(shown.contains("sample.rs:1 super::b::B"), "{shown}");
}

#[test]
fn a_cycle_through_item_paths_is_found() {
    let text = "mod a { pub fn f() { crate::b::g() } pub enum E { One } }
                mod b { pub fn g() { match super::a::f() { x if x == super::a::E::One => {} _ => {} } } }";
    assert_eq!(cycles(text), [["a", "b"]]);
}

#[test]
fn a_cycle_through_a_module_that_is_imported_is_found() {
    let text = "mod a { use super::b; pub fn f() { b::g() } } mod b { use super::a as other; pub fn g() { other::f() } }";
    assert_eq!(cycles(text), [["a", "b"]]);
}

#[test]
fn a_cycle_through_a_re_export_is_found() {
    let text = "mod top { mod low { pub struct Low; pub fn f(_: crate::user::User) {} } pub use low::Low; }
                mod user { use crate::top::Low; pub struct User(Low); }";
    assert_eq!(edges(text), ["top::low -> user", "user -> top::low"]);
    assert_eq!(cycles(text), [["top::low", "user"]]);
}

#[test]
fn a_cycle_of_a_folder_and_its_descendant_is_found() {
    let text = "mod top { mod low { pub fn f() { super::g() } } fn g() { low::f() } }";
    assert_eq!(cycles(text), [["top", "top::low"]]);
}

#[test]
fn a_long_cycle_is_found() {
    let text = "mod a { use crate::b::B; } mod b { use crate::c::C; pub struct B; } mod c { use crate::d::f; pub struct C; }
                mod d { pub fn f() { todo!(\"{}\", crate::a::X) } } mod e { use crate::a::X; }";
    assert_eq!(cycles(text), [["a", "b", "c", "d"]]);
}

#[test]
fn names_in_macros_attributes_types_and_patterns_lead_to_their_modules() {
    let text = "mod a { pub struct A; pub fn with() {} pub const LIMIT: u8 = 1; pub trait T {} }
                mod macros { fn f() { assert!(matches!(x, crate::a::A)); } }
                mod attribute { struct S { #[serde(default = \"crate::a::with\")] s: u8 } }
                mod module { struct S { #[serde(with = \"crate::a\")] s: u8 } }
                mod types { fn f() -> Vec<super::a::A> { vec![] } }
                mod pattern { use super::*; fn f(x: u8) { match x { a::LIMIT => {} _ => {} } } }
                mod bounds { fn f<X: crate::a::T>() {} impl super::a::T for u8 {} }
                mod qualified { fn f() { <u8 as crate::a::T>::f() } }
                mod group { use crate::{a::{self, A as Renamed}}; }
                mod local { fn f() { use crate::a::A; let _ = A; } }";
    let users =
        ["macros", "attribute", "module", "types", "pattern", "bounds", "qualified", "group", "local"];
    assert_eq!(edges(text), users.map(|user| format!("{user} -> a")));
}

#[test]
fn a_glob_leads_to_what_is_named_through_it() {
    let text = "mod a { mod x { pub struct X; } mod y { pub struct Y; } pub use self::{x::X, y::*}; }
                mod b { use crate::a::*; fn f(_: X) {} } mod c { use crate::a::*; fn f() -> Y { Y } }
                mod d { pub trait T {} } mod e { use crate::d::*; fn f() { 1.method() } }";
    assert_eq!(edges(text), ["b -> a::x", "c -> a::y", "e -> d"]);
}

#[test]
fn what_makes_no_cycle_is_passed() {
    let text = "
        mod top {
            mod low { pub struct Low; pub fn helper() {} }
            mod high { use super::low::Low; pub fn f(_: Low) -> Option<super::Low> { None } }
            pub use high::f;
            pub use low::*;
        }
        mod user {
            pub fn run() { crate::top::f(crate::top::Low); }
            #[cfg(test)] mod tests { use super::*; fn t() { crate::top::f(run()) } }
        }
        #[cfg(all(test, unix))] mod more { pub fn f() { crate::user::run() } }
        mod low_again {
            #[cfg(test)] use crate::user::run;
            pub struct S;
            impl S { #[cfg(test)] fn f() { crate::user::run() } }
            #[test] fn t() { crate::user::run() }
        }
        mod quiet { pub fn run(user: u8, low_again: u8) -> u8 { let top = user; log!(user = top, user.low_again); top } }
        mod uses { use crate::{low_again::S, quiet}; fn f(_: S) { quiet::run(1, 2); } }
    ";
    assert_eq!(cycles(text), [[""; 0]; 0]);
    let expected = [
        "top::high -> top::low",
        "user -> top::low",
        "user -> top::high",
        "uses -> low_again",
        "uses -> quiet",
    ];
    assert_eq!(edges(text), expected);
}

#[test]
fn a_variable_is_not_the_function_of_its_name() {
    let text = "mod a { pub use low::size; mod low { pub fn size() { crate::a::other(1) } } \
                pub fn other(size: u8) { g(size); json!(size); } }";
    assert_eq!(cycles(text), [[""; 0]; 0]);
}

#[test]
fn macros_are_found_by_import_and_by_order() {
    let text = "macro_rules! early { () => { $crate::a::A } } mod a { pub struct A; } mod b { early!(); }
                mod c { macro_rules! own { () => {} } pub(crate) use own; } mod d { use crate::c::own; own!(); }";
    assert_eq!(edges(text), ["crate -> a", "b -> crate", "d -> c"]);
}

#[test]
fn items_that_a_macro_makes_are_found() {
    let text = "mod a { make! { pub enum Made { One } } } mod b { use crate::a::Made; } mod c { use crate::a::*; struct S(Made); }
                mod d { fn f() { crate::a::UNSEEN; } }";
    assert_eq!(edges(text), ["b -> a", "c -> a", "d -> a"]);
}

#[test]
fn the_tree_goes_from_the_highest_to_the_lowest() {
    let text = "mod a { use crate::b::B; use crate::c::C; } mod b { use crate::c::C; pub struct B; } mod c { pub struct C; }";
    assert_eq!(graph(text).tree(), "2\n  a → b, c\n1\n  b → c\n0\n  c\n  crate\n");
}
