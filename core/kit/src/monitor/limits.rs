//! Spend limits, checked before a request is sent.
//!
//! The cost of a request is an estimate. The prefix shared with the previous prompt of the same
//! conversation counts as a cache read while that cache entry is alive, the rest as a cache write
//! (or plain input if writing costs no more). The reply is assumed to be as long as the longest one
//! so far. A limit can therefore be exceeded by less than one request.

use std::collections::BTreeMap;
use std::str::FromStr;

use ctxbench_core::model;
use ctxbench_core::prelude::*;
use ctxbench_util::calendar::iso;

/// The period of a limit. Days and months are in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    Session,
    Day,
    Month,
}

impl Period {
    fn name(self) -> &'static str {
        match self {
            Period::Session => "session",
            Period::Day => "day",
            Period::Month => "month",
        }
    }

    /// Returns the period that contains a time, such as `2026-05-11` or `2026-05`.
    fn key(self, unix_ms: Millis) -> String {
        let length = match self {
            Period::Session => 0,
            Period::Day => "2026-05-11".len(),
            Period::Month => "2026-05".len(),
        };
        iso(unix_ms).chars().take(length).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpendLimit {
    /// USD; above 0.
    pub usd: f64,
    pub period: Period,
}

impl FromStr for SpendLimit {
    type Err = String;

    /// Parses `2.50` or `2.50/session`, `20/day`, `400/month`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (usd, period) = text.split_once('/').unwrap_or((text, "session"));
        let period =
            [Period::Session, Period::Day, Period::Month].into_iter().find(|p| p.name() == period);
        let usd = usd
            .strip_prefix('$')
            .unwrap_or(usd)
            .parse::<f64>()
            .ok()
            .filter(|x| x.is_finite() && *x > 0.0);
        match (usd, period) {
            (Some(usd), Some(period)) => Ok(SpendLimit { usd, period }),
            _ => Err(format!(
                "`{text}` is not a spend limit; expected dollars above 0 per session, day or \
                 month, such as 2.50 or 20/day"
            )),
        }
    }
}

/// Formats dollars with two decimals, or with all digits for a fraction of a cent.
fn dollars(usd: f64) -> String {
    let cents = format!("{usd:.2}");
    if cents.parse() == Ok(usd) { cents } else { usd.to_string() }
}

/// The previous prompt of a conversation.
struct PreviousPrompt {
    blocks: Vec<Arc<Block>>,
    model: Arc<str>,
    tools: u64,
    /// Time when the cache entry expires, ms since the start.
    expires: Millis,
}

/// Checks the spending of a session, and earlier spending in the same period, against limits.
pub struct SpendGuard {
    limits: Vec<SpendLimit>,
    /// Unix time of the session's start in ms.
    start_ms: Millis,
    spent: BTreeMap<(&'static str, String), f64>,
    /// Previous prompt by conversation; `None` = the main one.
    previous: BTreeMap<Option<String>, PreviousPrompt>,
    longest_reply: u64,
}

/// Assumed length of the first reply in tokens. Most replies in recorded sessions are shorter.
const FIRST_REPLY: u64 = 1_000;

impl SpendGuard {
    /// Creates a guard for a session that starts at a Unix time in ms. Without limits it refuses
    /// nothing.
    pub fn new(limits: Vec<SpendLimit>, start_ms: Millis) -> Self {
        SpendGuard {
            limits,
            start_ms,
            spent: BTreeMap::new(),
            previous: BTreeMap::new(),
            longest_reply: 0,
        }
    }

