//! History of every fact: its source, and the compactions that moved it, with excerpts of the text
//! before and after.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ctxbench_core::block::Block;
use ctxbench_reports::record::{EXCERPT, FactLife, FactMove, FactPlace};
use ctxbench_session::Session;
use ctxbench_session::fact::Fact;
use rapidhash::{RapidHashMap, RapidHashSet};

use super::facts::{FactBook, Sighting, fact_place, readable};
use super::texts;

/// Maximum number of recorded moves per fact; later ones are dropped.
const MOVES: usize = 8;

/// Shortest word for comparing two texts, in characters.
const WORD: usize = 4;

/// Records the facts that a request showed. `lives` is empty for subagents.
pub(super) fn record_shown(lives: &mut [FactLife], request: u64, seen: &[Option<Sighting>]) {
    for (life, _) in lives.iter_mut().zip(seen).filter(|(_, s)| s.is_some()) {
        life.first_shown.get_or_insert(request);
    }
}

/// Records the facts that a compaction moved.
pub(super) fn record_moves(
    lives: &mut [FactLife],
    compaction: u64,
    book: &mut FactBook,
    (before, old): (&[Arc<Block>], &[Option<Sighting>]),
    (after, new): (&[Arc<Block>], &[Option<Sighting>]),
) {
    let place = |of: &[Option<Sighting>], fact: usize| of[fact].map(|s| s.place);
    let moved: Vec<(usize, FactPlace, Option<FactPlace>)> = (0..lives.len())
        .filter(|&fact| lives[fact].moves.len() < MOVES)
        .filter_map(|fact| Some((fact, place(old, fact)?, place(new, fact))))
        .filter(|(_, from, to)| Some(*from) != *to)
        .collect();
    if moved.is_empty() {
        return;
    }
    let carrying = [before, after].map(|blocks| book.carriers(blocks));
    let known = &book.known;
    let summaries = after.iter().filter(|b| fact_place(b) == FactPlace::Summary);
    let summaries = Lines::from_lines(summaries.flat_map(|b| readable(b).lines()));
    for (fact, from, to) in moved {
        let [words, now] = [0, 1].map(|side: usize| {
            let block = carrying[side][fact].filter(|_| side == 0 || to.is_some());
            block.map(|b| known.words_around(fact, b)).unwrap_or_default()
        });
        let after = match to {
            Some(_) => now,
            None => known.intern(nearest(&known.facts[fact], &words, &summaries)),
        };
        let to = to.unwrap_or_default();
        lives[fact].moves.push(FactMove { compaction, from, to, before: words, after });
    }
}

/// Excerpts of moves. Each is stored once, because many facts are in the same place.
#[derive(Default)]
pub(super) struct ExcerptCache {
    /// Excerpts by fact and by hash of the block.
    around: RapidHashMap<(usize, u64), Arc<str>>,
    texts: RapidHashSet<Arc<str>>,
}

impl ExcerptCache {
    /// Returns an excerpt of a block around fact number `number`.
    pub(super) fn around(&mut self, number: usize, fact: &Fact, block: &Block) -> Arc<str> {
        let key = (number, block.hash);
        if let Some(words) = self.around.get(&key) {
            return words.clone();
        }
        let words = self.once(around(fact, readable(block)));
        self.around.insert(key, words.clone());
        words
    }

    pub(super) fn once(&mut self, text: String) -> Arc<str> {
        if let Some(same) = self.texts.get(&*text) {
            return same.clone();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }
}

/// Returns the source of each fact in the session. `arising` contains the facts of each id.
pub(super) fn lives(
    session: &Session,
    arising: &RapidHashMap<String, Vec<usize>>,
) -> Vec<FactLife> {
    let life = |(f, text): (&Fact, Option<String>)| FactLife {
        fact: f.id.clone(),
        tokens: f.tokens.iter().chain(&f.words).cloned().collect(),
        arises: f.arises.clone(),
        text: text.unwrap_or_default().into(),
        ..Default::default()
    };
    session.facts.iter().zip(texts::in_sources(session, arising, around)).map(life).collect()
}

/// Returns an excerpt of a text around the first literal of a fact, or around the most similar
/// line.
pub(super) fn around(fact: &Fact, text: &str) -> String {
    if let Some((at, token)) =
        fact.tokens.iter().find_map(|t| text.find(t.as_str()).map(|at| (at, t)))
    {
        return window(text, at, at + token.len());
    }
    let nearest =
        || Lines::from_lines(text.lines()).like(&words(&fact.tokens.join(" ")), &HashSet::new());
    match text.lines().find(|line| fact.occurs_in(line)).or_else(nearest) {
        Some(line) => window(line, 0, 0),
        None => window(text, 0, 0),
    }
}

/// Returns an excerpt of the summary line that shares the most terms with a fact, then with the
/// excerpt before the compaction. Empty if no line shares any.
fn nearest(fact: &Fact, before: &str, summaries: &Lines<'_>) -> String {
    let line = summaries.like(&words(&fact.tokens.join(" ")), &words(before));
    line.map(|l| window(l, 0, 0)).unwrap_or_default()
}

/// Lines indexed by word: many facts are looked up in the lines of one summary.
struct Lines<'a> {
    lines: Vec<&'a str>,
    /// Lines that contain a word, in order.
    with: HashMap<String, Vec<usize>>,
}

