//! A session and the files beside it that belong to it, as one text.

use serde_json::{Map, Value};

use super::lines::str_of;
use crate::jsonl::numbered;

/// The lines of a session and its companions, in the order of their times, those of each
/// file in their own. A line without a time stands with the one before it.
pub(crate) fn merged(main: &str, agents: &[String]) -> String {
    let mut lines: Vec<(String, &str)> =
        std::iter::once(main).chain(agents.iter().map(String::as_str)).flat_map(timed).collect();
    // Stable: what each file holds stays in its order, and of equal times the main file's line
    // comes first.
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    lines.into_iter().flat_map(|(_, l)| [l, "\n"]).collect()
}

/// Lines with the newest time so far; such times sort as text.
fn timed(text: &str) -> Vec<(String, &str)> {
    let mut newest = String::new();
    numbered(text)
        .map(|(_, line)| {
            let time = serde_json::from_str::<Map<String, Value>>(line)
                .ok()
                .and_then(|o| str_of(&o, "timestamp").map(str::to_string));
            if let Some(time) = time.filter(|t| *t > newest) {
                newest = time;
            }
            (newest.clone(), line)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_by_their_times() {
        let at = |s: u32, n: &str| {
            format!("{{\"n\":\"{n}\",\"timestamp\":\"2026-01-01T00:00:{s:02}.000Z\"}}")
        };
        let main = [at(1, "ask"), "{\"n\":\"untimed\"}".into(), at(9, "result")].join("\n");
        let agent = [at(3, "x1"), at(2, "x2 by another clock"), at(9, "x3")].join("\n");
        let text = merged(&main, &[agent]);
        let order: Vec<&str> = text.lines().map(|l| l.split('"').nth(3).unwrap()).collect();
        assert_eq!(order, ["ask", "untimed", "x1", "x2 by another clock", "result", "x3"]);
    }
}
