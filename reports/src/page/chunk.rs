//! A session's own part of the page: the events of each run, with texts. It is compressed, and the
//! script decompresses it when a reader opens the session.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ctxbench_core::request::Purpose;
use ctxbench_util::cut::cut;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde_json::{Value, json};

use super::overview::Overview;
use crate::fmt;
use crate::record::{CompactionRecord, FactMove, FactRecord, RequestRecord, RunRecord};
use crate::view::{self, ReportBlock};

/// Level of detail of a session in the page. Texts are dropped before figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Detail {
    /// All figures and texts of the results.
    Whole,
    /// Texts cut to [`SHORT`] characters.
    Short,
    NoTexts,
    /// Without texts, and with at most [`POINTS`] requests per run.
    Thin,
}

impl Detail {
    /// All levels, the most detailed first.
    pub(super) const ALL: [Detail; 4] =
        [Detail::Whole, Detail::Short, Detail::NoTexts, Detail::Thin];
}

/// Maximum length of a text of a shortened session, characters.
const SHORT: usize = 240;

/// Maximum number of requests of a run in a reduced curve.
const POINTS: usize = 150;

/// Answered requests of the main conversation; growing values are stored as differences.
#[derive(Default, Serialize)]
struct Series {
    step: Vec<i64>,
    context: Vec<i64>,
    read: Vec<u64>,
    write: Vec<u64>,
    micro_usd: Vec<i64>,
}

/// Distinct texts by index. Strategies on one session share most texts.
struct Texts {
    part: Detail,
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl Texts {
    fn new(part: Detail) -> Texts {
        Texts { part, all: vec![String::new()], places: HashMap::from([(String::new(), 0)]) }
    }

    fn number(&mut self, text: &str) -> usize {
        let text = match self.part {
            Detail::Whole => text.to_string(),
            Detail::Short => cut(text, SHORT),
            Detail::NoTexts | Detail::Thin => return 0,
        };
        let next = self.all.len();
        let place = *self.places.entry(text.clone()).or_insert(next);
        if place == next {
            self.all.push(text);
        }
        place
    }
}

/// Session as JSON, deflated with a zlib header, in base64; deterministic.
pub(super) fn pack(block: &ReportBlock<'_>, overview: &Overview<'_>, part: Detail) -> String {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    let json = json(block, overview, part);
    packed.write_all(json.as_bytes()).expect("a vector takes every byte");
    BASE64_STANDARD.encode(packed.finish().expect("a vector takes every byte"))
}

fn json(block: &ReportBlock<'_>, overview: &Overview<'_>, part: Detail) -> String {
    let mut texts = Texts::new(part);
    let (facts, places) = facts(block, &mut texts);
    let run = |r: &&RunRecord| run(r, overview.strategy_index(r), &places, &mut texts);
    let runs: Vec<Value> = block.runs.iter().map(run).collect();
    json!({ "left": part, "facts": facts, "runs": runs, "texts": texts.all }).to_string()
}

/// Facts of a session, with their indices by id.
fn facts<'a>(block: &ReportBlock<'a>, texts: &mut Texts) -> (Vec<Value>, BTreeMap<&'a str, usize>) {
    let (mut all, mut places) = (Vec::new(), BTreeMap::new());
    for r in &block.runs {
        let lives = r.lives_by_fact();
        for f in &r.facts {
            if places.contains_key(f.fact.as_str()) {
                continue;
            }
            places.insert(f.fact.as_str(), all.len());
            let life = lives.get(&*f.fact);
            all.push(json!({
                "id": fmt::one_line(&f.fact),
                "kind": f.kind,
                "tokens": life.map_or(&[][..], |l| &l.tokens),
                "text": texts.number(life.map_or("", |l| &l.text)),
            }));
        }
    }
    (all, places)
}

/// Events of a run; `strategy` is its index in the overview.
fn run(r: &RunRecord, strategy: usize, facts: &BTreeMap<&str, usize>, texts: &mut Texts) -> Value {
    // Requests are indexed by their number.
    let step = |request: u64| {
        let last = || r.requests.iter().rfind(|q| q.agent.is_none());
        let at = r.requests.get(request as usize).filter(|q| q.agent.is_none());
        at.or_else(last).map_or(0, |q| q.step)
    };
    let mut moves = Vec::new();
    for life in &r.lives {
        let Some(fact) = facts.get(life.fact.as_str()) else { continue };
        moves.extend(life.moves.iter().map(|m| moved(m, *fact, texts)));
    }
    let need = |f: &FactRecord| {
        json!({
            "fact": facts.get(f.fact.as_str()).copied().unwrap_or_default(),
            "need": f.need,
            // None if the run did not reach it.
            "step": f.request.map(step),
            "place": f.place,
            "counts": f.counts,
            "undelivered": f.undelivered,
            // Before the need.
            "compactions": f.compactions_before,
        })
    };
    let compaction = |c: &CompactionRecord| compaction(c, step(c.before_request), texts);
    let compactions: Vec<Value> = r.compactions.iter().map(compaction).collect();
    json!({
        "s": strategy,
        "version": r.strategy.version,
        "settings": r.strategy.settings.iter().collect::<Vec<_>>(),
        "notes": view::notes(r),
        "q": series(r, texts.part),
        "moves": moves,
        "needs": r.facts.iter().map(need).collect::<Vec<_>>(),
        "compactions": compactions,
    })
}

fn series(r: &RunRecord, part: Detail) -> Series {
    let own: Vec<&RequestRecord> = r.requests.iter().filter(|q| q.agent.is_none()).collect();
    let every = match part {
        Detail::Thin => own.len().div_ceil(POINTS).max(1),
        _ => 1,
    };
    let mut out = Series::default();
    let (mut step, mut context, mut micro_usd, mut usd) = (0, 0, 0, 0.0);
    for (i, q) in own.iter().enumerate() {
        usd += q.cost_usd;
        // Keep the last request, because it has the whole sum.
        if i % every != 0 && i + 1 != own.len() || q.purpose != Purpose::Sample {
            continue;
        }
        let grow = |all: &mut Vec<i64>, last: &mut i64, now: i64| {
            all.push(now - *last);
            *last = now;
        };
        grow(&mut out.step, &mut step, q.step as i64);
        grow(&mut out.context, &mut context, q.context_tokens as i64);
        grow(&mut out.micro_usd, &mut micro_usd, (usd * 1e6).round() as i64);
        out.read.push(q.cache_read);
        out.write.push(q.cache_write);
    }
    out
}

/// A move as in the results, with numbers in place of the fact and of the texts.
fn moved(m: &FactMove, fact: usize, texts: &mut Texts) -> Value {
    let mut value = json!(m);
    value["fact"] = fact.into();
    value["before"] = texts.number(&m.before).into();
    value["after"] = texts.number(&m.after).into();
    value
}

/// A compaction as in the results, with its step, and with the number of a text in place of the text.
fn compaction(c: &CompactionRecord, step: u64, texts: &mut Texts) -> Value {
    let mut c = CompactionRecord { mechanism: fmt::one_line(&c.mechanism), ..c.clone() };
    for excerpt in c.went.iter_mut().chain(&mut c.came).flat_map(|p| &mut p.texts) {
        excerpt.text = texts.number(&excerpt.text).to_string();
    }
    let mut value = json!(c);
    value["step"] = step.into();
    value
}
