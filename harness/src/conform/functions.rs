//! Function cases: a rule of a strategy gets the recorded input and must return the recorded
//! result.
//!
//! The descriptor of a product lists its rules.

mod diff;

use ctxbench_strategies::conform::text::{MAX_BYTES, expand};
use ctxbench_strategies::conform::{Conformance, Context, Function, Label};
use ctxbench_strategies::{Spec, all};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::case::CaseError;
use super::shape::{numbers, odd};

pub use diff::shorten;

/// Result of one file of function cases.
#[derive(Clone, Debug)]
pub struct FunctionVerdict {
    pub agent: String,
    pub version: String,
    /// Name of the rule.
    pub function: String,
    /// Number of cases in the file.
    pub cases: usize,
    /// Number of cases that passed.
    pub passed: usize,
    /// Difference of the first failed case. `None` = all passed.
    pub difference: Option<FunctionDifference>,
    /// Differences of the other failed cases.
    pub further: Vec<FunctionDifference>,
}

/// The first difference of a function case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionDifference {
    /// Name of the case.
    pub case: String,
    /// Path in the result, or `input` if the input could not be used.
    pub at: String,
    /// Value in the recording.
    pub expected: String,
    /// Value that the rule returned.
    pub got: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionCase {
    name: String,
    input: Value,
    expected: Value,
    /// Source of the expected value, for readers.
    #[serde(default)]
    #[allow(dead_code, reason = "known to the format, of no use here")]
    basis: Option<String>,
}

#[derive(Deserialize)]
struct FunctionFile {
    kind: String,
    agent: String,
    version: String,
    function: String,
    cases: Vec<FunctionCase>,
    #[serde(flatten)]
    facts: Map<String, Value>,
}

/// Facts that rules read.
const FACTS: &[&str] = &["constants", "protect_tokens", "minimum_tokens"];

/// Returns whether a member of a file is a sentence for readers.
fn is_prose(name: &str) -> bool {
    name == "rule" || name.ends_with("_rule") || name == "basis_words"
}

/// Runs all cases of a `function` file. `name` appears in errors.
pub fn function_file(text: &str, name: &str) -> Result<FunctionVerdict, CaseError> {
    let file: FunctionFile = serde_json::from_str(text)
        .map_err(|source| CaseError::Json { path: name.to_string(), source })?;
    if file.kind != "function" {
        return Err(CaseError::Unknown { what: "kind", name: file.kind });
    }
    if let Some(odd) = file.facts.keys().find(|k| !is_prose(k) && !FACTS.contains(&k.as_str())) {
        return Err(CaseError::Unknown { what: "member", name: odd.clone() });
    }
    if file.cases.is_empty() {
        return Err(CaseError::Member {
            at: "cases".into(),
            expected: "at least one case".into(),
            found: "none".into(),
        });
    }
    let (function, labels, context) = find(&file)?;
    let mut verdict = FunctionVerdict {
        cases: file.cases.len(),
        agent: file.agent,
        version: file.version,
        function: file.function,
        passed: 0,
        difference: None,
        further: Vec::new(),
    };
    for case in file.cases {
        match difference(function, labels, &context, case) {
            None => verdict.passed += 1,
            Some(d) if verdict.difference.is_none() => verdict.difference = Some(d),
            Some(d) => verdict.further.push(d),
        }
    }
    Ok(verdict)
}

fn find(file: &FunctionFile) -> Result<(&'static Function, &'static [Label], Context), CaseError> {
    let product = all().find(|d| d.name == file.agent);
    let Conformance { functions: table, labels, .. } =
        product.map_or(Conformance::NO_CASES, |d| d.conform);
    if table.is_empty() {
        return Err(CaseError::Unknown { what: "agent", name: file.agent.clone() });
    }
    let wanted = file.version.rsplit_once('.').map_or("", |(v, _)| v);
    let spec = Spec::parse(&format!("{}@{wanted}", file.agent)).map_err(|e| CaseError::Format {
        what: "a version that is known here".into(),
        found: e.to_string(),
    })?;
    let known = table.iter().find(|f| {
        f.name == file.function
            && (f.versions.is_empty() || f.versions.contains(&spec.version.name))
    });
    let function = known.ok_or_else(|| CaseError::Unknown {
        what: "function",
        name: format!("{} of {} {wanted}", file.function, file.agent),
    })?;
    Ok((
        function,
        labels,
        Context { version: spec.version, settings: spec.settings, facts: file.facts.clone() },
    ))
}

fn difference(
    function: &Function,
    labels: &[Label],
    context: &Context,
    case: FunctionCase,
) -> Option<FunctionDifference> {
    let name = case.name;
    let fault = |at: &str, what: &str, e: &str| FunctionDifference {
        case: name.clone(),
        at: at.into(),
        expected: what.into(),
        got: e.into(),
    };
    let expected = match expand_all(&case.expected) {
        Ok(v) => v,
        Err(e) => return Some(fault("expected", "a value that can be read", &e.to_string())),
    };
    let input = numbers("input", &case.input, &mut 0).and_then(|()| expand_all(&case.input));
    let input = match input {
        Ok(input) => input,
        Err(CaseError::Member { at, expected, found }) => {
            return Some(fault(&at, &expected, &found));
        }
        Err(e) => return Some(fault("input", "an input that the function knows", &e.to_string())),
    };
    match (function.call)(context, input) {
        Err(e) => Some(fault("input", "an input that the function knows", &e.to_string())),
        Ok(mut got) => {
            labels.iter().for_each(|l| take_over(l, &expected, &mut got));
            diff::first(&expected, &got).map(|(at, expected, got)| FunctionDifference {
                case: name,
                at,
                expected,
                got,
            })
        }
    }
}

/// Copies labels that are not recorded on either side from the expected result.
fn take_over(label: &Label, expected: &Value, got: &mut Value) {
    let unrecorded = |v: &Value| {
        let word = v.get(label.member).and_then(Value::as_str);
        word.is_some_and(|w| !label.recorded.contains(&w))
    };
    if unrecorded(expected) && unrecorded(got) {
        got[label.member] = expected[label.member].clone();
    }
}

/// Members of each recipe, in order.
const RECIPES: &[&[&str]] =
    &[&["concat"], &["end", "slice", "start"], &["lines_from"], &["repeat", "times"]];

/// Returns a value with every recipe replaced by its text.
fn expand_all(v: &Value) -> Result<Value, CaseError> {
    expand_within(v, &mut 0)
}

fn expand_within(v: &Value, made: &mut u64) -> Result<Value, CaseError> {
    Ok(match v {
        Value::Object(o) => {
            let mut members: Vec<&str> = o.keys().map(String::as_str).collect();
            members.sort_unstable();
            if RECIPES.contains(&members.as_slice()) {
                let text = expand(v)?;
                *made += text.len() as u64;
                if *made > MAX_BYTES {
                    return Err(odd(
                        "recipes",
                        format!("texts of at most {MAX_BYTES} bytes together"),
                        format!("{made} bytes"),
                    ));
                }
                return Ok(Value::String(text));
            }
            Value::Object(
                o.iter().map(|(k, v)| Ok((k.clone(), expand_within(v, made)?))).collect::<Result<
                    _,
                    CaseError,
                >>(
                )?,
            )
        }
        Value::Array(list) => {
            Value::Array(list.iter().map(|v| expand_within(v, made)).collect::<Result<_, _>>()?)
        }
        _ => v.clone(),
    })
}
