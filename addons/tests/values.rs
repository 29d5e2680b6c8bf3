//! The program for values: its answers are those that Go's own engine gave, which `go test` in `addons/go` verifies.

mod support;

use capasg_addons::values::{Kept, RejectionReason, Template, Values};
use serde::Deserialize;
use serde_json::{Value, json};
use support::{Outcome, launcher, programs};

#[derive(Deserialize)]
struct Golden {
    data: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    template: String,
    #[serde(default)]
    text: String,
    error: Option<String>,
}

async fn values() -> Outcome<Values> {
    Ok(Values::new(programs().await?.join("capasg-values"), launcher()?))
}

fn template<'a>(template: &'a str, data: &'a Value, kept: &'a Kept) -> Template<'a> {
    Template { name: "golden", template, data, kept }
}

// Rules: X3
#[tokio::test]
async fn templates_are_rendered_as_go_renders_them() -> Outcome {
    let golden: Golden = serde_json::from_str(include_str!("../go/testdata/golden.json"))?;
    let kept = Kept::new();
    let templates: Vec<_> =
        golden.cases.iter().map(|case| template(&case.template, &golden.data, &kept)).collect();
    let answers = values().await?.render(&templates).await?;
    assert_eq!(answers.len(), golden.cases.len());
    for (case, answer) in golden.cases.iter().zip(answers) {
        match (&case.error, answer) {
            (None, Ok(rendered)) => assert_eq!(rendered.text, case.text, "{}", case.template),
            (Some(message), Err(rejection)) => assert_eq!(rejection.message, *message, "{}", case.template),
            (error, answer) => {
                panic!("{}: {:?} instead of {error:?}", case.template, answer.map(|it| it.text))
            }
        }
    }
    Ok(())
}

/// Go's own engine with all of sprig against the program, and the recorded texts.
#[tokio::test]
async fn the_recorded_texts_are_those_of_go() -> Outcome {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/go");
    let run = tokio::process::Command::new("go").args(["test", "."]).current_dir(folder).output().await?;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    Ok(())
}

#[tokio::test]
async fn first_results_of_random_functions_are_kept() -> Outcome {
    let values = values().await?;
    let (text, data, none) =
        (r#"a: {{ randAlphaNum 20 }}{{ now | date "05.999999999" }}"#, json!({}), Kept::new());
    let first = values.render(&[template(text, &data, &none)]).await?.remove(0)?;
    let changed = format!("b: 1\n{text}");
    let answers =
        values.render(&[template(&changed, &data, &first.kept), template(text, &data, &none)]).await?;
    let texts: Vec<_> =
        answers.into_iter().map(|answer| answer.map(|it| it.text)).collect::<Result<_, _>>()?;
    assert_eq!(texts[0], format!("b: 1\n{}", first.text));
    assert_ne!(texts[1], first.text);
    Ok(())
}

#[tokio::test]
async fn functions_that_leave_the_process_are_rejected() -> Outcome {
    let (data, kept) = (json!({}), Kept::new());
    let calls = [r#"{{ env "HOME" }}"#, r#"{{ expandenv "$HOME" }}"#, r#"{{ getHostByName "localhost" }}"#];
    let templates: Vec<_> = calls.iter().map(|call| template(call, &data, &kept)).collect();
    for answer in values().await?.render(&templates).await? {
        let rejection = answer.err().ok_or("rendered")?;
        assert_eq!(rejection.reason, RejectionReason::TemplateFailed);
        assert!(rejection.message.ends_with("is not available in valuesTemplate"), "{rejection}");
    }
    Ok(())
}

#[tokio::test]
async fn fields_that_are_named_as_in_go_are_rejected() -> Outcome {
    let (data, kept) = (json!({"Cluster": {"metadata": {"name": "prod"}}}), Kept::new());
    let texts = ["{{ .Cluster.Spec.Paused }}", "{{ with .Cluster.Name }}{{ . }}{{ end }}"];
    let templates: Vec<_> = texts.iter().map(|text| template(text, &data, &kept)).collect();
    let answers = values().await?.render(&templates).await?;
    for (answer, field) in answers.into_iter().zip([".Cluster.spec", ".Cluster.metadata.name"]) {
        let rejection = answer.err().ok_or("rendered")?;
        assert_eq!(rejection.reason, RejectionReason::TemplateInvalid);
        assert!(rejection.message.ends_with(&format!("such as {field}")), "{rejection}");
    }
    Ok(())
}

#[tokio::test]
async fn values_are_read_as_helm_reads_them() -> Outcome {
    let answers = values().await?.parse(&["a: yes\nb: 0777\nc: [1, 1.0]\n", "", "- a", "a: [secret"]).await?;
    let mut answers = answers.into_iter();
    let mut next = || answers.next().ok_or("an answer is missing");
    assert_eq!(Value::Object(next()??), json!({"a": true, "b": 511, "c": [1, 1]}));
    assert_eq!(Value::Object(next()??), json!({}));
    for _ in 0..2 {
        assert_eq!(next()?.err().ok_or("read")?.reason, RejectionReason::ValuesInvalid);
    }
    Ok(())
}

#[tokio::test]
async fn a_template_that_requires_too_much_memory_ends_the_program_alone() -> Outcome {
    let (data, kept) = (json!({}), Kept::new());
    let error = values().await?.render(&[template("{{ until 2000000000 }}", &data, &kept)]).await.err();
    let message = error.ok_or("rendered")?.to_string();
    assert!(message.contains("may require more memory"), "{message}");
    Ok(())
}
