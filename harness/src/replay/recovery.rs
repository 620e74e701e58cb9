//! What a product's own store could bring back.

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::content::Part;
use ctxbench_core::engine::Action;
use ctxbench_strategies::descriptor::Recovery;

use super::known::Known;
use super::path::Path;

/// What of the facts a store holds so far.
pub(super) struct Store {
    recovery: Recovery,
    /// Texts that go into a chat history, by the session's id, and whether the user said them.
    texts: HashMap<Arc<str>, (bool, String)>,
    holds: Vec<bool>,
}

impl Store {
    pub(super) fn new(recovery: Recovery, path: &Path, facts: usize) -> Self {
        let texts = match recovery {
            Recovery::ChatHistory(_) => texts(path),
            Recovery::Log | Recovery::Nothing | Recovery::Unknown => HashMap::new(),
        };
        Store { recovery, texts, holds: vec![false; facts] }
    }

    /// A message was said; `counts` tells which facts it may bring.
    pub(super) fn said(&mut self, key: &str, known: &Known, counts: impl Fn(usize) -> bool) {
        let Recovery::ChatHistory(comes_back) = self.recovery else { return };
        let Some((of_user, text)) = self.texts.get(key) else { return };
        let back = comes_back(*of_user, text);
        for i in known.carried_once(&back).filter(|&i| counts(i)) {
            if let Some(holds) = self.holds.get_mut(i) {
                *holds = true;
            }
        }
    }

    /// Whether the store could bring an established fact back; `None` = nobody knows.
    pub(super) fn holds(&self, fact: usize) -> Option<bool> {
        match self.recovery {
            Recovery::Log => Some(true),
            Recovery::ChatHistory(_) => Some(self.holds[fact]),
            Recovery::Nothing => Some(false),
            Recovery::Unknown => None,
        }
    }
}

fn texts(path: &Path) -> HashMap<Arc<str>, (bool, String)> {
    let mut out = HashMap::new();
    for m in &path.moves {
        if let Action::User(msg) = &m.action {
            let text = said(&msg.parts);
            out.extend(m.keys.iter().map(|k| (k.clone(), (true, text.clone()))));
        }
        for s in &m.steps {
            out.insert(s.key.clone(), (false, said(&s.parts)));
        }
    }
    out
}

fn said(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|p| if let Part::Text(t) = p { Some(&**t) } else { None });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_holds_all_and_nothing_holds_none() {
        let store = |r| Store::new(r, &Path::default(), 1).holds(0);
        assert_eq!(store(Recovery::Unknown), None);
        assert_eq!(
            [Recovery::Log, Recovery::ChatHistory(|_, text| text.into()), Recovery::Nothing]
                .map(store),
            [Some(true), Some(false), Some(false)]
        );
    }
}
