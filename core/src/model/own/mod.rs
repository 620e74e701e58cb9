//! The user's models: files that add models to the table or change listed ones.

mod form;

use std::ops::RangeInclusive;

use toml::Spanned;

use form::{Family, ModelFile, OwnCache, OwnCapabilities, OwnCounting, OwnModel, OwnPrices};

use super::table::{self, Rules, Table};
use super::{CacheRule, Capabilities, Counting, Latency, Model, Prices, Provider};
use crate::nearest;
use crate::toml_file::{self, Lines, TomlError};

/// A file of models.
#[derive(Clone, Debug)]
pub struct OwnFile {
    /// Path as the user wrote it.
    pub path: String,
    pub text: String,
}

/// The wire of Anthropic's models and of no others.
const ANTHROPIC: &str = "anthropic-messages";

/// Tokens, up to a thousand times the largest window today.
const TOKENS: RangeInclusive<u64> = 1..=1_000_000_000;
/// USD per million tokens.
const USD: RangeInclusive<f64> = 0.0..=1_000_000.0;
/// Factors of a price or a count.
const FACTOR: RangeInclusive<f64> = 0.01..=100.0;
/// Tokens around a block or for an image.
const AROUND: RangeInclusive<u64> = 0..=1_000_000;
/// Milliseconds, up to a century.
const MILLIS: RangeInclusive<u64> = 1..=3_155_760_000_000;
/// Modelled latency, ms.
const LATENCY: RangeInclusive<f64> = 0.0..=1_000_000_000.0;

impl Table {
    /// Returns the table with the additions and changes of a file.
    pub(super) fn with(mut self, file: &OwnFile) -> Result<Table, TomlError> {
        let listed: ModelFile = toml_file::read(&file.path, &file.text)?;
        let reader = ModelFileReader { file, lines: Lines::new(&file.text) };
        let mut rules = table::rules();
        for (name, rule) in listed.cache {
            reader.cache(rule.get_ref(), rule.span().start)?;
            rules.cache.insert(name, rule.into_inner());
        }
        for (name, speed) in listed.speed {
            let Latency { a_ms, b_ms, c_ms, d_ms } = *speed.get_ref();
            for (key, ms) in [("a_ms", a_ms), ("b_ms", b_ms), ("c_ms", c_ms), ("d_ms", d_ms)] {
                reader.within(key, &ms, &LATENCY, speed.span().start)?;
            }
            rules.speed.insert(name, speed.into_inner());
        }
        for own in &listed.models {
            let model = reader.model(&self, &rules, own.get_ref())?;
            match self.models.iter_mut().find(|m| m.name == model.name) {
                Some(known) => *known = model,
                None => self.models.push(model),
            }
        }
        // A file may name models in any order.
        for own in listed.models.iter().map(Spanned::get_ref) {
            reader.weak(&self, own)?;
        }
        self.changes.push(changed_by(file));
        Ok(self)
    }
}

/// Formats a file for the version of the price table, without its folder.
fn changed_by(file: &OwnFile) -> String {
    let name = file.path.rsplit(['/', '\\']).next().unwrap_or(&file.path);
    format!("{name}, {:08x}", crate::tokens::content_hash(file.text.as_bytes()) >> 32)
}

struct ModelFileReader<'a> {
    file: &'a OwnFile,
    lines: Lines,
}

