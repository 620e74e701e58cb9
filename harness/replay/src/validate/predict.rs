//! Predicts the cache reads of the calls in a recording.
//!
//! A recording lacks the system prompt and the tools, so a prompt is built from the available data:
//! the call that it continues, the number of content blocks in between, the time, the model, and
//! the *sizes* of prompts by the counters (read + written = up to the last breakpoint). The split
//! of a prompt into read and written is the prediction and is never taken from its own counters.
//! Breakpoints are at the end of the system part, after the previous reply, and at the end. If the
//! provider drops the thinking of earlier turns, so does the prompt. The size of the system part
//! shows only when a compaction leaves nothing else: it is learned from the first such call, which
//! does not count as right.

use std::collections::HashMap;

use ctxbench_core::model::{self, CacheRule};
use ctxbench_core::tokens::content_hash;
use ctxbench_core::usage::Ttl;
use ctxbench_provider::{Prefix, PromptCache};

use super::calls::{Calls, ModelCall};

#[derive(Clone, Copy, Debug)]
pub struct PredictOptions {
    /// True if cache entries expire.
    pub lifetimes: bool,
    /// Lifetime of cache entries if the recording does not contain it.
    pub ttl: Ttl,
}

/// Prediction of a call, tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to the cache, at the write price.
    pub write: u64,
    /// Tokens neither read nor written.
    pub input: u64,
    /// True if only the system part can have been read, and its size was not yet known.
    pub size_unknown: bool,
}

/// Returns the caching rule of a model, and whether the catalogue contains this model or only
/// another one of its family.
pub fn rule_of(model: &str) -> Option<(CacheRule, bool)> {
    if let Some(m) = model::find_recorded(model) {
        return Some((m.cache, true));
    }
    model::substitute(model).map(|m| (m.cache, false))
}

/// Returns the number of tokens up to the last breakpoint by the counters.
pub fn cached_part(call: &ModelCall, rule: &CacheRule) -> u64 {
    if rule.needs_breakpoints() {
        call.counters.read + call.counters.write
    } else {
        call.counters.prompt()
    }
}

/// Maximum number of calls that a compared prompt may continue without a compaction. Each prompt is
/// built from scratch, so the total work is at most this number times the number of calls. No
/// context window has room for more.
pub(super) const MAX_CALLS: usize = 5_000;

/// Returns the number of calls that the prompt of each call continues.
pub(super) fn depths(recording: &Calls) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::new();
    for call in &recording.calls {
        // A call always follows the call that it continues.
        depths.push(call.before.map_or(0, |b| depths[b] + 1));
    }
    depths
}

/// Predicts every call, in file order. `None` if the model has no known rule, or the call's prompt
/// continues more than `longest` calls.
pub fn predict(
    recording: &Calls,
    options: PredictOptions,
    longest: usize,
) -> Vec<Option<Predicted>> {
    let mut run = Prediction {
        recording,
        options,
        caches: HashMap::new(),
        systems: HashMap::new(),
        ttls: HashMap::new(),
    };
    let previous = recording.previous();
    let depths = depths(recording);
    let calls = depths.iter().enumerate();
    calls.map(|(i, d)| if *d > longest { None } else { run.call(i, previous[i]) }).collect()
}

#[derive(Clone, Copy, Default)]
struct System {
    /// Size as seen in a counter.
    known: Option<u64>,
    /// Estimate until the size is known.
    guess: u64,
}

struct Prediction<'a> {
    recording: &'a Calls,
    options: PredictOptions,
    caches: HashMap<&'a str, PromptCache>,
    systems: HashMap<(&'a str, &'a str), System>,
    ttls: HashMap<&'a str, Ttl>,
}

