//! Needs without a literal: a reply takes up an old request, plan or decision in different terms.
//!
//! A *statement* is a sentence of the user, an item of a list in a tool's result, or a sentence of
//! the agent that does more than announce its next step. A later reply takes up a statement if one
//! of its sentences shares enough rare stems with the statement, and no text in between showed
//! these stems.

use std::sync::Arc;

use ctxbench_session::{FactKind, gist};
use rapidhash::{RapidHashMap as HashMap, RapidHashSet as HashSet};

use super::events::{Agent, By, FactEvent, FactReply, ShownText};
use super::said::ReplyPart;
use super::{GAP, Need};

/// Minimum number of common content stems. Two in common may be a coincidence.
const COMMON: usize = 3;

/// Minimum weight of the common stems as a share of the lighter sentence's weight.
const SHARE: f64 = 0.5;

/// Share of the common weight from which a recent sentence explains the match, so the older one is
/// not needed.
const RECENT: f64 = 0.7;

const NEWEST: usize = 60;

const PLAIN: usize = 4;

/// Number of a stem, in the order of first occurrence.
type Stem = u32;

struct Statement {
    kind: FactKind,
    origin: String,
    at: usize,
    stems: Box<[Stem]>,
}

/// Statements in an agent's window.
#[derive(Default)]
pub(super) struct StatementWindow {
    statements: Vec<Statement>,
    /// Indices of the statements with each stem, oldest first.
    holding: HashMap<Stem, Vec<usize>>,
    /// Number of the reply before each stem was last shown.
    shown: HashMap<Stem, u32>,
    /// Tasks that the agent wrote earlier. Writing them again is not a statement.
    tasks: HashSet<String>,
}

/// Stems of a session by number, with their weights.
#[derive(Default)]
pub(super) struct Vocabulary {
    numbers: HashMap<Arc<str>, Stem>,
    stems: Vec<Arc<str>>,
    /// ln((messages + 1) ÷ (messages with the stem + 1)), by the number of the stem.
    weights: Vec<f64>,
    /// Minimum weight of the common stems: ln(messages + 1), slightly more than one stem that
    /// occurs in a single message.
    least: f64,
}

impl Vocabulary {
    /// Builds the vocabulary of a session. Also returns the distinct stems of each event.
    pub(super) fn new(events: &[(Agent<'_>, FactEvent<'_>)]) -> (Vocabulary, Vec<Box<[Stem]>>) {
        let mut out = Vocabulary::default();
        let mut messages = 0;
        let mut stems = |(_, event): &(Agent<'_>, FactEvent<'_>)| {
            let texts = match event {
                FactEvent::ShownText(shown) => &shown.texts,
                FactEvent::Reply(_, reply) => &reply.texts,
                _ => return Box::default(),
            };
            messages += 1;
            out.stems_of(texts)
        };
        let stems: Vec<Box<[Stem]>> = events.iter().map(&mut stems).collect();
        let mut holding = vec![0_u32; out.stems.len()];
        stems.iter().flatten().for_each(|s| holding[*s as usize] += 1);
        out.least = f64::ln((messages + 1) as f64);
        out.weights = holding.iter().map(|h| out.least - f64::ln(f64::from(h + 1))).collect();
        (out, stems)
    }

    /// Returns the distinct stems of texts, sorted.
    fn stems_of(&mut self, texts: &[impl AsRef<str>]) -> Box<[Stem]> {
        let mut out = Vec::new();
        for text in texts {
            gist::for_each_stem(text.as_ref(), |stem| {
                out.push(self.numbers.get(stem).copied().unwrap_or_else(|| {
                    let (number, stem) = (self.stems.len() as Stem, Arc::<str>::from(stem));
                    self.numbers.insert(stem.clone(), number);
                    self.stems.push(stem);
                    number
                }));
            });
        }
        out.sort_unstable();
        out.dedup();
        out.into()
    }

    /// Returns the weight of a stem. A stem that occurs only in arguments of calls has the maximum
    /// weight.
    fn weight(&self, stem: Stem) -> f64 {
        self.weights.get(stem as usize).copied().unwrap_or(self.least)
    }

    fn weigh(&self, stems: &[Stem]) -> f64 {
        stems.iter().map(|s| self.weight(*s)).sum()
    }
}

impl StatementWindow {
    pub(super) fn note_shown(
        &mut self,
        shown: &ShownText<'_>,
        stems: &[Stem],
        vocabulary: &mut Vocabulary,
    ) {
        self.shown.extend(stems.iter().map(|stem| (*stem, shown.at as u32)));
        for text in &shown.texts {
            let said: Vec<&str> = match shown.by {
                // Texts in tags are notices of the program.
                By::User if text.trim_start().starts_with('<') => Vec::new(),
                // Code in a message is no sentence of the user.
                By::User => text.split("```").step_by(2).flat_map(sentences).collect(),
                By::Tool => items(text).collect(),
            };
            for sentence in said {
                self.state(FactKind::Constraint, shown.key, shown.at, sentence, vocabulary);
            }
        }
    }

    fn state(&mut self, kind: FactKind, origin: &str, at: usize, text: &str, v: &mut Vocabulary) {
        let stems = v.stems_of(&[text]);
        if stems.len() < COMMON {
            return;
        }
        let number = self.statements.len();
        stems.iter().for_each(|s| self.holding.entry(*s).or_default().push(number));
        self.statements.push(Statement { kind, origin: origin.to_string(), at, stems });
    }

