//! Conversion of a conversation's segments to weighted candidates for the summary.

use std::borrow::Cow;
use std::collections::HashMap;

use super::ask::{Instruction, Quote};
use super::cues::{self, Cue, Cues};
use super::outputs::best_lines;
use super::read::{Author, PromptSegment};
use super::sentences::{Sentence, clip, fold_key, guess_tokens, pieces};
use super::tools::ToolDigest;
use super::topic::{self, Topic};

/// Candidate for the summary.
#[derive(Clone, Debug)]
pub(super) struct SummaryCandidate<'a> {
    pub text: Cow<'a, str>,
    pub topic: Topic,
    /// Weight of the candidate.
    pub score: f32,
    /// Position in the conversation.
    pub order: u64,
    /// Estimated tokens, including the list mark.
    pub tokens: u32,
    /// True if the user wrote it.
    pub user: bool,
    /// True if the end was cut off.
    pub cut: bool,
    /// True if the text is printed unchanged.
    pub raw: bool,
    /// True if the user asked the summary to focus on it.
    pub asked: bool,
}

/// Prefix of the user's text in a summary without headings.
pub(super) const USER: &str = "User: ";

/// Minimum weight of a candidate. Lighter ones are left out even if there is room.
const MIN_SIMILARITY: f32 = 0.7;
/// Length from which a user message counts as pasted text, bytes. Only its first and last sentences
/// are the user's own.
const PASTED: usize = 4_000;

/// Collects the candidates of a conversation.
pub(super) fn collect<'a>(
    segments: &[PromptSegment<'a>],
    ask: &Instruction,
) -> Vec<SummaryCandidate<'a>> {
    let last = |who: Author| segments.iter().rposition(|s| s.who == who);
    let first_user = segments.iter().position(|s| s.who == Author::User);
    let mut c = Collector {
        ask,
        units: Vec::new(),
        seen: HashMap::new(),
        tools: ToolDigest::default(),
        many_messages: ask
            .headings
            .iter()
            .any(|h| topic::of_heading(&h.name) == Some(Topic::Message)),
    };
    for (n, s) in segments.iter().enumerate() {
        let place = Origin {
            order: (n as u64) << 24,
            // 0 = oldest, 1 = newest.
            fresh: if segments.len() > 1 { n as f32 / (segments.len() - 1) as f32 } else { 1.0 }
                * ask.recency,
            first: Some(n) == first_user,
            last: Some(n) == last(s.who),
        };
        match s.who {
            Author::User => c.user(s.text, &place),
            Author::Context => c.context(s.text, &place),
            Author::Assistant => c.assistant(s.text, 1.0, &place),
            Author::Reasoning => c.assistant(s.text, 0.5, &place),
            Author::Summary => c.summary(s.text, &place),
            Author::Call => c.tools.call(s.tool, s.text, place.order, place.fresh),
            Author::Output => c.output(s.text, s.failed, &place),
        }
    }
    let tools = std::mem::take(&mut c.tools);
    for (text, topic, score, order) in tools.finish() {
        c.push(Cow::Owned(text), topic, score, order, false, Cues::single(Cue::Path));
    }
    c.units
}

struct Origin {
    order: u64,
    fresh: f32,
    first: bool,
    last: bool,
}

struct Collector<'a, 'k> {
    ask: &'k Instruction,
    units: Vec<SummaryCandidate<'a>>,
    /// Candidates by the key of their text, to avoid repetition.
    seen: HashMap<u64, usize>,
    tools: ToolDigest<'a>,
    many_messages: bool,
}