impl<'a> Prediction<'a> {
    fn call(&mut self, i: usize, previous: Option<usize>) -> Option<Predicted> {
        let call = &self.recording.calls[i];
        let (rule, _) = rule_of(&call.model)?;
        let whole = cached_part(call, &rule);
        let key = (call.conversation.as_str(), call.model.as_str());
        if previous.is_none_or(|p| self.recording.calls[p].model != call.model) {
            // The part written by others. If unknown, the prompt without our count of the messages.
            let rest = whole.saturating_sub(call.inputs.tokens);
            let guess = if call.counters.read > 0 { call.counters.read } else { rest };
            self.systems.entry(key).or_insert(System { known: None, guess });
        }
        let system = self.systems.get(&key).copied().unwrap_or_default();
        let ttl = match call.counters.is_long() {
            Some(true) => Ttl::OneHour,
            Some(false) => Ttl::FiveMinutes,
            None => self.ttls.get(key.0).copied().unwrap_or(self.options.ttl),
        };
        self.ttls.insert(key.0, ttl);
        let effective = if self.options.lifetimes { rule } else { rule.without_lifetimes() };
        let sent = |c: &ModelCall| c.sent_ms.or(c.began_ms).unwrap_or(0).max(0) as u64;
        let all = self.prefixes(i, system, ttl, &rule);
        // The request for the summary contained the previous prompt and so refreshed its entry. It
        // is not in the file.
        if let (Some(b), Some(p)) = (call.boundary, previous)
            && self.recording.calls[p].model == call.model
        {
            let shown = self.prefixes(p, system, ttl, &rule);
            let asked =
                self.recording.boundaries[b].asked_ms.map_or(sent(call), |ms| ms.max(0) as u64);
            self.cache(&call.model, effective).use_prefixes(&shown, asked, asked);
        }
        let began = call.began_ms.map_or(sent(call), |ms| ms.max(0) as u64);
        let used = self.cache(&call.model, effective).use_prefixes(&all, sent(call), began);
        let size_unknown = used.cache_read > 0
            && system.known.is_none()
            && all.first().is_some_and(|s| s.tokens == used.cache_read)
            && call.before.is_none();
        self.learn(i, previous, &rule);
        Some(Predicted {
            read: used.cache_read,
            write: used.cache_write + used.cache_write_1h,
            input: used.input,
            size_unknown,
        })
    }

    fn cache(&mut self, model: &'a str, rule: CacheRule) -> &mut PromptCache {
        self.caches.entry(model).or_insert_with(|| PromptCache::new(rule))
    }

    /// Learns the size of the system part from a read that ends before the messages.
    fn learn(&mut self, i: usize, previous: Option<usize>, rule: &CacheRule) {
        let call = &self.recording.calls[i];
        let (read, whole) = (call.counters.read, cached_part(call, rule));
        let first =
            self.path(i).first().map_or(whole, |&f| cached_part(&self.recording.calls[f], rule));
        if rule.needs_breakpoints()
            && previous.is_some()
            && read > 0
            && read < first
            && let Some(s) =
                self.systems.get_mut(&(call.conversation.as_str(), call.model.as_str()))
        {
            s.known = Some(read);
        }
    }

    /// Returns the calls that a prompt continues, oldest first.
    fn path(&self, i: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = self.recording.calls[i].before;
        while let Some(p) = at.filter(|p| path.len() <= self.recording.calls.len() && *p != i) {
            path.push(p);
            at = self.recording.calls[p].before;
        }
        path.reverse();
        path
    }

    /// Returns the position on a call's path (including the call) from which its model is shown
    /// reasoning.
    fn newest_turn(&self, i: usize, path: &[usize]) -> usize {
        let calls = &self.recording.calls;
        if model::keeps_thinking(&calls[i].model) {
            return 0;
        }
        let begins = |&c: &usize| calls[c].begins_turn;
        if begins(&i) { path.len() } else { path.iter().rposition(begins).unwrap_or(0) }
    }

