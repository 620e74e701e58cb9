//! Selection of the lines of a Claude Code transcript that belong to the final conversation.
//!
//! Lines name their parent, and a parent with two children is a branch: a retry, an edited prompt,
//! or merely parallel tool calls. The file is cut at compaction boundaries. Each piece keeps the
//! chain from its last message up to a line without a known parent. It also keeps the other lines
//! of a reply on the chain (same message id) and the results of its calls, which parallel calls
//! leave off the chain. A piece has several roots if a program resumed a session without naming the
//! parent. Lines before a later root are kept too, because losing a history is worse than keeping a
//! retry. A message that follows one before a boundary resumes the session there: the compaction
//! and everything else in between was given up.

use crate::formats::prelude::*;
use rapidhash::{HashSetExt, RapidHashMap as HashMap, RapidHashSet as HashSet};

/// Returns the messages and boundaries of a conversation that do not belong to its final form, by
/// line number.
pub(super) fn left_out(lines: &[&RecordedLine]) -> Vec<usize> {
    let given_up = given_up(lines);
    let rest: Vec<&RecordedLine> =
        lines.iter().filter(|l| !given_up.contains(&l.number)).copied().collect();
    let mut keep: HashSet<usize> = HashSet::new();
    let mut from = 0;
    for to in 1..=rest.len() {
        if to == rest.len() || is_boundary(rest[to]) {
            piece(&rest[from..to], &mut keep);
            from = to;
        }
    }
    let counts = |l: &&&RecordedLine| is_message(l) || is_boundary(l);
    let messages = lines.iter().filter(counts).map(|l| l.number);
    let boundaries: HashSet<usize> =
        rest.iter().filter(|l| is_boundary(l)).map(|l| l.number).collect();
    messages.filter(|n| !keep.contains(n) && !boundaries.contains(n)).collect()
}

/// Returns the numbers of the lines between a message and an earlier one that it follows, where a
/// boundary lies between them. A compaction may preserve messages before it, which others follow.
fn given_up(lines: &[&RecordedLine]) -> HashSet<usize> {
    let by_uuid = by_uuid(lines);
    let boundaries: Vec<usize> = (0..lines.len()).filter(|i| is_boundary(lines[*i])).collect();
    let mut out = HashSet::new();
    if boundaries.is_empty() {
        return out;
    }
    let mut at = lines.len();
    while let Some(i) = at.checked_sub(1) {
        let parent = str_of(&lines[i].object, "parentUuid").filter(|_| is_message(lines[i]));
        let before = parent.and_then(|p| by_uuid.get(p).copied()).filter(|p| *p < i);
        let mut between = boundaries.iter().filter(|b| before.is_some_and(|p| p < **b && **b < i));
        let preserved = |b: usize| parent.is_some_and(|p| preserves(lines[b], p));
        at = match (between.next(), before) {
            (Some(b), Some(p)) if !preserved(*b) => {
                out.extend(lines[p + 1..i].iter().map(|l| l.number));
                p + 1
            }
            _ => i,
        };
    }
    out
}

fn preserves(boundary: &RecordedLine, uuid: &str) -> bool {
    let meta = object_in(&boundary.object, "compactMetadata");
    let tail = str_of(object_in(meta, "preservedSegment"), "tailUuid");
    let all = list_of(object_in(meta, "preservedMessages"), "uuids");
    tail == Some(uuid) || all.iter().any(|u| u.as_str() == Some(uuid))
}

fn piece(lines: &[&RecordedLine], keep: &mut HashSet<usize>) {
    let by_uuid = by_uuid(lines);
    let parent =
        |i: usize| str_of(&lines[i].object, "parentUuid").and_then(|p| by_uuid.get(p).copied());
    let mut on_chain: HashSet<usize> = HashSet::new();
    let mut end = lines.len();
    while let Some(last) = (0..end).rev().find(|i| is_message(lines[*i])) {
        let mut at = last;
        let mut root = at;
        while on_chain.insert(at) {
            root = at;
            match parent(at) {
                Some(p) if p < at => at = p,
                _ => break,
            }
        }
        end = root;
    }
    let mut replies: HashSet<&str> = HashSet::new();
    for i in &on_chain {
        replies.extend(message_id(lines[*i]));
    }
    let mut calls: HashSet<&str> = HashSet::new();
    for (i, line) in lines.iter().enumerate() {
        if on_chain.contains(&i) || message_id(line).is_some_and(|id| replies.contains(id)) {
            keep.insert(line.number);
            calls.extend(ids(line, "tool_use", "id"));
        }
    }
    for line in lines {
        if ids(line, "tool_result", "tool_use_id").iter().any(|id| calls.contains(id)) {
            keep.insert(line.number);
        }
    }
}

