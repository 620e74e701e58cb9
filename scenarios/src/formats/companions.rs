//! Merging of a session with its companion files.

use super::RecordedLine;
use super::lines::str_of;

/// Merges the objects of a session and its companions in chronological order, keeping the order of
/// each file. An object without a time stays with the one before it.
pub(super) fn merged(files: impl Iterator<Item = Vec<RecordedLine>>) -> Vec<RecordedLine> {
    let mut all: Vec<(String, RecordedLine)> = files.flat_map(timed).collect();
    // The sort is stable, so each file keeps its order. The main file's line comes first if times
    // are equal.
    all.sort_by(|a, b| a.0.cmp(&b.0));
    (1..).zip(all).map(|(number, (_, line))| RecordedLine { number, ..line }).collect()
}

/// Returns the objects, each with the newest time so far. The times sort as text.
fn timed(lines: Vec<RecordedLine>) -> Vec<(String, RecordedLine)> {
    let mut newest = String::new();
    let timed = |line: RecordedLine| {
        if let Some(time) = str_of(&line.object, "timestamp").filter(|t| **t > *newest) {
            newest = time.to_string();
        }
        (newest.clone(), line)
    };
    lines.into_iter().map(timed).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Recording, Source, lines::of_lines};
    use super::*;

    #[test]
    fn lines_stand_by_their_times() {
        let at = |s: u32, n: &str| {
            format!("{{\"n\":\"{n}\",\"timestamp\":\"2026-01-01T00:00:{s:02}.000Z\"}}")
        };
        let main = [at(1, "ask"), "{\"n\":\"untimed\"}".into(), at(9, "result")].join("\n");
        let agent = [at(3, "x1"), at(2, "x2 by another clock"), at(9, "x3")].join("\n");
        let objects = |text: &String| {
            of_lines(&Source::of_bytes(text.as_bytes(), "x"), &mut Recording::default()).unwrap()
        };
        let all = merged([main, agent].iter().map(objects));
        let order: Vec<&str> = all.iter().map(|l| str_of(&l.object, "n").unwrap()).collect();
        assert!(all.iter().map(|l| l.number).eq(1..=6));
        assert_eq!(order, ["ask", "untimed", "x1", "x2 by another clock", "result", "x3"]);
    }
}