    fn prefixes(&self, i: usize, system: System, ttl: Ttl, rule: &CacheRule) -> Vec<Prefix> {
        let calls = &self.recording.calls;
        let own = &calls[i];
        let path = self.path(i);
        let whole = cached_part(own, rule);
        let first = path.first().map_or(own, |&f| &calls[f]);
        let marks = rule.needs_breakpoints();
        let mark = |yes: bool| (yes && marks).then_some(ttl);
        let mut hash =
            mix(content_hash(own.conversation.as_bytes()), content_hash(own.model.as_bytes()));
        let mut size =
            system.known.unwrap_or(system.guess).min(whole).min(cached_part(first, rule));
        let newest_turn = self.newest_turn(i, &path);
        // A call of an earlier turn counted reasoning that is now dropped. The first prompt of the
        // next turn has no reasoning and contains this one.
        let mut sizes: Vec<u64> = path.iter().map(|&c| cached_part(&calls[c], rule)).collect();
        for n in (1..=newest_turn.min(path.len().saturating_sub(1))).rev() {
            sizes[n - 1] = sizes[n - 1].min(sizes[n]);
        }
        let mut all = vec![Prefix { hash, tokens: size, cache: mark(true), reply: false }];
        hash = mix(hash, first.boundary.map_or(0, |b| b as u64 + 1));
        for (n, &c) in path.iter().chain(std::iter::once(&i)).enumerate() {
            let call = &calls[c];
            let last = n == path.len();
            for block in 1..call.input_blocks.max(1) {
                all.push(Prefix {
                    hash: mix(mix(hash, call.key), block as u64),
                    tokens: size,
                    cache: None,
                    reply: false,
                });
            }
            hash = mix(hash, call.key);
            size = if last { whole } else { sizes[n].clamp(size, whole.max(size)) };
            all.push(Prefix { hash, tokens: size, cache: mark(last), reply: false });
            if last {
                break;
            }
            let left_out = if n < newest_turn { call.thoughts } else { 0 };
            for block in left_out..call.reply_blocks {
                let id = [c as u64, block as u64, left_out as u64].map(u64::to_le_bytes);
                hash = mix(hash, content_hash(&id.concat()));
                let ends = n + 1 == path.len() && block + 1 == call.reply_blocks;
                all.push(Prefix { hash, tokens: size, cache: mark(ends), reply: true });
            }
        }
        let total = own.counters.prompt();
        if total > size {
            all.push(Prefix { hash: mix(hash, 1), tokens: total, cache: None, reply: false });
        }
        all
    }
}

fn mix(a: u64, b: u64) -> u64 {
    content_hash(&[a.to_le_bytes(), b.to_le_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use ctxbench_scenarios::formats::Source;

    use super::*;

    /// Returns a recording of Claude Code in which each call continues the previous one.
    fn chain(calls: usize) -> Calls {
        let (mut text, mut parent) = (String::new(), "null".to_string());
        for i in 0..calls {
            let read = 100 * i;
            let _ = writeln!(
                text,
                r#"{{"type":"user","uuid":"u{i}","parentUuid":{parent},"sessionId":"s","message":{{"role":"user","content":"and {i}?"}}}}
{{"type":"assistant","uuid":"a{i}","parentUuid":"u{i}","sessionId":"s","message":{{"id":"m{i}","role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"yes"}}],"usage":{{"input_tokens":3,"cache_read_input_tokens":{read},"cache_creation_input_tokens":100,"output_tokens":2}}}}}}"#
            );
            parent = format!("\"a{i}\"");
        }
        let mut found = None;
        let source = Source::of_bytes(text.as_bytes(), "s.jsonl");
        super::super::read(&source, |read| found = Some(read.unwrap()));
        found.unwrap()
    }

    #[test]
    fn a_call_that_continues_too_many_others_is_not_compared() {
        let calls = chain(8);
        assert_eq!(depths(&calls), [0, 1, 2, 3, 4, 5, 6, 7]);
        let options = PredictOptions { lifetimes: false, ttl: Ttl::FiveMinutes };
        let all = predict(&calls, options, MAX_CALLS);
        assert!(all.iter().all(Option::is_some));
        let some = predict(&calls, options, 4);
        assert_eq!(some[..5], all[..5]);
        assert!(some[5..].iter().all(Option::is_none));
    }

    #[test]
    fn the_limit_is_told() {
        let mut calls = chain(3);
        // Copies of the last call, each continuing the previous one.
        for i in 3..MAX_CALLS + 3 {
            let mut next = calls.calls[2].clone();
            next.before = Some(i - 1);
            // Without a known rule, calls of this model are not predicted.
            next.model = "mystery".into();
            calls.calls.push(next);
        }
        let options = PredictOptions { lifetimes: false, ttl: Ttl::FiveMinutes };
        let v = super::super::validate(&calls, options);
        let told = "s.jsonl: 2 calls continue more than 5000 calls without a compaction, which no \
                    context window holds; they are not compared";
        assert!(v.warnings.iter().any(|w| w == told), "{:?}", v.warnings);
    }
}
