//! Needs with a literal: the reply contains a path, number, identifier or quoted sentence that was
//! last shown long before.

use std::borrow::Cow;

use ctxbench_session::Session;
use rapidhash::{RapidHashMap as HashMap, RapidHashSet as HashSet};

use super::events::{Agent, FactEvent, FactReply, ShownText, leaves};
use super::said::{self, ReplyPart};
use super::{GAP, Need, names, words};

/// Minimum number of absolute paths in calls that is needed to derive the project's folder. At
/// least half of the paths must be in that folder.
const ENOUGH_PATHS: usize = 4;

struct LastShown<'a> {
    last: &'a ShownText<'a>,
    /// Whether any text used the literal in a way that is specific to the project.
    own: bool,
    defined: bool,
    /// Index of the text that showed it last.
    part: usize,
    /// Number of the reply before it was last shown as more than the end of a longer path.
    whole: usize,
}

/// Literals that an agent's window has shown so far.
#[derive(Default)]
pub(super) struct LiteralWindow<'a> {
    seen: HashMap<&'a str, LastShown<'a>>,
    /// Names without case and separators, with the number of the reply before they were last shown:
    /// a reader of `session_store.rs` can write `SessionStore`.
    folded: HashMap<Cow<'a, str>, usize>,
    /// Folders of the shown paths, with the number of the reply before they were last shown.
    folders: HashMap<&'a str, usize>,
    /// Literals in new code of the agent, with the id and the number of the reply.
    made: HashMap<String, (String, usize)>,
}

pub(super) struct StandingLiterals {
    /// Literals of the system prompt, instruction files and the like.
    texts: HashSet<String>,
    /// The project's folder and its parents.
    roots: HashSet<String>,
}

impl StandingLiterals {
    pub(super) fn new(session: &Session, events: &[(Agent<'_>, FactEvent<'_>)]) -> Self {
        let mut texts = HashSet::default();
        for text in session.entries.iter().filter_map(|e| e.standing_text()) {
            words::for_each(text, |_, word| {
                texts.extend(words::forms(word).map(str::to_string));
            });
        }
        StandingLiterals { texts, roots: roots(events) }
    }
}

/// Returns the folders that at least half of the absolute paths in calls share.
fn roots(events: &[(Agent<'_>, FactEvent<'_>)]) -> HashSet<String> {
    let mut all = 0;
    let mut below: HashMap<String, usize> = HashMap::default();
    for call in said::replies(events).flat_map(|r| &r.calls) {
        for (_, value) in leaves(&call.arguments) {
            words::for_each(&value, |_, word| {
                if word.starts_with('/') && words::is_path(word) {
                    all += 1;
                    for folder in words::folders(word).chain([word]) {
                        *below.entry(folder.to_string()).or_default() += 1;
                    }
                }
            });
        }
    }
    below.retain(|_, n| all >= ENOUGH_PATHS && *n * 3 >= all);
    below.into_keys().collect()
}

impl<'a> LiteralWindow<'a> {
    pub(super) fn note_shown(&mut self, shown: &'a ShownText<'a>) {
        for (part, text) in shown.texts.iter().enumerate() {
            self.show_names(text, shown.at);
            words::for_each(text, |start, word| {
                let end = start + word.len();
                let own = names::is_own(text, start, end);
                let defined = names::is_defined(text, start, end);
                if words::is_path(word) {
                    for folder in words::forms(word).flat_map(words::folders) {
                        self.folders.insert(folder, shown.at);
                    }
                }
                for form in words::forms(word) {
                    let first = LastShown { last: shown, own, defined, part, whole: 0 };
                    let seen = self.seen.entry(form).or_insert(first);
                    (seen.last, seen.part) = (shown, part);
                    seen.own |= own;
                    seen.defined |= defined;
                    if form == word.trim_start_matches("../") {
                        seen.whole = shown.at;
                    }
                }
            });
        }
    }

