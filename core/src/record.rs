//! Recording of messages: the log keeps them unchanged, the view shows what the strategy admits.

use std::sync::Arc;

use crate::block::{Draft, MessageId, Role};
use crate::content::{Part, ToolCall};
use crate::engine::Engine;
use crate::host::Incoming;
use crate::request::Reply;
use crate::strategy::Strategy;

impl Engine {
    pub fn record_user(&mut self, strategy: &mut dyn Strategy, msg: &Incoming) -> MessageId {
        self.record(strategy, msg.key.clone(), Role::User, msg.parts.clone())
    }

    /// Records a reply, adds it to the context, and returns its calls.
    pub fn record_reply(&mut self, strategy: &mut dyn Strategy, reply: &Reply) -> Vec<ToolCall> {
        let id = self.record(strategy, "".into(), Role::Assistant, reply.parts.clone());
        self.reply_recorded(id);
        reply.calls().cloned().collect()
    }

    /// Records tool results and adds them to the context. Returns false if the program was killed
    /// before all results arrived.
    pub async fn record_results(
        &mut self,
        strategy: &mut dyn Strategy,
        results: Vec<Incoming>,
    ) -> bool {
        let mut complete = true;
        for Incoming { key, parts } in results {
            if parts.is_empty() {
                complete = false;
                continue;
            }
            let drafts = drafts(&parts, Role::Tool);
            let id = self.history.append(key, Role::Tool, parts, false);
            for (part, draft) in drafts {
                let draft = strategy.on_result(self, id, draft).await;
                self.push_part(id, part, draft);
            }
            strategy.on_recorded(self, id);
        }
        complete
    }

    fn record(
        &mut self,
        strategy: &mut dyn Strategy,
        key: Arc<str>,
        role: Role,
        parts: Vec<Part>,
    ) -> MessageId {
        let drafts = drafts(&parts, role);
        let id = self.history.append(key, role, parts, false);
        for (part, draft) in drafts {
            self.push_part(id, part, strategy.admit(draft));
        }
        strategy.on_recorded(self, id);
        id
    }
}

/// Returns drafts of the parts that a request can contain, each with its index.
fn drafts(parts: &[Part], role: Role) -> Vec<(u32, Draft)> {
    let drafts = parts.iter().zip(0..).filter_map(|(p, i)| Some((i, p.draft(role)?)));
    drafts.collect()
}
