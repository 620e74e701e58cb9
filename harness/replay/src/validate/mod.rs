//! Compares our cache model and token counts with the provider's counters in a recording: the calls
//! (`calls.rs`), the predicted cache reads (`predict.rs`), causes of unserved prefixes
//! (`cause.rs`), and our counts (`bias.rs`).

mod bias;
mod calls;
mod cause;
mod predict;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use ctxbench_core::{Usage, model};
use ctxbench_scenarios::formats::Source;
use ctxbench_scenarios::{InputError, formats};
use serde::Serialize;

use ctxbench_util::plural::pluralize;

pub use bias::Bias;
pub use calls::{Boundary, Calls, Counters, ModelCall, ProviderRoute};
pub use cause::{Cause, Miss};
pub use predict::{PredictOptions, Predicted};

/// Counters of a call and their prediction, tokens.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallLine {
    /// Line number, from 1.
    pub line: usize,
    pub conversation: String,
    pub model: String,
    /// Input neither read nor written, by the counters.
    pub input: u64,
    /// Tokens read from the cache, by the counters.
    pub read: u64,
    /// Tokens written to the cache, by the counters.
    pub write: u64,
    /// Predicted tokens read. `None` if the model has no known cache rule.
    pub predicted_read: Option<u64>,
    /// Predicted tokens written.
    pub predicted_write: Option<u64>,
    /// True if the call follows another one of the same conversation and model.
    pub compared: bool,
    /// True if reads and writes are predicted exactly.
    pub exact: bool,
}

/// Input cost of the compared calls with a known price, USD.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct InputCost {
    pub counters_usd: f64,
    pub predicted_usd: f64,
    /// Number of calls without known prices.
    pub unpriced_calls: usize,
}

/// Misses of one cause.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CauseTotal {
    pub misses: usize,
    /// Tokens that could have been read from the cache.
    pub tokens: u64,
    /// Their cost above a read, USD; without calls of models without a known price.
    pub usd: f64,
}

impl CauseTotal {
    fn add(&mut self, other: CauseTotal) {
        self.misses += other.misses;
        self.tokens += other.tokens;
        self.usd += other.usd;
    }
}

/// Maximum number of steps between a hit and its prediction that counts as near. Providers that
/// cache in steps hit a few steps too early.
const NEAR_STEPS: u64 = 4;

/// Result of validating a recording.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Validated {
    /// Path as the user named it.
    pub file: String,
    /// Name of the recording format.
    pub format: String,
    /// Route of the calls: `direct`, `gateway` or `unknown`.
    pub route: String,
    pub route_evidence: String,
    /// Number of calls with counters.
    pub calls: usize,
    /// Number of calls that follow one of the same conversation and model.
    pub compared: usize,
    /// Number of compared calls that are predicted exactly.
    pub exact: usize,
    /// Number of calls with `read = read + write of the previous call`.
    pub law: usize,
    /// Number of compared calls with hits at most four of the provider's steps (OpenAI: 512 tokens)
    /// away from the prediction, including the exact ones.
    pub near: usize,
    /// Number of compared calls that are right except for the size of the system part, which was
    /// not yet known.
    pub size_unknown: usize,
    /// Predicted tokens read by the compared calls.
    pub read_predicted: u64,
    /// Tokens read by the compared calls, by the counters.
    pub read_actual: u64,
    /// Predicted tokens written by the compared calls. `None` if writes have no price and are not
    /// reported.
    pub write_predicted: Option<u64>,
    /// Tokens written by the compared calls, by the counters.
    pub write_actual: Option<u64>,
    pub causes: BTreeMap<Cause, CauseTotal>,
    /// All misses in file order.
    pub misses: Vec<Miss>,
    /// Bias of our token counts.
    pub bias: Bias,
    /// Input cost of the compared calls.
    pub cost: InputCost,
    /// All calls with counters.
    pub lines: Vec<CallLine>,
    pub warnings: Vec<String>,
}

/// Reads the calls of a recording of any known format, session by session.
pub fn read(source: &Source<'_>, mut sink: impl FnMut(Result<Calls, InputError>)) {
    let file = source.name();
    let head = match source.head() {
        Ok(head) => head,
        Err(e) => return sink(Err(e)),
    };
    let Some(format) = formats::detect_head(&head) else {
        let is_file = head.entries.is_none() && head.members.is_none();
        let what = match is_file && head.text.trim().is_empty() {
            true => "the file is empty",
            false => "not a format with known counters",
        };
        let expected = "a recording in one of the formats that `ctxbench validate --help` lists";
        return sink(Err(calls::wrong(file, 1, what.into(), expected)));
    };
    format.recordings(source, &mut |recording| {
        sink(recording.and_then(|recording| Calls::from_recording(format.name, &recording, file)));
        ControlFlow::Continue(())
    });
}