    /// Checks a request of a subagent, or of the main conversation if `agent` is `None`, `at` ms after
    /// the start.
    ///
    /// # Errors
    ///
    /// The reason why the request is not sent: it would exceed a limit, or the model has no price.
    pub fn check(&self, agent: Option<&str>, request: &Request, at: Millis) -> Result<(), String> {
        if self.limits.is_empty() {
            return Ok(());
        }
        let model = &request.model;
        if !model.is_priced() {
            return Err(format!(
                "model `{}` has no price, so the spend limit cannot be checked; the request was not \
                 sent",
                model.name
            ));
        }
        let usage = self.estimate(agent, request, at);
        let usd = model::cost(model, &usage).total();
        for limit in &self.limits {
            let spent = self.spent(limit.period, at);
            if spent + usd > limit.usd {
                return Err(format!(
                    "spend limit of {} USD per {}: {spent:.4} USD are spent, {:.4} USD remain, and \
                     this request of {} tokens would cost about {usd:.4} USD; it was not sent",
                    dollars(limit.usd),
                    limit.period.name(),
                    (limit.usd - spent).max(0.0),
                    usage.prompt()
                ));
            }
        }
        Ok(())
    }

    /// Returns the expected usage of a request.
    fn estimate(&self, agent: Option<&str>, request: &Request, at: Millis) -> Usage {
        let model = &request.model;
        let prompt = request.tokens();
        let expected = if self.longest_reply == 0 { FIRST_REPLY } else { self.longest_reply };
        let output = request.max_tokens.map_or(expected, |max| expected.min(max));
        let mut usage = Usage { output, ..Usage::default() };
        // Without breakpoints nothing is cached, if the provider requires them.
        if !model.cache.needs_breakpoints() || !request.breakpoints.is_empty() {
            usage.cache_read = self.shared(agent, request, at);
            let rest = prompt.saturating_sub(usage.cache_read);
            match (model.cache.write_fee, request.ttl) {
                (true, ctxbench_core::usage::Ttl::FiveMinutes) => usage.cache_write = rest,
                (true, ctxbench_core::usage::Ttl::OneHour) => usage.cache_write_1h = rest,
                (false, _) => usage.input = rest,
            }
        } else {
            usage.input = prompt;
        }
        usage
    }

    /// Returns the number of prefix tokens that are cached from the previous prompt of the
    /// conversation.
    fn shared(&self, agent: Option<&str>, request: &Request, at: Millis) -> u64 {
        let previous = self.previous.get(&agent.map(str::to_string));
        let Some(b) = previous.filter(|b| b.model == request.model.name && at < b.expires) else {
            return 0;
        };
        let tools = request.tools_tokens();
        if tools != b.tools {
            return 0;
        }
        let same = request.blocks.iter().zip(&b.blocks).take_while(|(x, y)| x.hash == y.hash);
        tools + same.map(|(x, _)| x.tokens(&request.model.counting)).sum::<u64>()
    }

    /// Records the cost of an answered request of a subagent, or of the main conversation if `agent`
    /// is `None`, sent at `at`.
    pub fn record(&mut self, agent: Option<&str>, request: &Request, reply: &Reply, at: Millis) {
        let model = &request.model;
        if !model.is_priced() {
            return;
        }
        let usd = model::cost_of_reply(model, reply).total();
        self.spend(usd, at);
        self.longest_reply = self.longest_reply.max(reply.billed.output);
        if request.purpose == Purpose::Sample {
            let previous = PreviousPrompt {
                blocks: request.blocks.clone(),
                model: model.name.clone(),
                tools: request.tools_tokens(),
                expires: at
                    .saturating_add(reply.latency_ms)
                    .saturating_add(model.cache.lifetime(request.ttl)),
            };
            self.previous.insert(agent.map(str::to_string), previous);
        }
    }

    /// Adds dollars spent `at` ms after the start.
    fn spend(&mut self, usd: f64, at: Millis) {
        for p in [Period::Session, Period::Day, Period::Month] {
            *self.spent.entry((p.name(), p.key(self.start_ms.saturating_add(at)))).or_default() +=
                usd;
        }
    }

