//! The comparison of both providers, field by field, and its pages.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    fields::{Fields, Objects},
    named::Named,
    record::{Flow, Step},
};

/// A field after a step, with both values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub flow: String,
    pub step: String,
    pub object: String,
    pub field: String,
    /// Its value with CAAPH.
    pub theirs: Option<String>,
    /// Its value with ours.
    pub ours: Option<String>,
}

impl Row {
    /// Whether both are the same.
    pub fn is_same(&self) -> bool {
        self.theirs == self.ours
    }

    /// The number of the named difference that this is.
    fn number(&self, named: &[Named]) -> Option<usize> {
        named.iter().position(|named| named.is(self)).map(|index| index + 1)
    }
}

/// Every field of both.
pub fn compare(theirs: &[Flow], ours: &[Flow]) -> Vec<Row> {
    let mut rows = Vec::new();
    for flow in union(theirs.iter().map(|flow| &flow.name), ours.iter().map(|flow| &flow.name)) {
        let of = |flows: &[Flow]| flows.iter().find(|one| one.name == flow).cloned();
        let [theirs, ours] =
            [of(theirs), of(ours)].map(|flow| flow.map(|flow| flow.steps).unwrap_or_default());
        for step in union(theirs.iter().map(|step| &step.name), ours.iter().map(|step| &step.name)) {
            // The same step may have recorded more than once, each time other objects.
            let merged = |steps: &[Step]| {
                let all = steps.iter().filter(|one| one.name == step);
                all.flat_map(|step| step.objects.clone()).collect::<Objects>()
            };
            let (theirs, ours) = (merged(&theirs), merged(&ours));
            for object in union(theirs.keys(), ours.keys()) {
                let none = Fields::new();
                let (theirs, ours) =
                    (theirs.get(&object).unwrap_or(&none), ours.get(&object).unwrap_or(&none));
                for field in union(theirs.keys(), ours.keys()) {
                    rows.push(Row {
                        flow: flow.clone(),
                        step: step.clone(),
                        object: object.clone(),
                        theirs: theirs.get(&field).cloned(),
                        ours: ours.get(&field).cloned(),
                        field,
                    });
                }
            }
        }
    }
    rows
}

/// Both, in the order of the first, without duplicates.
fn union<'a>(a: impl Iterator<Item = &'a String>, b: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    a.chain(b).filter(|name| seen.insert((*name).clone())).cloned().collect()
}

/// What must not be: differences without a name, and names of differences that do not occur.
pub fn problems(rows: &[Row], named: &[Named]) -> Vec<String> {
    let differences: Vec<&Row> = rows.iter().filter(|row| !row.is_same()).collect();
    let mut problems: Vec<String> = differences
        .iter()
        .filter(|row| row.number(named).is_none())
        .map(|row| {
            let shown = |value: Option<&str>| value.unwrap_or("none").to_owned();
            format!(
                "{} | {} | {} | {} | CAAPH: {} | ours: {}",
                row.flow,
                row.step,
                row.object,
                row.field,
                shown(row.theirs.as_deref()),
                shown(row.ours.as_deref())
            )
        })
        .collect();
    let found: BTreeSet<usize> = differences.iter().filter_map(|row| row.number(named)).collect();
    let gone = named.iter().enumerate().filter(|(index, _)| !found.contains(&(index + 1)));
    problems.extend(gone.map(|(index, named)| format!("{} does not occur: {}", index + 1, named.what)));
    problems
}

/// The figures of a comparison: fields, the same ones, and differences.
pub fn figures(rows: &[Row]) -> (usize, usize, usize) {
    let same = rows.iter().filter(|row| row.is_same()).count();
    (rows.len(), same, rows.len() - same)
}

/// The page with the reasons for differences.
pub fn page(introduction: &str, rows: &[Row], named: &[Named]) -> String {
    let (fields, same, differences) = figures(rows);
    let mut page = format!("{}\n", introduction.trim_end());
    let _ = write!(
        page,
        "\n{fields} values of fields were compared: {same} are the same, {differences} differ for one of {} reasons.\n\n\
         ## Differences\n\n| | what | reason |\n| --- | --- | --- |\n",
        named.len()
    );
    for (index, named) in named.iter().enumerate() {
        let _ = writeln!(page, "| {} | {} | {} |", index + 1, named.what, named.why);
    }
    page
}

/// The rest of the page with all fields. Successive steps of a flow with the same values are one row.
pub fn fields(rows: &[Row], named: &[Named]) -> String {
    let mut page = "\n## Fields\n\nA number refers to the difference above.\n".to_owned();
    for flow in union(rows.iter().map(|row| &row.flow), std::iter::empty()) {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.flow == flow).collect();
        let steps = union(rows.iter().map(|row| &row.step), std::iter::empty());
        let _ = write!(page, "\n### {flow}\n\n");
        for (index, step) in steps.iter().enumerate() {
            let _ = writeln!(page, "{}. {step}", index + 1);
        }
        page.push_str(
            "\n| steps | object | field | CAAPH | CAPASG | |\n| --- | --- | --- | --- | --- | --- |\n",
        );
        write_rows(&mut page, &rows, &steps, named);
    }
    page
}

fn write_rows(page: &mut String, rows: &[&Row], steps: &[String], named: &[Named]) {
    let number = |step: &str| steps.iter().position(|one| one == step).unwrap_or_default() + 1;
    let mut keys = BTreeSet::new();
    for first in rows {
        let key = (&first.object, &first.field);
        if !keys.insert(key) {
            continue;
        }
        let mut of_key: Vec<(&Row, usize, usize)> = Vec::new();
        for row in rows.iter().filter(|row| (&row.object, &row.field) == key) {
            let step = number(&row.step);
            match of_key.last_mut() {
                Some((known, _, last))
                    if *last + 1 == step && known.theirs == row.theirs && known.ours == row.ours =>
                {
                    *last = step;
                }
                _ => of_key.push((row, step, step)),
            }
        }
        for (row, first, last) in of_key {
            let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
            let verdict = match (row.is_same(), row.number(named)) {
                (true, _) => "same".to_owned(),
                (false, Some(number)) => format!("**{number}**"),
                (false, None) => "**not named**".to_owned(),
            };
            let ours = if row.is_same() { String::new() } else { cell(row.ours.as_deref()) };
            let _ = writeln!(
                page,
                "| {range} | {} | `{}` | {} | {ours} | {verdict} |",
                row.object.replace('<', "&lt;"),
                row.field,
                cell(row.theirs.as_deref())
            );
        }
    }
}

fn cell(value: Option<&str>) -> String {
    value.map_or_else(String::new, |value| format!("`{}`", value.replace('|', "\\|")))
}