    fn show_names(&mut self, text: &'a str, at: usize) {
        let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        for word in text.split(|c| !name(c)).filter(|w| w.len() >= words::SHORTEST) {
            let parts = word.split(['_', '-']).filter(|p| p.len() >= words::SHORTEST);
            self.folded.extend(parts.chain([word]).map(|name| (folded(name), at)));
        }
    }

    /// Returns the needs of a reply. Literals that the same result or message showed last make one.
    pub(super) fn reply(
        &mut self,
        at: usize,
        reply: &FactReply<'_>,
        pieces: &[(ReplyPart, String)],
        standing: &StandingLiterals,
    ) -> Vec<Need> {
        let mut needs: Vec<Need> = Vec::new();
        let mut variables = HashSet::default();
        for (piece, text) in pieces {
            let is_new = *piece == ReplyPart::New;
            words::for_each(text, |start, word| {
                // New code may give its own variable a usual name.
                if is_new && names::is_variable(text, start, word) {
                    variables.insert(word);
                }
                if is_new && variables.contains(word) {
                    return;
                }
                let is_prose =
                    *piece == ReplyPart::Prose || is_new && names::is_in_comment(text, start);
                let by = (*piece, is_prose);
                let Some((literal, (key, part), gap)) = self.needed(at, by, word, standing) else {
                    return;
                };
                let need = Need::literal(literal, key, reply.id, gap);
                Need { part, ..need }.add_to(&mut needs);
            });
        }
        for (_, text) in pieces.iter().filter(|(piece, _)| *piece == ReplyPart::New) {
            words::for_each(text, |_, word| {
                self.made.insert(word.to_string(), (reply.id.to_string(), at));
            });
        }
        needs
    }

    /// Returns the literal as it was shown, the message and the text that showed it last, and the
    /// number of replies since.
    fn needed<'w>(
        &self,
        at: usize,
        (piece, is_prose): (ReplyPart, bool),
        word: &'w str,
        standing: &StandingLiterals,
    ) -> Option<(&'w str, (&str, usize), usize)> {
        let Some(literal) = words::forms(word).find(|f| self.seen.contains_key(*f)) else {
            // The text that an edit replaces may have been written by the agent itself.
            let (key, made) = self.made.get(word).filter(|_| piece == ReplyPart::Old)?;
            let gap = at - made;
            return (gap >= GAP).then_some((word, (key, 0), gap));
        };
        if standing.texts.contains(literal) || standing.roots.contains(word) {
            return None;
        }
        let seen = &self.seen[literal];
        let gap = at - self.last_known(word, literal).max(seen.last.at);
        let known_anyhow = piece == ReplyPart::New && !seen.own && !words::is_path(literal)
            || is_prose && names::is_proper(literal) && !seen.defined;
        (gap >= GAP && !known_anyhow).then_some((literal, (seen.last.key, seen.part), gap))
    }

    /// Returns the number of the last reply before something implied the literal: a path below the
    /// project, a folder of a path, or another spelling.
    fn last_known(&self, word: &str, literal: &str) -> usize {
        let folder = |path: &str| self.folders.get(path).copied().unwrap_or(0);
        if !words::is_path(literal) {
            let own = ["this.", "self.", "cls."].iter().find_map(|of| literal.strip_prefix(of));
            let name = own.unwrap_or(literal);
            return self.folded.get(&folded(name)).copied().unwrap_or(0);
        }
        let below = words::forms(word).skip(1).filter(|f| f.contains('/'));
        let home = word.strip_prefix("~/").map_or(0, folder);
        let shown = below.filter_map(|f| self.seen.get(f)).map(|s| s.whole).max().unwrap_or(0);
        shown.max(home).max(folder(word))
    }
}

fn folded(name: &str) -> Cow<'_, str> {
    if name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
        return Cow::Borrowed(name);
    }
    let mut out = name.to_ascii_lowercase();
    out.retain(|c| !matches!(c, '_' | '-'));
    out.into()
}
