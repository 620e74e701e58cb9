//! A session's own part of the page: the events of each run, with texts. It is compressed, and the
//! script decompresses it when a reader opens the session.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ctxbench_core::request::Purpose;
use ctxbench_session::fact::FactKind;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde_json::Value;

use super::overview::Overview;
use crate::fmt;
use crate::record::{CompactionRecord, FactPlace, FactRecord, RequestRecord, RunRecord};
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

#[derive(Serialize)]
struct Chunk<'a> {
    left: Detail,
    facts: Vec<Fact<'a>>,
    runs: Vec<RunChunk<'a>>,
    /// Distinct texts; index 0 is the empty text.
    texts: &'a [String],
}

#[derive(Serialize)]
struct Fact<'a> {
    id: String,
    kind: FactKind,
    tokens: &'a [String],
    text: usize,
}

#[derive(Serialize)]
struct RunChunk<'a> {
    /// Index of the strategy in the overview.
    s: usize,
    version: &'a str,
    settings: Vec<(&'a String, &'a String)>,
    notes: Vec<String>,
    q: Series,
    compactions: Vec<Value>,
    moves: Vec<Move>,
    needs: Vec<NeedChunk<'a>>,
}

/// Answered requests of the main conversation; growing values are stored as differences.
#[derive(Default, Serialize)]
struct Series {
    step: Vec<i64>,
    context: Vec<i64>,
    read: Vec<u64>,
    write: Vec<u64>,
    micro_usd: Vec<i64>,
}

#[derive(Serialize)]
struct Move {
    fact: usize,
    compaction: u64,
    from: FactPlace,
    to: FactPlace,
    before: usize,
    after: usize,
}

#[derive(Serialize)]
struct NeedChunk<'a> {
    fact: usize,
    need: &'a str,
    /// Step of the request at the need; `None` = the run did not reach it.
    step: Option<u64>,
    place: FactPlace,
    counts: bool,
    undelivered: bool,
    /// Number of compactions before the need.
    compactions: u64,
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
            Detail::Short if text.chars().count() > SHORT => {
                text.chars().take(SHORT - 1).chain(['…']).collect()
            }
            Detail::Short => text.to_string(),
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
    let runs: Vec<RunChunk<'_>> = block
        .runs
        .iter()
        .map(|r| run(r, overview.strategy_index(r), &places, &mut texts))
        .collect();
    let chunk = Chunk { left: part, facts, runs, texts: &texts.all };
    serde_json::to_string(&chunk).expect("plain data always serialises")
}

/// Facts of a session, with their indices by id.
fn facts<'a>(
    block: &ReportBlock<'a>,
    texts: &mut Texts,
) -> (Vec<Fact<'a>>, BTreeMap<&'a str, usize>) {
    let (mut all, mut places) = (Vec::new(), BTreeMap::new());
    for r in &block.runs {
        for f in &r.facts {
            if places.contains_key(f.fact.as_str()) {
                continue;
            }
            places.insert(f.fact.as_str(), all.len());
            let life = r.lives.iter().find(|l| l.fact == f.fact);
            all.push(Fact {
                id: fmt::one_line(&f.fact),
                kind: f.kind,
                tokens: life.map_or(&[], |l| &l.tokens),
                text: texts.number(life.map_or("", |l| &l.text)),
            });
        }
    }
    (all, places)
}

fn run<'a>(
    r: &'a RunRecord,
    s: usize,
    facts: &BTreeMap<&str, usize>,
    texts: &mut Texts,
) -> RunChunk<'a> {
    // Requests are indexed by their number.
    let step = |request: u64| {
        let last = || r.requests.iter().rfind(|q| q.agent.is_none());
        let at = r.requests.get(request as usize).filter(|q| q.agent.is_none());
        at.or_else(last).map_or(0, |q| q.step)
    };
    let moves = r.lives.iter().filter_map(|l| Some((*facts.get(l.fact.as_str())?, &l.moves)));
    RunChunk {
        s,
        version: &r.strategy.version,
        settings: r.strategy.settings.iter().collect(),
        notes: view::notes(r),
        q: series(r, texts.part),
        moves: moves
            .flat_map(|(fact, moves)| moves.iter().map(move |m| (fact, m)))
            .map(|(fact, m)| Move {
                fact,
                compaction: m.compaction,
                from: m.from,
                to: m.to,
                before: texts.number(&m.before),
                after: texts.number(&m.after),
            })
            .collect(),
        needs: r
            .facts
            .iter()
            .map(|f: &FactRecord| NeedChunk {
                fact: facts.get(f.fact.as_str()).copied().unwrap_or_default(),
                need: &f.need,
                step: f.request.map(step),
                place: f.place,
                counts: f.counts,
                undelivered: f.undelivered,
                compactions: f.compactions_before,
            })
            .collect(),
        compactions: r
            .compactions
            .iter()
            .map(|c| compaction(c, step(c.before_request), texts))
            .collect(),
    }
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

/// A compaction as in the results, with its step, and with the number of a text in place of the text.
fn compaction(c: &CompactionRecord, step: u64, texts: &mut Texts) -> Value {
    let mut c = CompactionRecord { mechanism: fmt::one_line(&c.mechanism), ..c.clone() };
    for excerpt in c.went.iter_mut().chain(&mut c.came).flat_map(|p| &mut p.texts) {
        excerpt.text = texts.number(&excerpt.text).to_string();
    }
    let mut value = serde_json::to_value(c).expect("plain data always serialises");
    value["step"] = step.into();
    value
}
