//! What a product's own store could bring back.

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::content::Part;
use ctxbench_core::engine::Action;
use ctxbench_core::fact::{Fact, Match, fold};
use ctxbench_strategies::aider::markdown::{Speaker, append, split_chat_history_markdown};
use ctxbench_strategies::descriptor::Recovery;

use super::path::Path;

/// What of the facts a store holds so far.
pub(super) struct Store {
    recovery: Recovery,
    /// Texts that go into a chat history in Markdown, by the session's id.
    texts: HashMap<Arc<str>, (Speaker, String)>,
    holds: Vec<bool>,
}

impl Store {
    pub(super) fn new(recovery: Recovery, path: &Path, facts: usize) -> Self {
        let texts = if recovery == Recovery::Markdown { texts(path) } else { HashMap::new() };
        Store { recovery, texts, holds: vec![false; facts] }
    }

    /// A message was said; `counts` tells which facts it may bring.
    pub(super) fn said(&mut self, key: &str, facts: &[Fact], counts: impl Fn(usize) -> bool) {
        let Some((who, text)) = self.texts.get(key) else { return };
        let back = written_and_read(*who, text);
        let folded = fold(&back);
        for (i, f) in facts.iter().enumerate().take(self.holds.len()) {
            self.holds[i] |= counts(i) && f.matches(&back, &folded) > Match::Absent;
        }
    }

    /// Whether the store could bring an established fact back.
    pub(super) fn holds(&self, fact: usize) -> bool {
        match self.recovery {
            Recovery::Log => true,
            Recovery::Markdown => self.holds[fact],
            Recovery::Nothing => false,
        }
    }
}

/// A message as it comes back from the file.
fn written_and_read(who: Speaker, text: &str) -> String {
    let mut file = String::new();
    append(&mut file, who, text);
    split_chat_history_markdown(&file, false)
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join("\n")
}

fn texts(path: &Path) -> HashMap<Arc<str>, (Speaker, String)> {
    let mut out = HashMap::new();
    for m in &path.moves {
        if let Action::User(msg) = &m.action {
            let text: Vec<&str> = msg
                .parts
                .iter()
                .filter_map(|p| if let Part::Text(t) = p { Some(&**t) } else { None })
                .collect();
            out.extend(m.keys.iter().map(|k| (k.clone(), (Speaker::User, text.join("\n")))));
        }
        for s in &m.steps {
            let text: Vec<&str> = s
                .parts
                .iter()
                .filter_map(|p| if let Part::Text(t) = p { Some(&**t) } else { None })
                .collect();
            out.insert(s.key.clone(), (Speaker::Assistant, text.join("\n")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_loses_headings_of_replies() {
        // docs/sources/aider.md §1.5: lines that begin with `# ` vanish.
        assert!(!written_and_read(Speaker::Assistant, "# Port 8443\nis taken").contains("8443"));
        assert!(written_and_read(Speaker::Assistant, "Port 8443\nis taken").contains("8443"));
        assert!(written_and_read(Speaker::User, "keep\nport 8443").contains("port 8443"));
    }

    #[test]
    fn a_log_holds_all_and_nothing_holds_none() {
        let store = |r| Store::new(r, &Path::default(), 1).holds(0);
        assert_eq!(
            [store(Recovery::Log), store(Recovery::Markdown), store(Recovery::Nothing)],
            [true, false, false]
        );
    }
}
