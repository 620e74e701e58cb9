//! Contents that clients store with the provider (Gemini's explicit cache): read for certain, at the
//! price of a cached token, as long as they are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctxbench_core::Millis;
use ctxbench_core::model::Model;
use ctxbench_core::request::{ErrorKind, ModelError};
use ctxbench_provider::Prompt;
use ctxbench_provider::wire::{StoreRequest, StoredContents};

/// How long contents are kept unless the client says so: an hour
/// (docs/sources/providers.md, section 4).
const USUAL_MS: Millis = 3_600_000;
/// Most contents that an account keeps; ours.
const MAX_STORED: usize = 1_000;

/// Contents that an account keeps.
#[derive(Debug, Default)]
pub struct ContentStore {
    kept: BTreeMap<Arc<str>, (StoredContents, Prompt)>,
    made: u64,
}

fn refused(status: u16, code: &str, message: impl Into<String>) -> ModelError {
    let kind = if status == 429 { ErrorKind::RateLimited } else { ErrorKind::Invalid };
    ModelError { kind, status, code: Some(code.into()), message: message.into() }
}

/// The provider reports both cases alike.
fn missing() -> ModelError {
    refused(403, "PERMISSION_DENIED", "CachedContent not found (or permission denied)")
}

impl ContentStore {
    /// Stores contents for a model.
    pub fn create(
        &mut self,
        s: StoreRequest,
        model: &Model,
        now: Millis,
    ) -> Result<StoredContents, ModelError> {
        let (tokens, least) = (s.prompt.tokens(&model.counting), model.cache.minimum);
        if tokens < least {
            let message = format!(
                "Cached content is too small. total_token_count={tokens}, \
                 min_total_token_count={least}"
            );
            return Err(refused(400, "INVALID_ARGUMENT", message));
        }
        self.kept.retain(|_, (s, _)| now < s.expires_ms);
        if self.kept.len() >= MAX_STORED {
            let message = format!("this server keeps {MAX_STORED} contents at most: delete some");
            return Err(refused(429, "RESOURCE_EXHAUSTED", message));
        }
        self.made += 1;
        let stored = StoredContents {
            name: format!("cachedContents/ctxbench-{:04}", self.made).into(),
            title: s.title,
            model: model.name.clone(),
            tokens,
            created_ms: now,
            expires_ms: now.saturating_add(s.ttl_ms.unwrap_or(USUAL_MS)),
        };
        self.kept.insert(stored.name.clone(), (stored.clone(), s.prompt));
        Ok(stored)
    }

    /// All that is kept, by name.
    pub fn all(&self, now: Millis) -> impl Iterator<Item = &StoredContents> {
        self.kept.values().map(|(s, _)| s).filter(move |s| now < s.expires_ms)
    }

    /// Contents of a name.
    pub fn get(&self, name: &str, now: Millis) -> Result<&StoredContents, ModelError> {
        self.all(now).find(|s| *s.name == *name).ok_or_else(missing)
    }

    /// Keeps contents for a time from now on.
    pub fn keep(
        &mut self,
        name: &str,
        ttl_ms: Option<Millis>,
        now: Millis,
    ) -> Result<StoredContents, ModelError> {
        self.get(name, now)?;
        let (stored, _) = self.kept.get_mut(name).ok_or_else(missing)?;
        stored.expires_ms = now.saturating_add(ttl_ms.unwrap_or(USUAL_MS));
        Ok(stored.clone())
    }

    /// Deletes contents.
    pub fn remove(&mut self, name: &str, now: Millis) -> Result<StoredContents, ModelError> {
        self.get(name, now)?;
        self.kept.remove(name).map(|(s, _)| s).ok_or_else(missing)
    }

    /// Prepends stored contents to a prompt. Returns the prompt and the stored tokens.
    pub fn expand(&self, prompt: Prompt, now: Millis) -> Result<(Prompt, u64), ModelError> {
        let Some(name) = &prompt.stored else { return Ok((prompt, 0)) };
        let stored = self.get(name, now)?;
        let (_, before) = self.kept.get(name).ok_or_else(missing)?;
        if stored.model != prompt.model {
            let message = format!("{name} was stored for {}, not {}", stored.model, prompt.model);
            return Err(refused(400, "INVALID_ARGUMENT", message));
        }
        if prompt.tools.is_some() || prompt.items.iter().any(|i| i.message == 0) {
            let message = "CachedContent can not be used with GenerateContent request setting \
                           system_instruction, tools or tool_config.";
            return Err(refused(400, "INVALID_ARGUMENT", message));
        }
        let after = before.items.iter().map(|i| i.message).max().unwrap_or(0);
        let mut items = before.items.clone();
        items.extend(prompt.items.into_iter().map(|mut i| {
            i.message += after;
            i
        }));
        let tokens = stored.tokens;
        Ok((Prompt { items, tools: before.tools.clone(), stored: None, ..prompt }, tokens))
    }
}
