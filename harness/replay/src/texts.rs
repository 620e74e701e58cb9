//! Texts that state a fact: the one in which it arises, and excerpts around it.

use std::collections::{BTreeMap, HashMap, HashSet};

use ctxbench_core::content::Part;
use ctxbench_reports::record::{EXCERPT, FactLife};
use ctxbench_session::{Fact, FactKind, Session};
use ctxbench_util::cut::cut;
use rapidhash::RapidHashMap;

/// Longest description of a call's arguments, in characters.
const CALL: usize = 120;

/// Shortest word for comparing two texts, in characters.
const WORD: usize = 4;

/// Returns the source of each fact of a session, with an excerpt of the first text under its id that
/// contains one of its literals. `arising` contains the facts of each id. Arguments of a call belong
/// to the message that made the call. The excerpt of content begins with the call that fetched it.
pub(super) fn lives(
    session: &Session,
    arising: &RapidHashMap<String, Vec<usize>>,
) -> Vec<FactLife> {
    let life = |f: &Fact| FactLife {
        fact: f.id.clone(),
        tokens: f.tokens.iter().chain(&f.words).cloned().collect(),
        arises: f.arises.clone(),
        ..Default::default()
    };
    let mut lives: Vec<FactLife> = session.facts.iter().map(life).collect();
    let mut fetched: HashMap<String, String> = HashMap::new();
    for e in &session.entries {
        for call in e.content().iter().filter_map(Part::as_call) {
            if arising.contains_key(&*call.id) {
                let described = format!("{} {}: ", call.name, cut(&call.arguments, CALL));
                fetched.insert(call.id.to_string(), described);
            }
        }
        let Some(facts) = e.key().and_then(|key| arising.get(key)) else { continue };
        let parts = e.content();
        let calls = parts.iter().filter_map(Part::as_call).map(|c| &c.arguments);
        for text in parts.iter().filter_map(Part::as_prose).chain(calls) {
            for &i in facts {
                let fact = &session.facts[i];
                if lives[i].text.is_empty() && holds(fact, text) {
                    let call =
                        fetched.get(&*fact.arises).filter(|_| fact.kind == FactKind::Content);
                    let call = call.map_or("", String::as_str);
                    lives[i].text = format!("{call}{}", around(fact, text)).into();
                }
            }
        }
    }
    lives
}

/// Returns whether a text contains a literal of a fact or, for a fact without literals, enough of
/// its terms.
fn holds(fact: &Fact, text: &str) -> bool {
    match fact.tokens.is_empty() {
        true => fact.occurs_in(text),
        false => fact.tokens.iter().any(|t| text.contains(t.as_str())),
    }
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
pub(super) fn nearest(fact: &Fact, before: &str, summaries: &Lines<'_>) -> String {
    let line = summaries.like(&words(&fact.tokens.join(" ")), &words(before));
    line.map(|l| window(l, 0, 0)).unwrap_or_default()
}

/// Lines indexed by word: many facts are looked up in the lines of one summary.
pub(super) struct Lines<'a> {
    lines: Vec<&'a str>,
    /// Lines that contain a word, in order.
    with: HashMap<String, Vec<usize>>,
}

impl<'a> Lines<'a> {
    pub(super) fn from_lines(lines: impl Iterator<Item = &'a str>) -> Self {
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
