//! Cost of the next message of a session: replays the context at a point, and continues in each way.

use ctxbench_core::prelude::*;
use ctxbench_core::strategy::Standing;
use ctxbench_core::{Model, model};
use ctxbench_reports::next::{NextCost, NextCosts, NextRow};
use ctxbench_reports::record::Status;
use ctxbench_scenarios::Scenario;
use ctxbench_session::calibration::{self, Calibrate};
use ctxbench_session::{AssistantEntry, Entry, Session, UserEntry};
use ctxbench_strategies::Spec;

use crate::models;
use crate::options::Options;
use crate::point::{CutPoint, NoSuchPoint, up_to};
use crate::recording::{counted_by, text_of};
use crate::replay::replay;

/// Sizes of the next message, of its reply, of the request for a handoff and of the handoff, o200k
/// tokens.
const MESSAGE: u64 = 100;
const REPLY: u64 = 300;
const ASK: u64 = 50;
const HANDOFF: u64 = 2_000;

/// Time after the end of the longest lifetime, ms.
const MINUTE: u64 = 60_000;

/// Returns the costs of the next message after a point: the end, if there is none. The context is the
/// recorded one; each product compacts it as if it had recorded it.
pub async fn next_costs(
    scenario: &Scenario,
    specs: &[Spec],
    options: &Options,
    point: Option<CutPoint>,
) -> Result<NextCosts, NoSuchPoint> {
    let until = match point {
        Some(point) => up_to(&scenario.session, point)?,
        None => scenario.session.clone(),
    };
    let model = models::own(&until);
    let calls_per_message = calls_per_message(&until);
    let base = Scenario { session: current(until, model), ..scenario.clone() };
    let lifetime = model.cache.long_ms.unwrap_or(model.cache.short_ms);
    let replayed = NextReplay { base, model, options, cold_ms: lifetime.saturating_add(MINUTE) };
    let reference = Spec::parse("reference").expect("a built-in strategy");
    let (mut rows, mut notes, mut without) = (Vec::new(), Vec::new(), Vec::new());
    let go_on = [user("next", MESSAGE), reply("last", REPLY)];
    let new = [Entry::Clear, user("next", HANDOFF + MESSAGE), reply("last", REPLY)];
    let ask = [user("ask", ASK), reply("handoff", HANDOFF)];
    let compact = [Entry::Compact { instructions: None, at: None }];
    let products = specs.iter().filter(|s| s.descriptor.standing == Standing::Contender);
    let ways = [("continue".to_string(), &reference, go_on.to_vec())].into_iter();
    let ways = ways.chain(products.map(|spec| {
        (format!("{}, compacted", spec.label()), spec, [&compact[..], &go_on].concat())
    }));
    let ways = ways.chain([
        ("new session, its handoff".to_string(), &reference, [&ask[..], &new].concat()),
        ("new session, your handoff".to_string(), &reference, new.to_vec()),
    ]);
    for (label, spec, tail) in ways {
        let is_compacted = matches!(tail[0], Entry::Compact { .. });
        if is_compacted && !spec.descriptor.manual.exists() {
            without.push(spec.label());
            continue;
        }
        let idle = [Entry::Idle { ms: replayed.cold_ms }];
        let cold = [&idle[..], &tail[..]].concat();
        let warm = replayed.cost(spec, &tail, is_compacted).await;
        let cold = replayed.cost(spec, &cold, is_compacted).await;
        match warm.and_then(|warm| Ok((warm, cold?))) {
            Ok((warm, cold)) => rows.push(NextRow { label, warm, cold }),
            Err(why) => notes.push(format!("{label}: {why}.")),
        }
    }
    if !without.is_empty() {
        notes.push(format!("No command for a compaction: {}.", without.join(", ")));
    }
    if let [first, others @ ..] = &mut rows[..] {
        for row in others.iter_mut() {
            row.warm.compare(&first.warm, calls_per_message);
            row.cold.compare(&first.cold, calls_per_message);
        }
        others.sort_by(|a, b| {
            let many = |r: &NextRow| r.warm.of_calls(10.0 * calls_per_message);
            many(a).total_cmp(&many(b))
        });
    }
    Ok(NextCosts {
        session: scenario.id.clone(),
        title: scenario.title.clone(),
        model: model.name.to_string(),
        at: point.map(|p| p.to_string()).unwrap_or_default(),
        calls_per_message,
        cold_minutes: replayed.cold_ms / MINUTE,
        rows,
        notes,
    })
}

