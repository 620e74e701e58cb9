//! Spend limits that refuse a request before it is sent.
//!
//! What a request will cost is an estimate: of its prompt, what it shares with the prompt before in
//! the same conversation costs a cache read while that entry lives, the rest a cache write (or
//! plain input where writing costs nothing more), and its reply is taken to be as long as the
//! longest one so far. So a limit may be passed by less than one request, never by two.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use ctxbench_core::block::Block;
use ctxbench_core::calendar::iso;
use ctxbench_core::model;
use ctxbench_core::request::{Purpose, Reply, Request, Usage};
use ctxbench_core::session::Millis;

/// How long a limit runs before it starts anew. Days and months are those of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// As long as the session.
    Session,
    /// A calendar day.
    Day,
    /// A calendar month.
    Month,
}

impl Period {
    fn word(self) -> &'static str {
        match self {
            Period::Session => "session",
            Period::Day => "day",
            Period::Month => "month",
        }
    }

    /// The period that a time falls into, by name: `2026-05-11`, `2026-05`.
    fn named(self, unix_ms: Millis) -> String {
        let length = match self {
            Period::Session => 0,
            Period::Day => "2026-05-11".len(),
            Period::Month => "2026-05".len(),
        };
        iso(unix_ms).chars().take(length).collect()
    }
}

/// So many dollars per period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpendLimit {
    /// USD, above 0.
    pub usd: f64,
    /// For how long.
    pub period: Period,
}

impl FromStr for SpendLimit {
    type Err = String;

    /// `2.50` or `2.50/session`, `20/day`, `400/month`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (usd, period) = text.split_once('/').unwrap_or((text, "session"));
        let period =
            [Period::Session, Period::Day, Period::Month].into_iter().find(|p| p.word() == period);
        let usd = usd
            .strip_prefix('$')
            .unwrap_or(usd)
            .parse::<f64>()
            .ok()
            .filter(|x| x.is_finite() && *x > 0.0);
        match (usd, period) {
            (Some(usd), Some(period)) => Ok(SpendLimit { usd, period }),
            _ => Err(format!(
                "`{text}` is no spend limit; expected dollars above 0, alone or per session, day \
                 or month, such as 2.50 or 20/day"
            )),
        }
    }
}

/// What a request is expected to cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Tokens expected.
    pub usage: Usage,
    /// USD.
    pub usd: f64,
}

/// Cents, or as many digits as a limit below a cent was given with.
fn dollars(usd: f64) -> String {
    let cents = format!("{usd:.2}");
    if cents.parse() == Ok(usd) { cents } else { usd.to_string() }
}

/// Why a request was not sent.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SpendRefused {
    /// It would go over a limit.
    #[error(
        "spend limit of {} USD per {}: {spent_usd:.4} USD are spent, {remaining_usd:.4} USD \
         remain, and this request of {prompt} tokens would \
         cost about {estimate_usd:.4} USD; it was not sent", dollars(limit.usd), limit.period.word()
    )]
    Over {
        /// The limit.
        limit: SpendLimit,
        /// Spent in its period, USD.
        spent_usd: f64,
        /// Left, USD.
        remaining_usd: f64,
        /// Expected cost of the request, USD.
        estimate_usd: f64,
        /// Its prompt, tokens.
        prompt: u64,
    },
    /// There is no price to hold it against.
    #[error("a spend limit is set and there is no price for model `{0}`; it was not asked")]
    Unpriced(String),
}

/// The prompt that the next one of its conversation is expected to continue.
struct Before {
    blocks: Vec<Arc<Block>>,
    model: Arc<str>,
    tools: u64,
    /// Until when its cache entry lives, ms since the start.
    until: Millis,
}

/// Holds the spending of one session, and of what came before it, against limits.
pub struct SpendGuard {
    limits: Vec<SpendLimit>,
    /// Unix time of the session's start, ms.
    began_ms: Millis,
    spent: BTreeMap<(&'static str, String), f64>,
    /// By conversation; `None` = the main one.
    before: BTreeMap<Option<String>, Before>,
    longest_reply: u64,
}

/// Length of the first reply, when none is known, tokens (assumed; replies of recorded sessions are
/// mostly shorter).
const FIRST_REPLY: u64 = 1_000;

impl SpendGuard {
    /// A guard for a session that begins at this Unix time in ms. Without limits it lets everything
    /// through.
    pub fn new(limits: Vec<SpendLimit>, began_ms: Millis) -> Self {
        SpendGuard {
            limits,
            began_ms,
            spent: BTreeMap::new(),
            before: BTreeMap::new(),
            longest_reply: 0,
        }
    }

    /// Whether the main conversation may send the request `at` ms after the start; what it is
    /// expected to cost.
    pub fn check(&self, request: &Request, at: Millis) -> Result<Estimate, SpendRefused> {
        self.check_of(None, request, at)
    }

