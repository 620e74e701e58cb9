//! A program that filters the tool results of another strategy, such as a tool that shortens shell
//! output.

use ctxbench_core::prelude::*;
use ctxbench_core::strategy::Standing;
use ctxbench_kit::memory::{LoadRequest, LoadedFiles};
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::{
    About, BuildRequest, Descriptor, Product, Requirement, Version,
};
use ctxbench_strategies::names::intern;
use ctxbench_strategies::persist::PersistFormat;

/// Returns `base` with each tool result changed by `filter` before it enters the conversation. Its
/// row is `BASE+FILTER`.
pub fn with_filter(base: &Spec, filter: &Spec) -> Spec {
    let product = Box::leak(Box::new(Joined { base: base.descriptor, filter: filter.clone() }));
    Spec { descriptor: Box::leak(Box::new(Descriptor::new(product))), ..base.clone() }
}

struct Joined {
    base: &'static Descriptor,
    filter: Spec,
}

impl Product for Joined {
    fn about(&self) -> About {
        let base: &About = self.base;
        About {
            name: intern(&format!("{}+{}", base.name, self.filter.label())),
            summary: intern(&format!("{}, results filtered by a program", base.name)),
            // A filter makes a choice of a row that makes none, such as the reference.
            standing: match base.standing {
                Standing::Hypothetical => Standing::Hypothetical,
                _ => Standing::Contender,
            },
            ..base.clone()
        }
    }

    fn build(&self, request: &BuildRequest<'_>) -> Box<dyn Strategy> {
        let base = self.base.product.build(request);
        // A filter has no own window: `with_filter` gets settings without shares of one.
        Box::new(Filtered { base, filter: self.filter.build(request.scale, 0) })
    }

    fn needs(&self, request: &BuildRequest<'_>) -> Option<Requirement> {
        self.base.product.needs(request)
    }

    fn load_files(&self, version: Version, request: LoadRequest<'_>) -> LoadedFiles {
        self.base.product.load_files(version, request)
    }

    fn formats(&self) -> &'static [PersistFormat] {
        self.base.product.formats()
    }

    fn is_run_twice(&self) -> bool {
        self.base.product.is_run_twice() || self.filter.descriptor.product.is_run_twice()
    }

    fn command(&self) -> Option<String> {
        let both = [self.base.product, self.filter.descriptor.product];
        let commands: Vec<String> = both.iter().filter_map(|p| p.command()).collect();
        Some(commands.join(" + "))
    }
}

/// Two strategies: `filter` changes tool results and `base` does everything else. The filter runs
/// through restarts and rewinds, and its failure ends the turn.
struct Filtered {
    base: Box<dyn Strategy>,
    filter: Box<dyn Strategy>,
}

#[async_trait]
impl Strategy for Filtered {
    fn admit(&self, raw: Draft) -> Draft {
        self.base.admit(raw)
    }

    async fn on_result(&mut self, s: &mut Engine, id: MessageId, raw: Draft) -> Draft {
        let filtered = self.filter.on_result(s, id, raw).await;
        self.base.on_result(s, id, filtered).await
    }

    async fn on_start(&mut self, s: &mut Engine) {
        self.filter.on_start(s).await;
        s.reset_view();
        self.base.on_start(s).await;
    }

    async fn on_restart(&mut self, s: &mut Engine) {
        self.base.on_restart(s).await;
    }

    async fn on_new_session(&mut self, s: &mut Engine) {
        self.base.on_new_session(s).await;
    }

    fn on_recorded(&mut self, s: &mut Engine, id: MessageId) {
        self.base.on_recorded(s, id);
    }

    async fn on_user(&mut self, s: &mut Engine, msg: &Incoming) -> Flow {
        match self.filter.on_user(s, msg).await {
            Flow::Proceed => self.base.on_user(s, msg).await,
            failed => failed,
        }
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        self.base.before_request(s).await
    }

    fn request(&mut self, s: &Engine) -> Request {
        self.base.request(s)
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        match self.filter.on_reply(s, reply).await {
            ReplyFlow::Proceed => self.base.on_reply(s, reply).await,
            failed => failed,
        }
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        self.base.after_step(s, had_calls).await
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        self.base.on_error(s, e, attempt).await
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        self.base.after_turn(s).await;
    }

    async fn on_end(&mut self, s: &mut Engine) {
        self.base.on_end(s).await;
        self.filter.on_end(s).await;
    }

    fn wakes_at(&self) -> Option<Millis> {
        self.base.wakes_at()
    }

    async fn on_wake(&mut self, s: &mut Engine) {
        self.base.on_wake(s).await;
    }

    async fn on_idle(&mut self, s: &mut Engine, gap_ms: Millis) {
        self.base.on_idle(s, gap_ms).await;
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        self.base.on_rewind(s, to).await;
    }

    async fn summarise_at(
        &mut self,
        s: &mut Engine,
        to: MessageId,
        mode: RewindMode,
        instructions: Option<&str>,
    ) -> Result<bool, Unsupported> {
        self.base.summarise_at(s, to, mode, instructions).await
    }

    async fn compact(&mut self, s: &mut Engine, instructions: Option<&str>) -> Manual {
        self.base.compact(s, instructions).await
    }
}
