//! Questions about facts to a model that reads the contexts of replays.

use std::collections::{BTreeMap, HashSet};

use ctxbench_core::prelude::*;
use ctxbench_core::tokens::content_hash;
use ctxbench_provider::{Item, Prompt, plain};
use ctxbench_reports::probe::ProbeQuestion;
use ctxbench_reports::record::FactRecord;
use ctxbench_session::{Entry, Fact, Match, Session};

use crate::facts::readable;
use crate::options::Replayed;
use crate::recording;

/// Maximum length of the excerpt before and after the gap of a question, bytes.
const EXCERPT: usize = 200;

/// Minimum number of words around a gap.
const WORDS: usize = 2;

/// Maximum tokens of an answer, with room for a model that thinks first.
const ANSWER_TOKENS: u64 = 2_000;

/// A question with the contexts to ask it about.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub question: ProbeQuestion,
    pub contexts: Vec<RowContext>,
}

/// The context of a row when it needs a fact.
#[derive(Clone, Debug)]
pub struct RowContext {
    pub strategy: String,
    /// Whether the context shows the fact, as recall counts it.
    pub is_present: bool,
    pub blocks: Arc<[Arc<Block>]>,
}

/// Returns the questions about needs that all rows of a session reach, in the order of their facts.
pub fn candidates(id: &str, session: &Session, rows: &[(String, Replayed)]) -> Vec<Candidate> {
    let Some((_, first)) = rows.first() else { return Vec::new() };
    let shown: Vec<Arc<str>> = session.entries.iter().flat_map(texts).collect();
    let lines: HashSet<&str> = shown.iter().flat_map(|text| text.lines()).collect();
    let facts: BTreeMap<&str, &Fact> = session.facts.iter().map(|f| (&*f.id, f)).collect();
    let mut known: BTreeMap<&str, Option<(String, String)>> = BTreeMap::new();
    let candidate = |pair: &FactRecord| {
        let fact = facts.get(&*pair.fact)?;
        let key = (pair.fact.clone(), pair.need.clone());
        let context = |(strategy, row): &(String, Replayed)| {
            let mut own = row.record.facts.iter();
            let own = own.find(|f| f.fact == pair.fact && f.need == pair.need)?;
            let is_present = own.found > Match::Absent;
            let blocks = row.contexts.get(&key)?.clone();
            Some(RowContext { strategy: strategy.clone(), is_present, blocks })
        };
        let contexts = rows.iter().map(context).collect::<Option<_>>()?;
        let made = known.entry(&fact.id).or_insert_with(|| question(session, fact, &lines));
        let (text, expected) = made.clone()?;
        let (fact, need) = key;
        let question = ProbeQuestion { session: id.to_string(), fact, need, text, expected };
        Some(Candidate { question, contexts })
    };
    first.record.facts.iter().filter(|pair| pair.is_need()).filter_map(candidate).collect()
}

/// Chooses at most `n` of the questions by a seed, one per text. Half of them, if there are enough, are
/// about facts that a row lost.
pub fn choose(all: Vec<Candidate>, n: usize, seed: u64) -> Vec<Candidate> {
    let draw = |c: &Candidate| {
        let ProbeQuestion { session, fact, need, .. } = &c.question;
        content_hash(format!("{seed}\0{session}\0{fact}\0{need}").as_bytes())
    };
    let mut drawn: Vec<_> = all.into_iter().enumerate().collect();
    drawn.sort_by_key(|(at, c)| (draw(c), *at));
    let mut texts = HashSet::new();
    drawn.retain(|(_, c)| texts.insert((c.question.session.clone(), c.question.text.clone())));
    let is_lost = |(_, c): &(usize, Candidate)| c.contexts.iter().any(|row| !row.is_present);
    let (lost, present): (Vec<_>, Vec<_>) = drawn.into_iter().partition(is_lost);
    let from_lost = lost.len().min((n / 2).max(n.saturating_sub(present.len())));
    let mut chosen: Vec<_> = lost.into_iter().take(from_lost).collect();
    chosen.extend(present.into_iter().take(n - from_lost));
    chosen.sort_by_key(|(at, _)| *at);
    chosen.into_iter().map(|(_, c)| c).collect()
}

/// Returns the prompt that shows a context and asks a question.
pub fn prompt(context: &[Arc<Block>], question: &str) -> Prompt {
    let shown = context.iter().map(|b| {
        let text = recording::readable(readable(b)).into();
        // A server would leave out reasoning, and recall counts it.
        let (kind, role) = match b.kind {
            BlockKind::Reasoning => (BlockKind::Assistant, Role::Assistant),
            kind => (kind, b.role),
        };
        Item::new(role, Draft { kind, role, text, ..Draft::clone(b) }, 1, None)
    });
    let asked = Item::new(Role::User, plain(question), 1, None);
    let items = shown.chain([asked]).collect();
    Prompt { max_tokens: Some(ANSWER_TOKENS), ..Prompt::new("", items) }
}

/// Returns whether an answer is right: whether it has the expected literal.
pub fn is_right(question: &ProbeQuestion, answer: &str) -> bool {
    literal(&question.expected).occurs_in(answer)
}

fn literal(text: &str) -> Fact {
    Fact { tokens: vec![text.to_string()], ..Fact::default() }
}