    /// The same for a conversation: that of a subagent, or the main one.
    pub fn check_of(
        &self,
        agent: Option<&str>,
        request: &Request,
        at: Millis,
    ) -> Result<Estimate, SpendRefused> {
        if self.limits.is_empty() {
            return Ok(Estimate::default());
        }
        if !request.model.is_priced() {
            return Err(SpendRefused::Unpriced(request.model.name.to_string()));
        }
        let estimate = self.estimate(agent, request, at);
        for &limit in &self.limits {
            let spent_usd = self.spent(limit.period, at);
            if spent_usd + estimate.usd > limit.usd {
                let remaining_usd = (limit.usd - spent_usd).max(0.0);
                let prompt = estimate.usage.prompt();
                return Err(SpendRefused::Over {
                    limit,
                    spent_usd,
                    remaining_usd,
                    estimate_usd: estimate.usd,
                    prompt,
                });
            }
        }
        Ok(estimate)
    }

    fn estimate(&self, agent: Option<&str>, request: &Request, at: Millis) -> Estimate {
        let model = &request.model;
        let prompt = request.tokens();
        let mut usage = Usage { output: self.reply_length(request), ..Usage::default() };
        // A client that sets no breakpoints has nothing cached where the provider wants to be
        // asked.
        if !model.cache.needs_breakpoints() || !request.breakpoints.is_empty() {
            usage.cache_read = self.shared(agent, request, at);
            let rest = prompt.saturating_sub(usage.cache_read);
            match (model.cache.write_fee, request.ttl) {
                (true, ctxbench_core::request::Ttl::FiveMinutes) => usage.cache_write = rest,
                (true, ctxbench_core::request::Ttl::OneHour) => usage.cache_write_1h = rest,
                (false, _) => usage.input = rest,
            }
        } else {
            usage.input = prompt;
        }
        Estimate { usage, usd: model::cost(model, &usage).total() }
    }

    fn reply_length(&self, request: &Request) -> u64 {
        let expected = if self.longest_reply == 0 { FIRST_REPLY } else { self.longest_reply };
        request.max_tokens.map_or(expected, |most| expected.min(most))
    }

    /// Tokens at the beginning of the prompt that the cache still holds of the one before in the
    /// same conversation.
    fn shared(&self, agent: Option<&str>, request: &Request, at: Millis) -> u64 {
        let before = self.before.get(&agent.map(str::to_string));
        let Some(b) = before.filter(|b| b.model == request.model.name && at < b.until) else {
            return 0;
        };
        let tools = request.tools_tokens();
        if tools != b.tools {
            return 0;
        }
        let same = request.blocks.iter().zip(&b.blocks).take_while(|(x, y)| x.hash == y.hash);
        tools + same.map(|(x, _)| x.tokens(&request.model.counting)).sum::<u64>()
    }

    /// A request of the main conversation, sent `at`, was answered.
    pub fn paid(&mut self, request: &Request, reply: &Reply, at: Millis) {
        self.paid_of(None, request, reply, at);
    }

    /// The same for a conversation: that of a subagent, or the main one.
    pub fn paid_of(&mut self, agent: Option<&str>, request: &Request, reply: &Reply, at: Millis) {
        let model = &request.model;
        if !model.is_priced() {
            return;
        }
        let usd = model::cost_of_reply(model, reply).total();
        self.spend(usd, at);
        self.longest_reply = self.longest_reply.max(reply.billed.output);
        if request.purpose == Purpose::Sample {
            let before = Before {
                blocks: request.blocks.clone(),
                model: model.name.clone(),
                tools: request.tools_tokens(),
                until: at
                    .saturating_add(reply.latency_ms)
                    .saturating_add(model.cache.lifetime(request.ttl)),
            };
            self.before.insert(agent.map(str::to_string), before);
        }
    }

    /// Dollars spent `at` ms after the start, by this session or by others on the same purse.
    pub fn spend(&mut self, usd: f64, at: Millis) {
        for p in [Period::Session, Period::Day, Period::Month] {
            *self
                .spent
                .entry((p.word(), p.named(self.began_ms.saturating_add(at))))
                .or_default() += usd;
        }
    }

