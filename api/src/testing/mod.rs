//! Material for tests of other crates: objects that the API server must take, and ones that it must refuse.