impl<'a> Lines<'a> {
    fn from_lines(lines: impl Iterator<Item = &'a str>) -> Self {
        let lines: Vec<&str> = lines.collect();
        let mut with: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, line) in lines.iter().enumerate() {
            words(line).into_iter().for_each(|w| with.entry(w).or_default().push(i));
        }
        Lines { lines, with }
    }

    /// Returns the first line with the most `wanted` terms, then the most `others`. `None` if no
    /// line has any of them.
    fn like(&self, wanted: &HashSet<String>, others: &HashSet<String>) -> Option<&'a str> {
        let mut shared: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let lines = |word| self.with.get(word).into_iter().flatten();
        wanted.iter().flat_map(lines).for_each(|i| shared.entry(*i).or_default().0 += 1);
        others.iter().flat_map(lines).for_each(|i| shared.entry(*i).or_default().1 += 1);
        // If several lines are equal, `max_by_key` returns the last one.
        let (line, _) = shared.into_iter().rev().max_by_key(|(_, shared)| *shared)?;
        Some(self.lines[line])
    }
}

fn words(text: &str) -> HashSet<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts.filter(|w| w.chars().count() >= WORD).map(str::to_lowercase).collect()
}

/// Cuts a text to at most [`EXCERPT`] characters around the bytes `from..to`, with white space
/// collapsed.
fn window(text: &str, from: usize, to: usize) -> String {
    let inside = text[from..to].chars().count();
    let each_side = EXCERPT.saturating_sub(inside.min(EXCERPT) + 2) / 2;
    let left: Vec<char> = text[..from].chars().rev().take(each_side).collect();
    let right = if from == to { EXCERPT - 2 } else { each_side };
    let cut_left = text[..from].chars().rev().nth(each_side).is_some();
    let shown = text[from..].chars().take(inside.min(EXCERPT - 2) + right);
    let cut_right = text[from..].chars().nth(inside.min(EXCERPT - 2) + right).is_some();
    let whole: String = left.into_iter().rev().chain(shown).collect();
    let flat = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}{flat}{}", if cut_left { "…" } else { "" }, if cut_right { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(token: &str) -> Fact {
        serde_json::from_value(
            serde_json::json!({"id": "f", "kind": "value", "tokens": [token], "arises": "m"}),
        )
        .unwrap()
    }

    #[test]
    fn excerpts_are_bounded_and_hold_the_fact() {
        let text = format!("{} port 8443 {}", "ä ".repeat(500), "ö\n".repeat(500));
        let cut = around(&fact("port 8443"), &text);
        assert!(
            cut.contains("ä port 8443 ö") && cut.starts_with('…') && cut.ends_with('…'),
            "{cut}"
        );
        assert!(cut.chars().count() <= EXCERPT, "{}", cut.chars().count());
        assert_eq!(around(&fact("port 8443"), "the port 8443"), "the port 8443");
        let long = "x".repeat(1_000);
        assert!(around(&fact(&long), &long).chars().count() <= EXCERPT);
    }

    #[test]
    fn folded_matches_are_shown_by_their_line() {
        assert_eq!(
            around(&fact("Token Expired"), "first\nthe `token  expired` text\nlast"),
            "the `token expired` text"
        );
    }

    #[test]
    fn the_nearest_line_shares_most_words() {
        let lines =
            "nothing here\nlisten on some port\nlisten on the server port\nanother server port";
        let none = HashSet::new();
        let like = |wanted: &str, others: &HashSet<String>| {
            Lines::from_lines(lines.lines()).like(&words(wanted), others)
        };
        assert_eq!(
            like("the server shall listen on port 8443", &none),
            Some("listen on the server port")
        );
        assert_eq!(
            like("nothing", &words("listen server port")),
            Some("nothing here"),
            "own text first"
        );
        assert_eq!(like("some server", &none), Some("listen on some port"), "the first of equals");
        assert_eq!(like("unrelated", &none), None);
    }
}