fn user(id: &str, tokens: u64) -> Entry {
    let (id, text) = (format!("ctxbench-{id}"), Some(text_of(tokens).into()));
    Entry::User(UserEntry { id, text, ..UserEntry::default() })
}

fn reply(id: &str, tokens: u64) -> Entry {
    let (id, text) = (format!("ctxbench-{id}"), Some(text_of(tokens).into()));
    Entry::Assistant(AssistantEntry { id, text, ..AssistantEntry::default() })
}

/// Returns the mean number of replies per message of the user, at least 1.
fn calls_per_message(session: &Session) -> f64 {
    let own = session.entries.iter().filter(|e| e.agent().is_none() && e.is_message());
    let (mut messages, mut replies, mut asks) = (0_u32, 0_u32, false);
    for e in own {
        let is_user = matches!(e, Entry::User(_));
        messages += u32::from(is_user && !asks);
        replies += u32::from(!is_user);
        asks = is_user;
    }
    f64::from(replies.max(1)) / f64::from(messages.max(1)).min(f64::from(replies.max(1)))
}

/// Returns the main conversation since its last compaction. The summary, and text that the program
/// kept without recording it, are its first message.
fn current(session: Session, model: &Model) -> Session {
    let is_cut =
        |e: &Entry| matches!(e, Entry::RecordedCompaction(_) | Entry::Clear | Entry::NewSession);
    let Session { mut header, entries, .. } = session;
    let cut = entries.iter().rposition(is_cut);
    let mut own = Vec::new();
    for (i, e) in entries.into_iter().enumerate().filter(|(_, e)| e.agent().is_none()) {
        let is_fixed = e.standing_text().is_some() || matches!(e, Entry::Tools { .. });
        match e {
            Entry::RecordedCompaction(c) if Some(i) == cut => {
                let text = Some(c.summary.unwrap_or_default().into());
                own.push(Entry::User(UserEntry {
                    id: "ctxbench-summary".into(),
                    text,
                    ..Default::default()
                }));
            }
            e if is_fixed || e.key().is_some() && cut.is_none_or(|cut| i > cut) => own.push(e),
            _ => {}
        }
    }
    let session = Session { header: header.clone(), entries: own.clone(), facts: Vec::new() };
    let by = crate::recording::counting(&session, model, Calibrate::Recording);
    let all = calibration::prefix(&own, &by, header.model.as_deref());
    let system = header.prefix_tokens.or(all).unwrap_or_default();
    let kept = all.unwrap_or_default().saturating_sub(system);
    if kept > 0 {
        let summary = own.iter_mut().find_map(|e| match e {
            Entry::User(u) if u.id == "ctxbench-summary" => u.text.as_mut(),
            _ => None,
        });
        // It joins the block of the summary, which is counted already.
        let counting = counted_by(&session, model, Calibrate::Recording);
        let kept = counting.fitting(kept + counting.per_block);
        summary.into_iter().for_each(|text| {
            *text = Arc::from(format!("{text}\n{}", text_of(kept)));
        });
    }
    header.prefix_tokens = Some(system);
    Session { header, entries: own, facts: Vec::new() }
}

struct NextReplay<'a> {
    base: Scenario,
    model: &'a Model,
    options: &'a Options,
    /// Idle time before a cold continuation, ms.
    cold_ms: u64,
}