impl ModelFileReader<'_> {
    fn wrong(&self, at: usize, what: String) -> TomlError {
        TomlError { file: self.file.path.clone(), line: self.lines.line_at(at), what }
    }

    fn within<T: PartialOrd + std::fmt::Display>(
        &self,
        key: &str,
        value: &T,
        range: &RangeInclusive<T>,
        at: usize,
    ) -> Result<(), TomlError> {
        if range.contains(value) {
            return Ok(());
        }
        let (min, max) = (range.start(), range.end());
        Err(self.wrong(at, format!("`{key}` is {value}; expected {min} to {max}")))
    }

    fn tokens(&self, key: &str, own: Option<&Spanned<u64>>, base: u64) -> Result<u64, TomlError> {
        let Some(own) = own else { return Ok(base) };
        self.within(key, own.get_ref(), &TOKENS, own.span().start)?;
        Ok(*own.get_ref())
    }

    /// Looks a name up.
    fn named<'a, T>(
        &self,
        what: &str,
        name: &Spanned<String>,
        among: impl Iterator<Item = (&'a str, T)>,
    ) -> Result<T, TomlError> {
        let mut names = Vec::new();
        for (known, value) in among {
            if known == name.get_ref() {
                return Ok(value);
            }
            names.push(known);
        }
        let hint = nearest::hint(name.get_ref(), &names);
        Err(self
            .wrong(name.span().start, format!("there is no {what} `{}`; {hint}", name.get_ref())))
    }

    fn listed<'a>(&self, table: &'a Table, name: &Spanned<String>) -> Result<&'a Model, TomlError> {
        self.named("model", name, table.models.iter().map(|m| (&*m.name, m)))
    }

    fn weak(&self, table: &Table, own: &OwnModel) -> Result<(), TomlError> {
        let Some(weak) = &own.weak else { return Ok(()) };
        let (weaker, of) = (self.listed(table, weak)?, self.listed(table, &own.name)?);
        if weaker.provider == of.provider {
            return Ok(());
        }
        let what = format!(
            "`weak`: {} and {} have different providers; a session has one provider",
            weaker.name, of.name
        );
        Err(self.wrong(weak.span().start, what))
    }

    fn model(&self, table: &Table, rules: &Rules, own: &OwnModel) -> Result<Model, TomlError> {
        let name = own.name.get_ref();
        if name.trim().is_empty() || name.contains(char::is_control) {
            return Err(self.wrong(own.name.span().start, "`name` names no model".into()));
        }
        let base = match &own.like {
            Some(like) => Model { deprecated: None, ..self.listed(table, like)?.clone() },
            None => match table.models.iter().find(|m| *m.name == **name) {
                Some(known) => known.clone(),
                None => self.complete(table, own)?,
            },
        };
        let mut m = Model { name: name.as_str().into(), ..base.clone() };
        self.set_provider(table, rules, own, &mut m)?;
        m.window = self.tokens("window", own.window.as_ref(), m.window)?;
        m.max_output = self.tokens("max_output", own.max_output.as_ref(), m.max_output)?;
        m.published_output = m.max_output;
        if own.window.is_some() && own.input_limit.is_none() {
            // The limit belongs to the other window.
            m.input_limit = m.input_limit.filter(|limit| *limit < m.window);
        }
        if let Some(limit) = &own.input_limit {
            m.input_limit = Some(self.tokens("input_limit", Some(limit), 0)?);
        }
        self.fits(own, &m)?;
        if let Some(weak) = &own.weak {
            m.weak = weak.get_ref().as_str().into();
        } else if m.provider != base.provider || base.weak.is_empty() {
            m.weak = m.name.clone();
        }
        if let Some(cache) = &own.cache {
            m.cache = self.own_cache(rules, &m, cache)?;
        }
        if let Some(prices) = &own.prices {
            m.prices = self.prices(&m.cache, prices)?;
        }
        if let Some(can) = &own.capabilities {
            self.set_capabilities(&mut m, can)?;
        }
        m.keeps_thinking = own.keeps_thinking.unwrap_or(m.keeps_thinking);
        if let Some(speed) = &own.speed {
            let known = rules.speed.iter().map(|(name, l)| (name.as_str(), *l));
            m.latency = self.named("speed", speed, known)?;
        }
        if let Some(counting) = &own.counting {
            m.counting = self.counting(m.counting, counting)?;
        }
        if let Some(day) = &own.deprecated {
            m.deprecated = Some(day.as_str().into());
        }
        m.source = self.source(own, &m.source);
        Ok(m)
    }

    fn source(&self, own: &OwnModel, base: &str) -> String {
        let file = changed_by(self.file);
        let reason = own.source.as_ref().map(|s| format!(" ({s})")).unwrap_or_default();
        match &own.like {
            Some(like) => format!("{file}{reason}; else as {}: {base}", like.get_ref()),
            None if base.is_empty() => format!("{file}{reason}"),
            None => format!("{file}{reason}; else {base}"),
        }
    }

    /// Creates a model from the file alone.
    fn complete(&self, table: &Table, own: &OwnModel) -> Result<Model, TomlError> {
        let given = [
            ("provider", own.provider.is_some()),
            ("wire", own.wire.is_some()),
            ("window", own.window.is_some()),
            ("max_output", own.max_output.is_some()),
            ("cache", own.cache.as_ref().is_some_and(|c| c.get_ref().rule.is_some())),
            ("prices", own.prices.is_some()),
            ("speed", own.speed.is_some()),
        ];
        let missing: Vec<&str> = given.iter().filter(|g| !g.1).map(|g| g.0).collect();
        if !missing.is_empty() {
            let what = format!(
                "`{}` is a new model: name a listed model that it is `like`, or add {}",
                own.name.get_ref(),
                missing.join(", ")
            );
            return Err(self.wrong(own.name.span().start, what));
        }
        // The provider does not determine the vocabulary.
        let claude = own.provider.as_ref().is_some_and(|p| *p.get_ref() == Provider::Anthropic);
        let counting = if claude { Counting::CLAUDE } else { Counting::O200K };
        // The file has everything else.
        Ok(Model {
            wire: "".into(),
            weak: "".into(),
            input_limit: None,
            counting,
            capabilities: Capabilities::default(),
            deprecated: None,
            source: String::new(),
            keeps_thinking: true,
            ..table.models[0].clone()
        })
    }

    /// Sets provider and wire.
    fn set_provider(
        &self,
        table: &Table,
        rules: &Rules,
        own: &OwnModel,
        m: &mut Model,
    ) -> Result<(), TomlError> {
        let at = own.name.span().start;
        if let Some(provider) = &own.provider {
            m.provider = *provider.get_ref();
        }
        if let Some(wire) = &own.wire {
            let mut wires: Vec<_> = table.models.iter().map(|m| (&*m.wire, &m.wire)).collect();
            wires.sort_unstable();
            wires.dedup();
            let speaks = self.named("wire", wire, wires.into_iter())?;
            if m.wire != *speaks {
                m.capabilities = rules.wire.get(&**speaks).copied().unwrap_or_default();
            }
            m.wire = speaks.clone();
        }
        if (m.provider == Provider::Anthropic) != (*m.wire == *ANTHROPIC) {
            let wire = own.wire.as_ref().map(|w| w.span().start);
            let at = wire.or(own.provider.as_ref().map(|p| p.span().start)).unwrap_or(at);
            let what = format!("provider `anthropic` and wire `{ANTHROPIC}` require each other");
            return Err(self.wrong(at, what));
        }
        // Other models may name it as their weak model, and a session has one provider.
        match table.models.iter().find(|k| k.name == m.name && k.provider != m.provider) {
            None => Ok(()),
            Some(known) => {
                let what =
                    format!("{} has another provider; give yours another `name`", known.name);
                Err(self.wrong(at, what))
            }
        }
    }

    fn set_capabilities(
        &self,
        m: &mut Model,
        own: &Spanned<OwnCapabilities>,
    ) -> Result<(), TomlError> {
        let can = own.get_ref();
        if can.server_compaction == Some(true) && *m.wire != *ANTHROPIC {
            let what = format!("`server_compaction` exists on the wire `{ANTHROPIC}` only");
            return Err(self.wrong(own.span().start, what));
        }
        let before = m.capabilities;
        m.capabilities = Capabilities {
            server_compaction: can.server_compaction.unwrap_or(before.server_compaction),
            awareness: can.awareness.unwrap_or(before.awareness),
            ..before
        };
        Ok(())
    }

    fn fits(&self, own: &OwnModel, m: &Model) -> Result<(), TomlError> {
        let at = |key: &Option<Spanned<u64>>| {
            key.as_ref().or(own.window.as_ref()).map_or(own.name.span().start, |k| k.span().start)
        };
        if m.max_output > m.window {
            let what = format!(
                "a `max_output` of {} is more than the `window` of {}",
                m.max_output, m.window
            );
            return Err(self.wrong(at(&own.max_output), what));
        }
        match m.input_limit.filter(|limit| *limit > m.window) {
            None => Ok(()),
            Some(limit) => {
                let what = format!(
                    "an `input_limit` of {limit} is more than the `window` of {}",
                    m.window
                );
                Err(self.wrong(at(&own.input_limit), what))
            }
        }
    }

    fn own_cache(
        &self,
        rules: &Rules,
        m: &Model,
        own: &Spanned<OwnCache>,
    ) -> Result<CacheRule, TomlError> {
        let c = own.get_ref();
        let base = match &c.rule {
            None => m.cache,
            Some(rule) => {
                let known = rules.cache.iter().map(|(name, r)| (name.as_str(), *r));
                self.named("cache rule", rule, known)?
            }
        };
        let cache = CacheRule {
            entries: c.entries.unwrap_or(base.entries),
            minimum: c.minimum.unwrap_or(base.minimum),
            breakpoints: c.breakpoints.unwrap_or(base.breakpoints),
            lookback: c.lookback.or(base.lookback),
            considered: c.considered.or(base.considered),
            step: c.step.unwrap_or(base.step),
            short_ms: c.short_ms.unwrap_or(base.short_ms),
            long_ms: c.long_ms.or(base.long_ms),
            write_fee: c.write_fee.unwrap_or(base.write_fee),
        };
        self.cache(&cache, own.span().start)?;
        Ok(cache)
    }

    fn cache(&self, c: &CacheRule, at: usize) -> Result<(), TomlError> {
        self.within("minimum", &c.minimum, &TOKENS, at)?;
        self.within("step", &c.step, &TOKENS, at)?;
        self.within("short_ms", &c.short_ms, &MILLIS, at)?;
        c.long_ms.map_or(Ok(()), |ms| self.within("long_ms", &ms, &MILLIS, at))
    }

    fn prices(&self, cache: &CacheRule, own: &Spanned<OwnPrices>) -> Result<Prices, TomlError> {
        let (p, at) = (own.get_ref(), own.span().start);
        let write = |key: &str, price: Option<f64>, exists: bool| match price {
            None if cache.write_fee && exists => {
                let what = format!("its cache charges for writing: `prices` lacks `{key}`");
                Err(self.wrong(at, what))
            }
            price => Ok(price.unwrap_or(p.input)),
        };
        let prices = Prices {
            input: p.input,
            write_5m: write("write_5m", p.write_5m, true)?,
            write_1h: write("write_1h", p.write_1h, cache.long_ms.is_some())?,
            read: p.read,
            output: p.output,
            storage: p.storage,
            long_from: p.long_from,
            long_input_factor: p.long_input_factor.unwrap_or(1.0),
            long_output_factor: p.long_output_factor.unwrap_or(1.0),
        };
        let Prices { input, write_5m, write_1h, read, output, .. } = prices;
        for (key, usd) in [
            ("input", input),
            ("write_5m", write_5m),
            ("write_1h", write_1h),
            ("read", read),
            ("output", output),
            ("storage", prices.storage.unwrap_or(0.0)),
        ] {
            self.within(key, &usd, &USD, at)?;
        }
        self.within("long_input_factor", &prices.long_input_factor, &FACTOR, at)?;
        self.within("long_output_factor", &prices.long_output_factor, &FACTOR, at)?;
        Ok(prices)
    }

    fn counting(&self, base: Counting, own: &Spanned<OwnCounting>) -> Result<Counting, TomlError> {
        let (c, at) = (own.get_ref(), own.span().start);
        let base = match c.family {
            None => base,
            Some(Family::Claude) => Counting::CLAUDE,
            Some(Family::Openai) => Counting::for_provider(Provider::Openai),
            Some(Family::O200k) => Counting::O200K,
        };
        let OwnCounting { per_token, per_visible_token, per_block, per_image, .. } = c;
        for (key, factor) in [("per_token", per_token), ("per_visible_token", per_visible_token)] {
            factor.map_or(Ok(()), |f| self.within(key, &f, &FACTOR, at))?;
        }
        for (key, tokens) in [("per_block", per_block), ("per_image", per_image)] {
            tokens.map_or(Ok(()), |n| self.within(key, &n, &AROUND, at))?;
        }
        if per_token.or(*per_visible_token).is_none() && per_block.or(*per_image).is_none() {
            return Ok(base);
        }
        Ok(Counting {
            per_token: per_token.unwrap_or(base.per_token),
            per_visible_token: per_visible_token.or(*per_token).unwrap_or(base.per_visible_token),
            per_block: per_block.unwrap_or(base.per_block),
            per_image: per_image.unwrap_or(base.per_image),
            // The error was measured with other coefficients.
            error_pct: None,
            edges: (1.0, 1.0),
            ..base
        })
    }
}

#[cfg(test)]
mod tests;