/// Compares predictions with counters.
pub fn validate(r: &Calls, options: PredictOptions) -> Validated {
    let file = &r.name;
    let predicted = predict::predict(r, options, predict::MAX_CALLS);
    let previous = r.previous();
    let (route, route_evidence) = match &r.route {
        ProviderRoute::Direct(why) => ("direct", why),
        ProviderRoute::Gateway(why) => ("gateway", why),
        ProviderRoute::Unknown(why) => ("unknown", why),
    };
    let mut v = Validated {
        file: file.clone(),
        format: r.format.into(),
        route: route.into(),
        route_evidence: route_evidence.clone(),
        calls: r.calls.len(),
        bias: bias::bias(r),
        warnings: r.warnings.clone(),
        ..Validated::default()
    };
    let unknown: BTreeSet<&str> = r
        .calls
        .iter()
        .filter(|c| predict::rule_of(&c.model).is_none())
        .map(|c| c.model.as_str())
        .collect();
    v.warnings.extend(unknown.iter().map(|m| {
        format!("{file}: no cache rule is known for model {m:?}; its calls are not compared")
    }));
    let evidence = cause::Evidence::new(r, options);
    let mut guessed = BTreeSet::new();
    let deep = predict::depths(r).into_iter().filter(|d| *d > predict::MAX_CALLS).count();
    if deep > 0 {
        v.warnings.push(format!(
            "{file}: {} continue more than {} calls without a compaction, which no context window \
             holds; they are not compared",
            pluralize(deep, "call"),
            predict::MAX_CALLS
        ));
    }
    for (i, call) in r.calls.iter().enumerate() {
        let c = &call.counters;
        let same_model = previous[i].is_some_and(|p| r.calls[p].model == call.model);
        let mut line = CallLine {
            line: call.line,
            conversation: call.conversation.clone(),
            model: call.model.clone(),
            input: c.input,
            read: c.read,
            write: c.write,
            ..CallLine::default()
        };
        if let (Some(p), Some((rule, known))) = (predicted[i], predict::rule_of(&call.model)) {
            if !known && guessed.insert(&call.model) {
                v.warnings.push(format!(
                    "{file}: model {:?} is not in the catalogue; the cache \
                    rule of its family is used",
                    call.model
                ));
            }
            let write = rule.write_fee.then_some(p.write);
            (line.predicted_read, line.predicted_write) = (Some(p.read), write);
            line.exact = p.read == c.read && write.is_none_or(|w| w == c.write);
            if let Some(q) = previous[i] {
                if same_model {
                    line.compared = true;
                    v.compared += 1;
                    v.cost.add(call, &p);
                    v.exact += usize::from(line.exact);
                    v.near += usize::from(
                        line.exact
                            || (c.read > 0
                                && p.read.abs_diff(c.read) <= NEAR_STEPS * rule.step
                                && rule.step > 1),
                    );
                    v.size_unknown += usize::from(!line.exact && p.size_unknown && c.read > 0);
                    let left = predict::cached_part(&r.calls[q], &rule);
                    v.law += usize::from(c.read == left - left % rule.step);
                    v.read_predicted += p.read;
                    v.read_actual += c.read;
                    if let Some(w) = write {
                        *v.write_predicted.get_or_insert(0) += w;
                        *v.write_actual.get_or_insert(0) += c.write;
                    }
                }
                if let Some(m) = evidence.miss(i, q, p, line.exact) {
                    let usd = m.usd.unwrap_or_default();
                    let one = CauseTotal { misses: 1, tokens: m.missed, usd };
                    v.causes.entry(m.cause).or_default().add(one);
                    v.misses.push(m);
                }
            }
        }
        v.lines.push(line);
    }
    if matches!(r.route, ProviderRoute::Unknown(_)) {
        judge_by_pattern(&mut v);
    }
    v
}

/// Minimum number of calls without a reason that form a pattern, and their minimum share of the
/// compared calls.
const PATTERN: (usize, f64) = (3, 0.1);

/// Classifies the route by the counters if no ids identify it. With a single cache, recent writes
/// are read. With several caches at one address, this happens only by chance.
fn judge_by_pattern(v: &mut Validated) {
    let unexplained = v.causes.get(&Cause::Unexplained).copied().unwrap_or_default();
    let odd = unexplained.misses;
    if odd < PATTERN.0 || (odd as f64) < PATTERN.1 * v.compared as f64 {
        return;
    }
    v.route = "gateway".into();
    v.route_evidence += &format!(
        "; and {odd} of {} compared calls were served nothing or an older prefix without a reason \
         in the file, as by several caches behind one address",
        v.compared
    );
    for m in v.misses.iter_mut().filter(|m| m.cause == Cause::Unexplained) {
        m.cause = Cause::Gateway;
    }
    v.causes.remove(&Cause::Unexplained);
    v.causes.entry(Cause::Gateway).or_default().add(unexplained);
}

/// Returns input tokens by kind, with the lifetime of the writes in counters.
fn usage(counters: &Counters, input: u64, read: u64, write: u64) -> Usage {
    let long = counters.is_long() == Some(true);
    Usage {
        input,
        cache_read: read,
        cache_write: if long { 0 } else { write },
        cache_write_1h: if long { write } else { 0 },
        ..Usage::default()
    }
}

impl InputCost {
    fn add(&mut self, call: &ModelCall, p: &Predicted) {
        let Some(model) = model::find_recorded(&call.model) else {
            self.unpriced_calls += 1;
            return;
        };
        let c = &call.counters;
        let usd = |input, read, write| model::cost(model, &usage(c, input, read, write)).total();
        self.counters_usd += usd(c.input, c.read, c.write);
        self.predicted_usd += usd(p.input, p.read, p.write);
    }
}

impl Validated {
    /// Returns whether the recording counts for `--min`. Gateways are reported separately.
    pub fn counts(&self) -> bool {
        self.route != "gateway"
    }
}