impl<'a> Collector<'a, '_> {
    fn push(
        &mut self,
        text: Cow<'a, str>,
        topic: Topic,
        mut score: f32,
        order: u64,
        user: bool,
        cues: Cues,
    ) {
        let key = fold_key(&text);
        if self.ask.own.contains(&key) {
            return;
        }
        let is_topic = self.ask.topics.contains(&topic);
        let asked = is_topic
            || self.ask.topics.iter().any(|t| t.is_in(cues))
            || !self.ask.focus.is_empty() && self.in_focus(&text);
        // Candidates with only this topic come before those that also have others.
        score += if is_topic { 3.0 } else { 0.0 } + if asked { 1.5 } else { 0.0 };
        if score < MIN_SIMILARITY {
            return;
        }
        let literal = cues.has(Cue::Path)
            || cues.has(Cue::Name)
            || cues.has(Cue::Number)
            || cues.has(Cue::Error);
        let most = match self.ask.quote {
            Quote::All => 1_200,
            Quote::Literals if literal => 600,
            _ if user => 320,
            _ => 240,
        };
        let text = match text {
            Cow::Borrowed(t) => Cow::Borrowed(clip(t, most)),
            Cow::Owned(t) => Cow::Owned(clip(&t, most).to_string()),
        };
        let cut = fold_key(&text) != key;
        let tokens = guess_tokens(&text) + 3;
        let unit =
            SummaryCandidate { text, topic, score, order, tokens, user, cut, raw: false, asked };
        match self.seen.get(&key) {
            // Position of the first mention, and weight of the strongest.
            Some(&i) => {
                let old = &mut self.units[i];
                if score > old.score {
                    *old = SummaryCandidate { order: old.order, user: old.user || user, ..unit };
                }
            }
            None => {
                self.seen.insert(key, self.units.len());
                self.units.push(unit);
            }
        }
    }

    fn in_focus(&self, text: &str) -> bool {
        let low = text.to_lowercase();
        let mut words =
            low.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.')));
        words.any(|w| self.ask.focus.contains(w.trim_matches('.')))
    }

    fn user(&mut self, text: &'a str, place: &Origin) {
        let mut parts: Vec<Sentence<'a>> = Vec::new();
        pieces(text, |p| parts.push(p));
        let pasted = text.len() > PASTED;
        let count = parts.len();
        for (k, p) in parts.into_iter().enumerate() {
            let order = place.order + k as u64;
            if pasted && (12..count.saturating_sub(4)).contains(&k) {
                continue;
            }
            if (count > 12 && is_pasted(&p)) || is_courtesy(p.text) {
                continue;
            }
            let c = cues::parse(p.text);
            let mut score = 3.0 + literals(c, 0.4) + 0.8 * place.fresh;
            score += if place.first && k < 4 { 1.5 } else { 0.0 };
            score += if place.last { 1.2 } else { 0.0 };
            score += if c.has(Cue::Rule) { 1.5 } else { 0.0 };
            score += if c.has(Cue::Question) { 0.4 } else { 0.0 };
            score -= if p.code { 1.6 } else { 0.0 };
            score -= if p.text.is_ascii() && p.text.len() < 16 { 2.0 } else { 0.0 };
            let topic = match () {
                _ if c.has(Cue::Rule) && !c.has(Cue::Question) => Topic::Constraint,
                _ if self.many_messages && !place.first && !place.last => Topic::Message,
                _ => Topic::Request,
            };
            self.push(Cow::Borrowed(p.text), topic, score, order, true, c);
        }
        if count > 12 {
            self.output(text, false, place);
        }
    }

    fn context(&mut self, text: &'a str, place: &Origin) {
        let mut k = 0;
        pieces(text, |p| {
            let c = cues::parse(p.text);
            // Products restore these files after a compaction, so they need little room in the
            // summary.
            let score = if c.has(Cue::Rule) && !p.code { 0.9 } else { 0.2 };
            k += 1;
            self.push(Cow::Borrowed(p.text), Topic::Constraint, score, place.order + k, false, c);
        });
    }

    fn assistant(&mut self, text: &'a str, weight: f32, place: &Origin) {
        let mut k = 0;
        pieces(text, |p| {
            k += 1;
            if p.heading || is_courtesy(p.text) {
                return;
            }
            let c = cues::parse(p.text);
            let mut score = 0.9 + literals(c, 0.35) + cue_weight(c) + 0.8 * place.fresh;
            score += if place.last { 0.8 } else { 0.0 };
            score -= if c.has(Cue::Filler) && !c.has(Cue::Decision) && !c.has(Cue::Done) {
                0.5
            } else {
                0.0
            };
            score -= if p.code { 1.6 } else { 0.0 };
            self.push(
                Cow::Borrowed(p.text),
                model_topic(c, place.last),
                score * weight,
                place.order + k,
                false,
                c,
            );
        });
    }

    /// Takes over an earlier summary with slightly less weight than new text of the user. Text that
    /// is summarised repeatedly fades.
    fn summary(&mut self, text: &'a str, place: &Origin) {
        let text = match text.split_once("</analysis>") {
            Some((_, rest)) => rest,
            None => text,
        };
        let marked = text.lines().filter(|l| l.starts_with("- ") || l.starts_with("* ")).count();
        let plain = text.lines().filter(|l| !l.trim().is_empty()).count()
            - marked.min(text.lines().count());
        let (mut topic, mut begun, mut k) = (None, marked == 0, 0);
        pieces(text, |p| {
            k += 1;
            begun |= p.heading || p.listed;
            if p.heading {
                topic = topic::of_heading(p.text);
            }
            // A lead-in before the list, or a closing sentence after it, belongs to the product.
            if p.heading || !begun || (!p.listed && marked > plain) || p.text == "(none)" {
                return;
            }
            let (words, user) = p.text.strip_prefix(USER).map_or((p.text, false), |w| (w, true));
            if let Some(path) = path_in_front(words) {
                self.tools.earlier(path, words, place.order + k);
                return;
            }
            let c = cues::parse(words);
            let guessed = match () {
                _ if user && c.has(Cue::Rule) => Topic::Constraint,
                _ if user => Topic::Request,
                _ => model_topic(c, false),
            };
            let topic = topic.unwrap_or(guessed);
            let kind = match topic {
                Topic::Constraint => 1.4,
                Topic::Request | Topic::Message => 0.9,
                Topic::Decision => 0.6,
                Topic::Error => 0.2,
                // Old plans and states are the first to become outdated.
                Topic::Next | Topic::Current => -0.6,
                _ => 0.0,
            };
            let score = 2.4 + kind + literals(c, 0.3) + if p.code { -1.0 } else { 0.0 };
            self.push(Cow::Borrowed(words), topic, score, place.order + k, user, c);
        });
    }

    fn output(&mut self, text: &'a str, failed: bool, place: &Origin) {
        let wanted = |t: Topic| self.ask.topics.contains(&t);
        let asked = wanted(Topic::Value) || wanted(Topic::Error);
        for (k, l) in best_lines(text, failed, asked).into_iter().enumerate() {
            let topic = if l.cues.has(Cue::Error) || l.cues.has(Cue::Compared) {
                Topic::Error
            } else {
                Topic::Value
            };
            let score = l.score + 0.5 * place.fresh;
            self.push(
                Cow::Borrowed(l.text),
                topic,
                score,
                place.order + 1_000 + k as u64,
                false,
                l.cues,
            );
        }
    }
}

