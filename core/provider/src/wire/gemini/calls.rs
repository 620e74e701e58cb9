//! Gemini: pairs calls and results. Ids are optional: like the provider, a result without id belongs to
//! the first open call with its name. A call without id gets one here.

use ctxbench_core::prelude::*;

use crate::prompt::Prompt;

/// The calls of a conversation so far.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    made: usize,
    /// Open calls, by id and name.
    open: Vec<(Arc<str>, Arc<str>)>,
}

impl OpenCalls {
    /// Returns the id of a call. A generated id depends on the tool and the position in the conversation,
    /// so that it is the same in every request.
    pub(super) fn call(&mut self, id: Option<Arc<str>>, name: &Arc<str>) -> Arc<str> {
        self.made += 1;
        let id = id.unwrap_or_else(|| format!("{name}#{}", self.made).into());
        self.open.push((id.clone(), name.clone()));
        id
    }

    /// Returns the call id of a result; an unused one if no call with its name is open.
    pub(super) fn result(&mut self, id: Option<Arc<str>>, name: &str) -> Arc<str> {
        let at = match &id {
            Some(id) => self.open.iter().position(|(open, _)| open == id),
            None => self.open.iter().position(|(_, called)| **called == *name),
        };
        match (at, id) {
            (Some(at), _) => self.open.remove(at).0,
            (None, Some(id)) => id,
            (None, None) => format!("{name}#none").into(),
        }
    }
}

/// Returns why the provider refuses the order of items: a call must follow the user or a result.
pub(super) fn out_of_turn(prompt: &Prompt) -> Option<String> {
    let talk: Vec<_> = prompt.items.iter().filter(|i| i.message > 0).collect();
    talk.chunk_by(|a, b| a.message == b.message)
        .scan(None, |before: &mut Option<Role>, turn| {
            let calls = turn.iter().any(|i| i.kind == BlockKind::Call);
            let refused = calls && !matches!(before, Some(Role::User | Role::Tool));
            *before = turn.first().map(|i| i.role);
            Some(refused)
        })
        .any(|refused| refused)
        .then(|| {
            "Please ensure that function call turn comes immediately after a user turn or after a \
             function response turn."
                .to_string()
        })
}