    /// USD spent in the period that this time falls into.
    pub fn spent(&self, period: Period, at: Millis) -> f64 {
        let key = (period.word(), period.named(self.began_ms.saturating_add(at)));
        self.spent.get(&key).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::tests::{block, request};
    use super::*;
    use ctxbench_core::block::BlockKind;

    const DAY_MS: Millis = 86_400_000;

    fn words(n: usize) -> String {
        vec!["word"; n].join(" ")
    }

    fn guard(limits: &[&str]) -> SpendGuard {
        SpendGuard::new(limits.iter().map(|l| l.parse().unwrap()).collect(), 0)
    }

    #[test]
    fn limits_are_written_as_people_say_them() {
        assert_eq!("2.50".parse(), Ok(SpendLimit { usd: 2.5, period: Period::Session }));
        assert_eq!("$20/day".parse(), Ok(SpendLimit { usd: 20.0, period: Period::Day }));
        assert_eq!("400/month".parse(), Ok(SpendLimit { usd: 400.0, period: Period::Month }));
        for no in ["", "0", "-1", "x", "5/week", "inf", "NaN"] {
            assert!(no.parse::<SpendLimit>().unwrap_err().contains("such as 2.50"), "{no}");
        }
    }

    #[test]
    fn the_estimate_by_hand_and_the_refusal() {
        let mut g = guard(&["1"]);
        let first = request(vec![block(BlockKind::User, &words(10_000))]);
        let size = first.tokens();
        // All of it is written to the cache, and 1,000 tokens come back: Sonnet 4.6, 3.75 and 15
        // USD per million.
        let e = g.check(&first, 0).unwrap();
        assert_eq!((e.usage.cache_write, e.usage.output), (size, 1_000));
        assert!((e.usd - (size as f64 * 3.75 + 15_000.0) / 1e6).abs() < 1e-12);
        let usage = Usage { cache_write: size, output: 2_000, ..Usage::default() };
        g.paid(&first, &Reply { usage, billed: usage, latency_ms: 1_000, ..Reply::default() }, 0);
        let mut blocks = first.blocks.clone();
        blocks.push(block(BlockKind::Output, &words(100)));
        let second = request(blocks);
        let new = second.tokens() - size;
        let warm = g.check(&second, 300_999).unwrap().usage;
        assert_eq!((warm.cache_read, warm.cache_write, warm.output), (size, new, 2_000));
        // The entry lives five minutes after the reply at 1 s.
        let cold = g.check(&second, 301_000).unwrap().usage;
        assert_eq!((cold.cache_read, cold.cache_write), (0, size + new));
        let spent = g.spent(Period::Session, 0);
        assert!((spent - (size as f64 * 3.75 + 30_000.0) / 1e6).abs() < 1e-12);
        g.spend(0.94 - spent, 302_000);
        // 0.06 are left, and about 0.068 are wanted: (10,000 words ≥ 10,000 tokens) × 3.75 + 2,000
        // × 15.
        let refused = g.check(&second, 302_000).unwrap_err();
        let SpendRefused::Over { remaining_usd, estimate_usd, .. } = &refused else {
            panic!("{refused}")
        };
        assert!((remaining_usd - 0.06).abs() < 1e-9 && *estimate_usd > 0.0675, "{refused}");
        let text = refused.to_string();
        assert!(
            text.contains("1.00 USD per session")
                && text.contains("0.0600 USD remain")
                && text.contains("not sent"),
            "{text}"
        );
    }

    #[test]
    fn a_subagent_in_between_does_not_make_the_caller_dearer() {
        let mut g = guard(&["1"]);
        let caller = request(vec![block(BlockKind::User, &words(10_000))]);
        let subagent = request(vec![block(BlockKind::User, "look it up")]);
        g.paid(&caller, &Reply::default(), 0);
        g.paid_of(Some("x"), &subagent, &Reply::default(), 1_000);
        let read = |agent, r: &Request| g.check_of(agent, r, 2_000).unwrap().usage.cache_read;
        assert_eq!(
            (read(None, &caller), read(Some("x"), &subagent)),
            (caller.tokens(), subagent.tokens())
        );
        assert_eq!(
            (read(Some("y"), &subagent), g.check(&caller, 2_000).unwrap().usage.cache_read),
            (0, caller.tokens())
        );
    }

    #[test]
    fn days_and_months_start_anew_and_sessions_do_not() {
        let small = request(vec![]);
        // 31 January 1970, an hour before midnight.
        let mut g = SpendGuard::new(vec![], 30 * DAY_MS + 23 * 3_600_000);
        g.spend(5.0, 0);
        g.spend(1.0, 3_600_000);
        let at = |p| (g.spent(p, 0), g.spent(p, 3_600_000));
        assert_eq!(at(Period::Session), (6.0, 6.0));
        assert_eq!((at(Period::Day), at(Period::Month)), ((5.0, 1.0), (5.0, 1.0)));
        assert_eq!(
            g.spent(Period::Month, 28 * DAY_MS),
            1.0,
            "28 February is the same month as the first"
        );
        assert_eq!(g.check(&small, 0), Ok(Estimate::default()), "no limit, no refusal");
    }

    #[test]
    fn a_model_without_a_price_is_not_asked() {
        let known = request(vec![]);
        let r = Request { model: known.model.named("mystery-1"), ..known };
        assert_eq!(guard(&["1"]).check(&r, 0), Err(SpendRefused::Unpriced("mystery-1".into())));
        let limit = "0.004".parse().unwrap();
        let over = SpendRefused::Over {
            limit,
            spent_usd: 0.0,
            remaining_usd: 0.004,
            estimate_usd: 0.01,
            prompt: 9,
        };
        assert!(over.to_string().starts_with("spend limit of 0.004 USD per session: "), "{over}");
    }
}
