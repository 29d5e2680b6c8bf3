//! The annotation on values in `ConfigMaps` and Secrets.

use super::*;

#[test]
fn the_annotation_is_passed_on_if_it_is_valid() {
    let mut proxy = proxy();
    let releases = existing(&proxy, &["a"]);
    let annotation = r#"[{"kind": "Secret", "name": "db"}]"#;
    proxy.annotations_mut().insert(names::VALUES_FROM.to_owned(), annotation.to_owned());
    let outcome = fan_out(&proxy, &[cluster("a")], &releases);
    let [Step::Update(updated)] = &outcome.steps[..] else { panic!("{outcome:?}") };
    assert_eq!(updated.annotations().get(names::VALUES_FROM).map(String::as_str), Some(annotation));
    assert_eq!(updated.spec, releases[0].spec, "the objects are not read for it");
    proxy.annotations_mut().insert(names::VALUES_FROM.to_owned(), "s3cret".to_owned());
    let outcome = fan_out(&proxy, &[cluster("a"), cluster("b")], &releases);
    assert_eq!((outcome.steps, outcome.condition.reason), (Vec::new(), "AnnotationNotValid"));
    let message = outcome.condition.message;
    assert!(message.contains("values-from is not a list") && !message.contains("s3cret"), "{message}");
    proxy.annotations_mut().clear();
    let outcome = fan_out(&proxy, &[cluster("a")], std::slice::from_ref(updated));
    assert!(matches!(&outcome.steps[..], [Step::Update(of)] if of.annotations().is_empty()));
}
