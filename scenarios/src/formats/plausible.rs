//! Counters that contradict each other or the window: told, and not believed.

use std::collections::HashSet;

use ctxbench_session::{Entry, Header, RecordedCompaction, RecordedUsage, calibration};
use ctxbench_util::plural::pluralize;

use crate::bounds;
use crate::check::Located;

/// Parts of the notes on counters that are left out, and on compactions without a marker.
pub(super) const IMPOSSIBLE: &str = "they cannot be right";
pub(super) const HIDDEN: &str = "that the file does not show";

/// Removes counters that no call can have had: prompt and reply far larger than the window and than all
/// that was said. `aside` are the places of single calls outside the conversation; others can be sums.
/// Returns a warning.
pub(super) fn drop_impossible_counters(
    header: &Header,
    items: &mut [Located],
    aside: &HashSet<usize>,
    file: &str,
) -> Option<String> {
    /// System prompts, tools and reminders that a recording lacks, tokens.
    const UNSEEN: u64 = 100_000;
    /// Largest window that any listed provider offers, tokens. Clients offer variants of a model with
    /// this window.
    const LARGEST_WINDOW: u64 = 1_100_000;
    let window = header.context_window.filter(|w| *w < bounds::TOKENS).unwrap_or(LARGEST_WINDOW);
    let all = |usage: &RecordedUsage| usage.prompt().saturating_add(usage.output);
    let beyond = |usage: &RecordedUsage| all(usage) >= window.saturating_add(window / 4);
    let mut usages =
        items.iter_mut().enumerate().filter_map(|(at, i)| usage(&mut i.entry, aside.contains(&at)));
    usages.any(|usage| beyond(usage)).then_some(())?;
    let by = calibration::counting_of(header.model.as_deref()).for_visible_text();
    let said = calibration::content(items.iter().map(|i| &i.entry), &by);
    let mut dropped = Vec::new();
    for (at, Located { line, entry }) in items.iter_mut().enumerate() {
        let is_wrong = |u: &&mut RecordedUsage| beyond(u) && all(u) > said + UNSEEN;
        let Some(wrong) = usage(entry, aside.contains(&at)).filter(is_wrong) else { continue };
        // The names of the call, and the cost that the program states, stay.
        let billing = std::mem::take(&mut wrong.billing);
        let kept = RecordedUsage { billing, ..RecordedUsage::default() };
        dropped.push((*line, all(&std::mem::replace(wrong, kept))));
        if let Entry::Assistant(a) = entry {
            a.usage = None;
        }
    }
    let &(line, tokens) = dropped.first()?;
    let more = match dropped.len() {
        1 => String::new(),
        n => format!("; so are those of {}", pluralize(n - 1, "more reply")),
    };
    Some(format!(
        "{file}:{line}: the counters tell of a prompt and a reply of {tokens} tokens, in a window of \
         {window} and a session of {said}; {IMPOSSIBLE} and are left out{more}"
    ))
}

fn usage(entry: &mut Entry, is_aside: bool) -> Option<&mut RecordedUsage> {
    match entry {
        Entry::Assistant(a) => a.usage.as_mut(),
        Entry::RecordedCall(c) if is_aside => Some(&mut c.usage),
        _ => None,
    }
}

/// Removes counters that are 0 in every reply, as some gateways send them. Returns a warning.
pub(super) fn drop_zero_counters(items: &mut [Located], file: &str) -> Option<String> {
    let counted = items.iter().filter_map(|i| Some((i.line, i.entry.as_reply()?.usage.as_ref()?)));
    let counted: Vec<(usize, &RecordedUsage)> = counted.collect();
    let is_zero = |u: &RecordedUsage| {
        u.prompt() == 0 && u.output == 0 && !u.is_cost_only() && u.billing.web_searches == 0
    };
    let (line, count) = (counted.first()?.0, counted.len());
    counted.iter().all(|(_, usage)| is_zero(usage)).then_some(())?;
    for item in items.iter_mut() {
        if let Entry::Assistant(a) = &mut item.entry {
            a.usage = None;
        }
    }
    let replies = pluralize(count, "reply");
    Some(format!("{file}:{line}: all counters of {replies} are 0; {IMPOSSIBLE} and are left out"))
}

/// Adds a compaction where the counted prompts fall without one, and returns a warning. What the
/// program removed, and when, is not known.
pub(super) fn add_hidden_compactions(items: &mut Vec<Located>, file: &str) -> Option<String> {
    /// Smallest fall in tokens; the program also clears old results.
    const LEAST_FALL: u64 = 50_000;
    let (mut before, mut hidden) = (0, Vec::new());
    let prompt_of = |(at, item): (usize, &Located)| match &item.entry {
        Entry::Assistant(a) if a.agent.is_none() => {
            Some((at, a.usage.as_ref()?.prompt())).filter(|(_, prompt)| *prompt > 0)
        }
        Entry::RecordedCompaction(_) | Entry::Clear => Some((at, 0)),
        _ => None,
    };
    let mut prompts = items.iter().enumerate().filter_map(prompt_of).peekable();
    while let Some((at, prompt)) = prompts.next() {
        let has_fallen = prompt > 0 && prompt < before / 2 && before - prompt >= LEAST_FALL;
        // A small request between two large ones is another conversation's.
        if has_fallen && prompts.peek().is_some_and(|(_, next)| *next >= before) {
            continue;
        }
        hidden.extend(has_fallen.then_some((at, before, prompt)));
        before = prompt;
    }
    let &(at, from, to) = hidden.first()?;
    let line = items[at].line;
    let all = match hidden.len() {
        1 => "one compaction".to_string(),
        n => format!("{n} compactions"),
    };
    for (at, from, to) in hidden.into_iter().rev() {
        let (pre_tokens, post_tokens) = (Some(from), Some(to));
        let c = RecordedCompaction { pre_tokens, post_tokens, ..RecordedCompaction::default() };
        let line = items[at].line;
        items.insert(at, Located { line, entry: Entry::RecordedCompaction(c) });
    }
    Some(format!(
        "{file}:{line}: at least {all} {HIDDEN}: the counted prompt falls from \
         {from} to {to} tokens"
    ))
}