    pub(super) fn reply(
        &mut self,
        at: usize,
        reply: &FactReply<'_>,
        mut pieces: Vec<(ReplyPart, String)>,
        vocabulary: &mut Vocabulary,
    ) -> Option<Need> {
        pieces.retain(|(piece, text)| *piece != ReplyPart::Task || self.tasks.insert(text.clone()));
        let mut best: Option<(f64, usize, Vec<Stem>)> = None;
        for (piece, text) in &pieces {
            for line in lines(*piece, text) {
                let found = self.taken_up(at, line, *piece, vocabulary);
                if let Some(found) = found.filter(|f| best.as_ref().is_none_or(|b| f.0 > b.0)) {
                    best = Some(found);
                }
            }
        }
        for (piece, text) in pieces.iter().filter(|(piece, _)| is_said(*piece)) {
            for sentence in lines(*piece, text).filter(|s| !announces(s)) {
                self.state(FactKind::Decision, reply.id, at, sentence, vocabulary);
            }
        }
        let (_, statement, common) = best?;
        let statement = &self.statements[statement];
        let words = common.iter().map(|s| vocabulary.stems[*s as usize].to_string()).collect();
        let gap = at - statement.at;
        Some(Need::words(statement.kind, words, &statement.origin, reply.id, gap))
    }

    /// Returns the statement that a line takes up, as (weight of the common stems, index of the
    /// statement, common stems).
    fn taken_up(
        &self,
        at: usize,
        line: &str,
        piece: ReplyPart,
        vocabulary: &mut Vocabulary,
    ) -> Option<(f64, usize, Vec<Stem>)> {
        let stems = vocabulary.stems_of(&[line]);
        let is_fresh = |s: &Stem| self.shown.get(s).is_none_or(|shown| at - *shown as usize >= GAP);
        let fresh: Vec<Stem> = stems.iter().copied().filter(is_fresh).collect();
        if fresh.len() < COMMON {
            return None;
        }
        let mut common: HashMap<usize, Vec<Stem>> = HashMap::default();
        let mut recent: HashMap<usize, f64> = HashMap::default();
        for stem in fresh {
            for &i in self.holding.get(&stem).into_iter().flatten().rev().take(NEWEST) {
                if at - self.statements[i].at < GAP {
                    *recent.entry(i).or_default() += vocabulary.weight(stem);
                } else {
                    common.entry(i).or_default().push(stem);
                }
            }
        }
        let recent = recent.into_values().fold(0.0, f64::max);
        let own = vocabulary.weigh(&stems);
        let fits = |(i, common): (usize, Vec<Stem>)| {
            let statement = &self.statements[i];
            let weight = vocabulary.weigh(&common);
            let lighter = own.min(vocabulary.weigh(&statement.stems));
            let by_agent = statement.kind == FactKind::Decision;
            let fits = common.len() >= COMMON
                && weight >= vocabulary.least
                && weight >= SHARE * lighter
                // Code that repeats the agent's own code does not take up its statements.
                && !(by_agent && (piece == ReplyPart::New || recent >= RECENT * weight));
            fits.then_some((weight, i, common))
        };
        common.into_iter().filter_map(fits).max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
    }
}

fn is_said(piece: ReplyPart) -> bool {
    matches!(piece, ReplyPart::Prose | ReplyPart::Task)
}

/// Returns the lines of a piece that may take up a statement: sentences of prose, and comments,
/// titles and texts in new code.
fn lines(piece: ReplyPart, text: &str) -> impl Iterator<Item = &str> {
    let prose = is_said(piece).then(|| sentences(text));
    let code = (piece == ReplyPart::New).then(|| text.lines().filter(|l| plain_words(l) >= PLAIN));
    prose.into_iter().flatten().chain(code.into_iter().flatten())
}

/// Returns the sentences with at least [`PLAIN`] plain terms, without rows of tables.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|l| !l.contains(['|', '<', '{', '&']))
        .flat_map(|s| s.split_inclusive(". "))
        .flat_map(|s| s.split_inclusive("! "))
        .flat_map(|s| s.split_inclusive("? "))
        .flat_map(|s| s.split_inclusive("; "))
        .filter(|s| plain_words(s) >= PLAIN)
}

/// Returns the items of lists in a text, without code and numbered lines of files.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(item)
        .filter(|i| plain_words(i) >= PLAIN && !i.contains(['{', '}', ';', '=', '<', '>', '|']))
}

fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let bullet = ["- ", "* ", "• ", "[ ] ", "[x] "].iter().find_map(|b| line.strip_prefix(b));
    bullet.or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = rest.strip_prefix(['.', ')']).filter(|_| rest.len() < line.len())?;
        rest.strip_prefix(' ')
    })
}

/// Counts the terms that consist of at least two letters and nothing else.
fn plain_words(text: &str) -> usize {
    text.split(|c: char| c.is_whitespace() || "\"'`,:;.!?()[]*-".contains(c))
        .filter(|w| w.chars().count() >= 2 && w.chars().all(char::is_alphabetic))
        .count()
}

/// Returns whether a sentence only announces the actions of the same reply: "Let me read …", "Good.
/// Now …".
fn announces(sentence: &str) -> bool {
    let letters = |s: &str| s.trim_start_matches(|c: char| !c.is_alphabetic()).to_lowercase();
    let mut start = letters(sentence);
    for praise in ["good", "perfect", "great", "okay", "ok"] {
        if let Some(rest) = start.strip_prefix(praise) {
            start = letters(rest);
            break;
        }
    }
    let first = start.split(|c: char| !c.is_alphabetic()).next();
    first == Some("now")
        || ["let me", "let's", "let’s", "i'll now"].iter().any(|a| start.starts_with(a))
}
