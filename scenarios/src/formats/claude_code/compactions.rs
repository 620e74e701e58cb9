//! Companions of a compaction of Claude Code: the request for its summary, which the program stores
//! like a subagent's conversation, and the user's command.

use crate::formats::prelude::*;
use std::collections::BTreeMap;

/// Prefix of the ids of summary conversations, as in recordings of version 2.1.39.
const SUMMARY_AGENT: &str = "acompact-";

/// Assigns each request for a summary to the compaction that follows it. Such a request is a
/// counted call, but not a conversation of the session. Returns a warning if compactions are
/// missing.
pub(super) fn summaries(steps: &mut [RecordingStep]) -> Option<String> {
    // Reply of each such conversation, with the position of its last part.
    let mut replies: BTreeMap<String, (usize, Box<RecordingReply>)> = BTreeMap::new();
    for (i, step) in steps.iter_mut().enumerate() {
        let Some(agent) = step.agent.clone().filter(|a| a.starts_with(SUMMARY_AGENT)) else {
            continue;
        };
        step.view = View::Calls;
        if let StepKind::Reply(part) = &step.what {
            let of_same = |old: &RecordingReply| old.response == part.response;
            match replies.get_mut(&agent).filter(|(_, old)| of_same(old)) {
                Some((place, reply)) => {
                    *place = i;
                    reply.join(part.clone());
                }
                None => drop(replies.insert(agent, (i, Box::new(part.clone())))),
            }
        }
    }
    let mut alone = 0;
    for (place, reply) in replies.into_values() {
        let compaction = steps[place..].iter_mut().find_map(|s| match &mut s.what {
            StepKind::Compaction(c) if s.agent.is_none() && c.reply.is_none() => Some(c),
            _ => None,
        });
        match compaction {
            Some(c) => c.reply = Some(reply),
            None => alone += 1,
        }
    }
    (alone > 0).then(|| {
        format!("requests for a summary of a compaction that is not in the file, left out: {alone}")
    })
}

/// Gives each manual compaction the instructions and the time of its `/compact` command. The
/// command is recorded between the replies around it. Its line is written after the compaction,
/// with the time at which the user typed it.
pub(super) fn commands(steps: &mut [RecordingStep]) {
    let is_reply = |s: &RecordingStep| s.agent.is_none() && matches!(s.what, StepKind::Reply(_));
    for i in 0..steps.len() {
        let manual = |s: &RecordingStep| {
            let is = |c: &RecordingCompaction| c.trigger == Some(Trigger::Manual);
            s.agent.is_none() && matches!(&s.what, StepKind::Compaction(c) if is(c))
        };
        if !manual(&steps[i]) {
            continue;
        }
        let from = steps[..i].iter().rposition(|s| is_reply(s) || manual(s)).map_or(0, |n| n + 1);
        let found = steps[i..].iter().take_while(|s| !is_reply(s)).chain(&steps[from..i]);
        let command = found.filter(|s| s.agent.is_none()).find_map(|s| {
            let StepKind::Input(input) = &s.what else { return None };
            let instructions = input.pieces.iter().find_map(command)?;
            Some((instructions, s.stamp.clone()))
        });
        let Some((instructions, stamp)) = command else { continue };
        let earlier = stamp.filter(|new| steps[i].stamp.as_ref().is_none_or(|old| new < old));
        steps[i].stamp = earlier.or(steps[i].stamp.take());
        if let StepKind::Compaction(c) = &mut steps[i].what {
            c.instructions = Some(instructions).filter(|words| !words.is_empty());
        }
    }
}

/// Returns the text after the command name in the trace of a `/compact` command, or `None` if the
/// piece is not such a trace.
fn command(piece: &MessagePart) -> Option<String> {
    let (MessagePart::Added(Part::Text(text), _) | MessagePart::Said(Part::Text(text))) = piece
    else {
        return None;
    };
    text.contains("<command-name>/compact</command-name>").then_some(())?;
    let rest = text.split_once("<command-args>").map_or("", |(_, rest)| rest);
    Some(rest.rsplit_once("</command-args>").map_or(rest, |(words, _)| words).trim().to_string())
}