impl NextReplay<'_> {
    /// Returns the cost of the entries after the context. An error says why there is none.
    async fn cost(
        &self,
        spec: &Spec,
        tail: &[Entry],
        is_compacted: bool,
    ) -> Result<NextCost, String> {
        let mut scenario = self.base.clone();
        let steps = scenario.session.entries.iter().filter(|e| e.as_reply().is_some()).count();
        scenario.session.entries.extend_from_slice(tail);
        let options = Options { rereads: false, ..self.options.clone() };
        let record = replay(&scenario, spec, self.model, &options).await.record;
        if record.status != Status::Completed {
            return Err(record.error.unwrap_or_else(|| "did not get there".into()));
        }
        let after = record.requests.iter().filter(|r| r.step >= steps as u64);
        let usd: f64 = after.clone().map(|r| r.cost_usd).sum();
        let last = after.rev().find(|r| r.purpose == Purpose::Sample);
        let last = last.ok_or("has no request after it")?;
        let is_done = record.compactions.last().is_some_and(|c| c.before_request + 1 >= last.seq);
        if is_compacted && !is_done {
            return Err("found nothing to compact".into());
        }
        let call_usd = last.cost_usd - last.compaction_usd;
        let read = Usage { cache_read: last.context_tokens, ..Usage::default() };
        Ok(NextCost {
            before_usd: usd - call_usd,
            call_usd,
            prompt_tokens: last.context_tokens,
            later_call_usd: model::cost(self.model, &read).total(),
            pays_from: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_os::block_on;

    use super::*;

    /// Sonnet 4.6: 3, 3.75, 0.30 and 15 USD per million tokens; 1.10 · o200k + 34 per block. Two
    /// messages with a call each; the system prompt has 10,000 tokens.
    const LINES: &str = r#"{"type":"session","version":1,"id":"s","model":"claude-sonnet-4-6","prefix_tokens":10000}
{"type":"user","id":"u1","text":"go"}
{"type":"assistant","id":"a1","text":"go","at":1000,"usage":{"input":0,"cache_write":10035,"output":1}}
{"type":"user","id":"u2","text":"go","at":2000}
{"type":"assistant","id":"a2","text":"go","at":3000,"usage":{"input":0,"cache_read":10035,"cache_write":70,"output":1}}
"#;

    fn costs(text: &str, strategies: &[&str]) -> NextCosts {
        let scenario = ctxbench_scenarios::parse(text.as_bytes(), "s.jsonl").unwrap();
        let specs: Vec<Spec> = strategies.iter().map(|s| Spec::parse(s).unwrap()).collect();
        block_on(next_costs(&scenario, &specs, &Options::default(), None)).unwrap().unwrap()
    }

    fn close(usd: f64, millionths: f64) {
        assert!((usd * 1e6 - millionths).abs() < 60.0, "{usd} is not {millionths} / 1,000,000");
    }

    #[test]
    fn to_continue_reads_a_warm_prefix_and_writes_a_cold_one() {
        let costs = costs(LINES, &["codex"]);
        assert_eq!(costs.calls_per_message, 1.0);
        let labels: Vec<&str> = costs.rows.iter().map(|r| &*r.label).collect();
        assert_eq!(labels[0], "continue");
        assert!(labels.contains(&"codex, compacted"), "{labels:?} {:?}", costs.notes);
        let NextRow { warm, cold, .. } = &costs.rows[0];
        // 10,105, the reply of 35, and the message of 144.
        let prompt = 10_105 + 35 + 144;
        assert!(warm.prompt_tokens.abs_diff(prompt) < 20, "{}", warm.prompt_tokens);
        let output = 364.0 * 15.0;
        close(warm.call_usd, 10_105.0 * 0.30 + 179.0 * 3.75 + output);
        close(cold.call_usd, 10_284.0 * 3.75 + output);
        assert_eq!((warm.before_usd, cold.before_usd), (0.0, 0.0));
    }

    #[test]
    fn a_new_session_has_only_the_system_prompt_in_the_cache() {
        let costs = costs(LINES, &[]);
        let row = costs.rows.iter().find(|r| r.label == "new session, your handoff").unwrap();
        // 2,100 · 1.10 + 34.
        let message = 2_344.0;
        let output = 364.0 * 15.0;
        close(row.warm.call_usd, 10_000.0 * 0.30 + message * 3.75 + output);
        close(row.cold.call_usd, (10_000.0 + message) * 3.75 + output);
        assert_eq!(row.warm.before_usd, 0.0);
    }

    #[test]
    fn the_context_begins_at_the_last_compaction() {
        let compacted = r#"{"type":"recorded_compaction","at":4000,"summary":"go"}
{"type":"user","id":"u3","text":"go","at":5000}
{"type":"assistant","id":"a3","text":"go","at":6000,"usage":{"input":0,"cache_read":10000,"cache_write":570,"output":1}}
"#;
        let costs = costs(&format!("{LINES}{compacted}"), &[]);
        // 10,570 with 500 kept besides the summary; the reply of 35 and the message of 144. The factor
        // of the recording moves the 500 by some tokens.
        let prompt = costs.rows[0].warm.prompt_tokens;
        assert!(prompt.abs_diff(10_570 + 35 + 144) < 40, "{prompt}");
    }
}