/// Returns a question about the literal of a fact, and the literal. The question is the line that showed
/// it first, with a gap. `None` if the fact has several literals, or if the line does not identify it.
fn question(session: &Session, fact: &Fact, lines: &HashSet<&str>) -> Option<(String, String)> {
    let [expected] = &fact.tokens[..] else { return None };
    let entry = session.entries.iter().find(|e| e.key() == Some(&*fact.arises))?;
    let shown = texts(entry);
    let line = shown.iter().flat_map(|text| text.lines()).find(|l| l.contains(&**expected))?;
    let (before, after) = line.split_once(&**expected)?;
    // A tool may write numbers of lines before them.
    let before = before.trim_start_matches(|c: char| c.is_ascii_digit() || " \t→|:".contains(c));
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(EXCERPT))..];
    let after = after[..after.floor_char_boundary(EXCERPT)].trim_end();
    let is_word = |word: &&str| word.len() >= 3;
    let words = [before, after].map(|text| text.split(|c: char| !c.is_alphabetic()));
    if words.into_iter().flatten().filter(is_word).count() < WORDS {
        return None;
    }
    let others = lines.iter().filter_map(|line| between(line, before, after));
    if others.into_iter().any(|other| !literal(expected).occurs_in(other)) {
        return None;
    }
    let [before, after] = [before, after].map(|text| text.replace(&**expected, "____"));
    let text = format!(
        "Answer from the conversation above, without calling a tool. Earlier, a message or tool \
         result had this line. A part of it is replaced by ____:\n\n{before}____{after}\n\nGive the \
         text in place of ____. Reply with it only, or with \"unknown\" if you do not see it above."
    );
    (!literal(expected).occurs_in(&text)).then(|| (text, expected.clone()))
}

/// Returns the part of a line between two texts.
fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &line[line.find(before)? + before.len()..];
    let end = if after.is_empty() { rest.len() } else { rest.find(after)? };
    Some(&rest[..end])
}

/// Returns the texts of a message or result.
fn texts(entry: &Entry) -> Vec<Arc<str>> {
    entry.content().iter().filter_map(Part::as_prose).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_session::fact::FactKind;

    /// Returns the line of the question about a literal that a tool result of these lines showed.
    fn masked(lines: &str, token: &str) -> Option<String> {
        let session = format!(
            "{{\"type\":\"session\",\"version\":1,\"id\":\"s\"}}\n{}\n{}\n",
            serde_json::json!({"type": "assistant", "id": "a", "calls": [{"id": "c", "name": "x", "arguments": "{}"}]}),
            serde_json::json!({"type": "tool", "call_id": "c", "output": lines})
        );
        let session = ctxbench_scenarios::jsonl::read(session.as_bytes(), "s").unwrap().session;
        let texts: Vec<_> = session.entries.iter().flat_map(texts).collect();
        let lines = texts.iter().flat_map(|text| text.lines()).collect();
        let (text, expected) =
            question(&session, &Fact::new("f", FactKind::Value, token, "c"), &lines)?;
        assert_eq!(expected, token);
        Some(text.split("\n\n").nth(1).unwrap().to_string())
    }

    #[test]
    fn question_is_the_line_with_a_gap() {
        let line = "  12→the server listens on port 8443 by default";
        let want = "the server listens on port ____ by default";
        assert_eq!(masked(line, "8443").as_deref(), Some(want));
        let twice = masked("copy of main.rs, namely src/main.rs, failed", "main.rs");
        assert_eq!(twice.as_deref(), Some("copy of ____, namely src/____, failed"));
    }

    #[test]
    fn there_is_no_question_that_contains_its_answer_or_has_several() {
        let is_asked = |lines: &str, token: &str| masked(lines, token).is_some();
        assert!(is_asked("the server listens on 8443", "8443"));
        assert!(!is_asked("8443", "8443"), "nothing around it");
        assert!(!is_asked("x = 8443", "8443"), "no words around it");
        assert!(!is_asked("the port Main is main too", "Main"), "twice, folded");
        assert!(!is_asked("an earlier line had this tool", "tool"), "the fixed text has it");
        let two = "the server listens on 8443\nthe server listens on 8080";
        assert!(!is_asked(two, "8443"), "two lines fit");
        let same = "the server listens on 8443\n7: the server listens on 8443";
        assert!(is_asked(same, "8443"), "one text fits");
    }

    #[test]
    fn half_of_the_questions_are_about_lost_facts() {
        let all = |lost: usize, present: usize| -> Vec<Candidate> {
            let candidate = |i: usize| {
                let (fact, text) = (format!("f{i}"), format!("t{i}"));
                let context = RowContext {
                    strategy: "x".into(),
                    is_present: i >= lost,
                    blocks: Arc::new([]),
                };
                let question = ProbeQuestion { fact, text, ..ProbeQuestion::default() };
                Candidate { question, contexts: vec![context] }
            };
            (0..lost + present).map(candidate).collect()
        };
        let chosen = |lost: usize, present: usize, n: usize| {
            let chosen = choose(all(lost, present), n, 1);
            let is_lost = |c: &&Candidate| !c.contexts[0].is_present;
            (chosen.iter().filter(is_lost).count(), chosen.len())
        };
        assert_eq!(chosen(10, 10, 8), (4, 8));
        assert_eq!(chosen(1, 10, 8), (1, 8));
        assert_eq!(chosen(10, 1, 8), (7, 8));
        assert_eq!(chosen(2, 2, 8), (2, 4));
        let by_seed = |seed| -> Vec<ProbeQuestion> {
            choose(all(9, 9), 4, seed).into_iter().map(|c| c.question).collect()
        };
        assert_ne!(by_seed(1), by_seed(2), "the seed decides");
        let twice = [all(1, 0), all(1, 0)].concat();
        assert_eq!(choose(twice, 8, 1).len(), 1, "a question is asked once");
    }
}
