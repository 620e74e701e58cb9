//! Comparison of two runs of a session. A program that sends different requests the second time
//! cannot be measured.

use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_util::plural::pluralize;
use serde_json::Value;

use crate::options::Replayed;

/// Returns the first run, or an error if the second run sent different requests. Both need traces.
pub fn check_repeatable(first: Replayed, second: &Replayed) -> Replayed {
    let Some(why) = difference(&first.trace, &second.trace) else { return first };
    let error = format!("a second run went otherwise (exec.twice): {why}");
    let record = RunRecord { status: Status::Error, error: Some(error), ..first.record };
    Replayed { record, ..first }
}

fn difference(first: &[String], second: &[String]) -> Option<String> {
    let differs = |(a, b): (&String, &String)| sent(a) != sent(b);
    if let Some(n) = first.iter().zip(second).position(differs) {
        return Some(format!("request {n} shows something else"));
    }
    let (a, b) = (first.len(), second.len());
    (a != b).then(|| format!("{}, then {b}", pluralize(a, "request")))
}

/// Returns a line of the trace without the program's own messages.
fn sent(line: &str) -> Value {
    let mut line: Value = serde_json::from_str(line).unwrap_or_default();
    if let Some(line) = line.as_object_mut() {
        line.remove("said");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lines: &[&str]) -> Replayed {
        let trace = lines.iter().map(ToString::to_string).collect();
        Replayed { trace, ..Replayed::default() }
    }

    #[test]
    fn other_requests_are_an_error_and_other_words_for_people_are_none() {
        let a = r#"{"seq":0,"items":[{"sha256":"a"}],"said":["12 ms"]}"#;
        let b = r#"{"seq":0,"items":[{"sha256":"a"}],"said":["14 ms"]}"#;
        let c = r#"{"seq":0,"items":[{"sha256":"c"}]}"#;
        assert_eq!(check_repeatable(run(&[a]), &run(&[b])).record.error, None);
        let error = check_repeatable(run(&[a]), &run(&[c])).record.error.unwrap();
        assert!(error.contains("request 0 shows something else"), "{error}");
        let error = check_repeatable(run(&[a]), &run(&[a, a])).record.error.unwrap();
        assert!(error.contains("1 request, then 2"), "{error}");
    }
}