    /// Returns the USD spent in the period that contains `at`.
    fn spent(&self, period: Period, at: Millis) -> f64 {
        let key = (period.name(), period.key(self.start_ms.saturating_add(at)));
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
    fn spend_limit_parses_amount_and_period() {
        assert_eq!("2.50".parse(), Ok(SpendLimit { usd: 2.5, period: Period::Session }));
        assert_eq!("$20/day".parse(), Ok(SpendLimit { usd: 20.0, period: Period::Day }));
        assert_eq!("400/month".parse(), Ok(SpendLimit { usd: 400.0, period: Period::Month }));
        for invalid in ["", "0", "-1", "x", "5/week", "inf", "NaN"] {
            let error = invalid.parse::<SpendLimit>().unwrap_err();
            assert!(error.contains("such as 2.50"), "{invalid}");
        }
    }

    #[test]
    fn check_estimates_cost_and_refuses_over_limit() {
        let mut g = guard(&["1"]);
        let first = request(vec![block(BlockKind::User, &words(10_000))]);
        let size = first.tokens();
        // The prompt is written to the cache, and the reply has 1,000 tokens. Sonnet 4.6 costs 3.75
        // and 15 USD per million.
        let e = g.estimate(None, &first, 0);
        assert_eq!((e.cache_write, e.output), (size, 1_000));
        let usage = Usage { cache_write: size, output: 2_000, ..Usage::default() };
        g.record(
            None,
            &first,
            &Reply { usage, billed: usage, latency_ms: 1_000, ..Reply::default() },
            0,
        );
        let mut blocks = first.blocks.clone();
        blocks.push(block(BlockKind::Output, &words(100)));
        let second = request(blocks);
        let new = second.tokens() - size;
        let warm = g.estimate(None, &second, 300_999);
        assert_eq!((warm.cache_read, warm.cache_write, warm.output), (size, new, 2_000));
        // The entry expires five minutes after the reply at 1 s.
        let cold = g.estimate(None, &second, 301_000);
        assert_eq!((cold.cache_read, cold.cache_write), (0, size + new));
        let spent = g.spent(Period::Session, 0);
        assert!((spent - (size as f64 * 3.75 + 30_000.0) / 1e6).abs() < 1e-12);
        g.spend(0.94 - spent, 302_000);
        // 0.06 USD are left and about 0.068 are needed: 10,000 tokens × 3.75 + 2,000 × 15.
        let text = g.check(None, &second, 302_000).unwrap_err();
        assert!(
            text.starts_with("spend limit of 1.00 USD per session: ")
                && text.contains("0.0600 USD remain")
                && text.contains("not sent"),
            "{text}"
        );
    }

    #[test]
    fn check_after_subagent_still_expects_cache_read() {
        let mut g = guard(&["1"]);
        let caller = request(vec![block(BlockKind::User, &words(10_000))]);
        let subagent = request(vec![block(BlockKind::User, "look it up")]);
        g.record(None, &caller, &Reply::default(), 0);
        g.record(Some("x"), &subagent, &Reply::default(), 1_000);
        let read = |agent, r: &Request| g.estimate(agent, r, 2_000).cache_read;
        assert_eq!(
            (read(None, &caller), read(Some("x"), &subagent)),
            (caller.tokens(), subagent.tokens())
        );
        assert_eq!((read(Some("y"), &subagent), read(None, &caller)), (0, caller.tokens()));
    }

    #[test]
    fn spent_resets_per_day_and_month() {
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
            "28 February is in the same month as 1 February"
        );
        assert_eq!(g.check(None, &small, 0), Ok(()), "no limit is set");
    }

    #[test]
    fn check_model_without_price_is_refused() {
        let known = request(vec![]);
        let r = Request { model: known.model.named("mystery-1"), ..known };
        let refused = guard(&["1"]).check(None, &r, 0).unwrap_err();
        assert!(refused.starts_with("model `mystery-1` has no price"), "{refused}");
        assert_eq!((dollars(0.004), dollars(1.0)), ("0.004".into(), "1.00".into()));
    }
}