/// Returns the weight of paths, names and numbers.
fn literals(c: Cues, each: f32) -> f32 {
    [Cue::Path, Cue::Name, Cue::Number].into_iter().filter(|&l| c.has(l)).count() as f32 * each
}

/// Returns the weight of the model's own statements.
fn cue_weight(c: Cues) -> f32 {
    let parts = [
        (Cue::Decision, 1.0),
        (Cue::Done, 0.5),
        (Cue::Error, 0.4),
        (Cue::Todo, 0.6),
        (Cue::Rule, 0.3),
    ];
    parts.into_iter().filter(|&(cue, _)| c.has(cue)).map(|(_, w)| w).sum()
}

fn model_topic(c: Cues, last: bool) -> Topic {
    match () {
        _ if last => Topic::Current,
        _ if c.has(Cue::Todo) => Topic::Next,
        _ if c.has(Cue::Decision) => Topic::Decision,
        _ if c.has(Cue::Error) => Topic::Error,
        _ if c.has(Cue::Done) => Topic::Progress,
        _ if c.has(Cue::Number) => Topic::Value,
        _ => Topic::Progress,
    }
}

/// Returns whether a line was pasted: it begins with a time, a mark or a bracket.
fn is_pasted(p: &Sentence<'_>) -> bool {
    let typed = |c: char| {
        c.is_alphabetic()
            || matches!(c, '(' | '"' | '\'' | '`' | '*' | '_' | '@' | '/' | '“' | '「' | '¿' | '¡')
    };
    !p.listed && p.text.chars().next().is_none_or(|c| !typed(c))
}

/// Returns whether a text is only courtesy, such as "yes" or "thanks": short and without any
/// feature.
fn is_courtesy(text: &str) -> bool {
    text.is_ascii() && text.len() < 14 && cues::parse(text) == Cues::default()
}

/// Returns the path at the start of a line: `src/a.ts` of `src/a.ts: edit_file ×2`.
fn path_in_front(text: &str) -> Option<&str> {
    let (path, _) = text.split_once(": ")?;
    (!path.contains(' ') && cues::parse(path).has(Cue::Path)).then_some(path)
}
