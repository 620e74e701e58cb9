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

use super::line::Line;
use crate::formats::prelude::*;
use rapidhash::{HashSetExt, RapidHashMap as HashMap, RapidHashSet as HashSet};

/// Returns the messages and boundaries of a conversation that do not belong to its final form, by
/// line number.
pub(super) fn left_out(lines: &[&Line]) -> Vec<usize> {
    let given_up = given_up(lines);
    let rest: Vec<&Line> =
        lines.iter().filter(|l| !given_up.contains(&l.number)).copied().collect();
    let mut keep: HashSet<usize> = HashSet::new();
    let mut from = 0;
    for to in 1..=rest.len() {
        if to == rest.len() || is_boundary(rest[to]) {
            piece(&rest[from..to], &mut keep);
            from = to;
        }
    }
    let counts = |l: &&&Line| l.object.is_message() || is_boundary(l);
    let messages = lines.iter().filter(counts).map(|l| l.number);
    let boundaries: HashSet<usize> =
        rest.iter().filter(|l| is_boundary(l)).map(|l| l.number).collect();
    messages.filter(|n| !keep.contains(n) && !boundaries.contains(n)).collect()
}

/// Returns the numbers of the lines between a message and an earlier one that it follows, where a
/// boundary lies between them. A compaction may preserve messages before it, which others follow.
fn given_up(lines: &[&Line]) -> HashSet<usize> {
    let boundaries: Vec<usize> = (0..lines.len()).filter(|i| is_boundary(lines[*i])).collect();
    let mut out = HashSet::new();
    if boundaries.is_empty() {
        return out;
    }
    let by_uuid = by_uuid(lines);
    let mut at = lines.len();
    while let Some(i) = at.checked_sub(1) {
        let parent =
            lines[i].object.parent_uuid.as_deref().filter(|_| lines[i].object.is_message());
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

fn preserves(boundary: &Line, uuid: &str) -> bool {
    let meta = &boundary.object.compact_metadata;
    let mut all = meta["preservedMessages"]["uuids"].as_array().into_iter().flatten();
    meta["preservedSegment"]["tailUuid"] == *uuid || all.any(|u| *u == *uuid)
}

fn piece(lines: &[&Line], keep: &mut HashSet<usize>) {
    let by_uuid = by_uuid(lines);
    let parent =
        |i: usize| lines[i].object.parent_uuid.as_deref().and_then(|p| by_uuid.get(p).copied());
    let mut on_chain: HashSet<usize> = HashSet::new();
    let mut end = lines.len();
    while let Some(last) = (0..end).rev().find(|i| lines[*i].object.is_message()) {
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
        replies.extend(lines[*i].object.message_id());
    }
    let mut calls: HashSet<&str> = HashSet::new();
    for (i, line) in lines.iter().enumerate() {
        if on_chain.contains(&i) || line.object.message_id().is_some_and(|id| replies.contains(id))
        {
            keep.insert(line.number);
            calls.extend(line.object.pieces().iter().filter_map(|piece| match piece {
                MessagePart::Said(Part::Call(call)) => Some(&*call.id),
                _ => None,
            }));
        }
    }
    for line in lines {
        let answers = |piece: &MessagePart| matches!(piece, MessagePart::Result { call_id: id, .. } if !id.is_empty() && calls.contains(&**id));
        if line.object.pieces().iter().any(answers) {
            keep.insert(line.number);
        }
    }
}

/// Returns the lines of replies that the user interrupted before they had more than thoughts.
pub(super) fn interrupted(lines: &[&Line]) -> Vec<usize> {
    let mut messages = lines.to_vec();
    messages.retain(|line| line.object.is_message());
    let is_thought = |p: &MessagePart| matches!(p, MessagePart::Said(Part::Reasoning { .. }));
    let is_notice = |p: &MessagePart| matches!(p, MessagePart::Said(Part::Text(t)) if t.starts_with("[Request interrupted by user"));
    let runs = messages.chunk_by(|a, b| a.object.message_id() == b.object.message_id());
    let runs: Vec<&[&Line]> = runs.collect();
    let is_interrupted = |pair: &&[&[&Line]]| {
        pair[0][0].object.message_id().is_some()
            && pair[0].iter().flat_map(|line| line.object.pieces()).all(is_thought)
            && pair[1][0].object.pieces().iter().any(is_notice)
    };
    let pairs = runs.windows(2).filter(is_interrupted);
    pairs.flat_map(|pair| pair[0]).map(|line| line.number).collect()
}

/// Returns whether the first line of the main conversation follows a line that is not among these.
pub(super) fn begins_within(lines: &[Line]) -> bool {
    let is_main = |line: &&Line| line.object.uuid.is_some() && line.object.agent_id.is_none();
    let parent = lines.iter().find(is_main).and_then(|line| line.object.parent_uuid.as_deref());
    let has = |uuid: &str| lines.iter().any(|line| line.object.uuid.as_deref() == Some(uuid));
    parent.is_some_and(|parent| !has(parent))
}

fn by_uuid<'a>(lines: &[&'a Line]) -> HashMap<&'a str, usize> {
    let lines = lines.iter().enumerate();
    lines.filter_map(|(i, l)| Some((l.object.uuid.as_deref()?, i))).collect()
}

fn is_boundary(line: &Line) -> bool {
    line.object.subtype.as_deref() == Some("compact_boundary")
}

#[cfg(test)]
mod tests {
    use super::super::super::lines::of_text;
    use super::*;

    fn kept_lines(text: &str) -> Vec<usize> {
        let lines: Vec<Line> = of_text(text);
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