fn by_uuid<'a>(lines: &[&'a RecordedLine]) -> HashMap<&'a str, usize> {
    let lines = lines.iter().enumerate();
    lines.filter_map(|(i, l)| Some((str_of(&l.object, "uuid")?, i))).collect()
}

fn is_boundary(line: &RecordedLine) -> bool {
    str_of(&line.object, "subtype") == Some("compact_boundary")
}

fn is_message(line: &RecordedLine) -> bool {
    matches!(str_of(&line.object, "type"), Some("user" | "assistant"))
}

fn message_id(line: &RecordedLine) -> Option<&str> {
    str_of(object_in(&line.object, "message"), "id")
}

fn ids<'a>(line: &'a RecordedLine, block: &str, field: &str) -> Vec<&'a str> {
    let blocks = objects(object_in(&line.object, "message"), "content");
    blocks.filter(|b| str_of(b, "type") == Some(block)).filter_map(|b| str_of(b, field)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::lines::of_text;
    use super::*;

    fn kept_lines(text: &str) -> Vec<usize> {
        let lines = of_text(text);
        let left = left_out(&lines.iter().collect::<Vec<_>>());
        lines.iter().map(|l| l.number).filter(|n| !left.contains(n)).collect()
    }

    #[test]
    fn an_edited_prompt_replaces_the_first_try() {
        let text = r#"{"type":"user","uuid":"1","parentUuid":null}
{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"a"}}
{"type":"user","uuid":"3","parentUuid":"2"}
{"type":"assistant","uuid":"4","parentUuid":"3","message":{"id":"b"}}
{"type":"user","uuid":"5","parentUuid":"2"}
{"type":"assistant","uuid":"6","parentUuid":"5","message":{"id":"c"}}"#;
        assert_eq!(kept_lines(text), [1, 2, 5, 6]);
    }

    #[test]
    fn parallel_calls_are_no_retry() {
        let text = r#"{"type":"user","uuid":"1","parentUuid":null}
{"type":"assistant","uuid":"2","parentUuid":"1","message":{"id":"a","content":[{"type":"tool_use","id":"x"}]}}
{"type":"progress","uuid":"p","parentUuid":"2"}
{"type":"assistant","uuid":"3","parentUuid":"p","message":{"id":"a","content":[{"type":"tool_use","id":"y"}]}}
{"type":"user","uuid":"4","parentUuid":"2","message":{"content":[{"type":"tool_result","tool_use_id":"x"}]}}
{"type":"user","uuid":"5","parentUuid":"3","message":{"content":[{"type":"tool_result","tool_use_id":"y"}]}}
{"type":"assistant","uuid":"6","parentUuid":"5","message":{"id":"b"}}"#;
        assert_eq!(kept_lines(text), [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn history_before_a_resumption_and_before_a_boundary_is_kept() {
        let text = r#"{"type":"user","uuid":"1","parentUuid":null}
{"type":"user","uuid":"2","parentUuid":"gone"}
{"type":"system","subtype":"compact_boundary","uuid":"3","parentUuid":null}
{"type":"user","uuid":"4","parentUuid":"3"}"#;
        assert_eq!(kept_lines(text), [1, 2, 3, 4]);
    }

    #[test]
    fn a_resume_to_before_a_compaction_gives_the_compaction_up() {
        let text = |segment: &str| {
            format!(
                r#"{{"type":"user","uuid":"1","parentUuid":null}}
{{"type":"assistant","uuid":"2","parentUuid":"1","message":{{"id":"a"}}}}
{{"type":"system","subtype":"compact_boundary","uuid":"3","parentUuid":null,"logicalParentUuid":"2"{segment}}}
{{"type":"user","uuid":"4","parentUuid":"3","isCompactSummary":true}}
{{"type":"user","uuid":"5","parentUuid":"2"}}
{{"type":"assistant","uuid":"6","parentUuid":"5","message":{{"id":"b"}}}}"#
            )
        };
        assert_eq!(kept_lines(&text("")), [1, 2, 5, 6]);
        let segment = r#","compactMetadata":{"preservedSegment":{"tailUuid":"2"}}"#;
        assert_eq!(kept_lines(&text(segment)), [1, 2, 3, 4, 5, 6]);
    }
}
