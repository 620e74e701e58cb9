//! Cost of tokens in USD.

use serde::{Deserialize, Serialize};

use super::{Model, Prices};
use crate::request::Reply;
use crate::usage::Usage;

/// Cost in USD, by kind of token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Uncached input.
    pub input: f64,
    /// Cache writes for five minutes.
    pub cache_write_5m: f64,
    /// Cache writes for one hour.
    pub cache_write_1h: f64,
    pub cache_read: f64,
    pub output: f64,
}

impl Prices {
    /// Returns the prices of tokens times a factor.
    pub fn times(self, factor: f64) -> Prices {
        Prices {
            input: self.input * factor,
            write_5m: self.write_5m * factor,
            write_1h: self.write_1h * factor,
            read: self.read * factor,
            output: self.output * factor,
            ..self
        }
    }
}

impl Cost {
    /// Returns the total in USD.
    pub fn total(&self) -> f64 {
        self.input + self.cache_write_5m + self.cache_write_1h + self.cache_read + self.output
    }

    pub fn add(&mut self, o: &Cost) {
        self.input += o.input;
        self.cache_write_5m += o.cache_write_5m;
        self.cache_write_1h += o.cache_write_1h;
        self.cache_read += o.cache_read;
        self.output += o.output;
    }
}

/// Returns the cost of one request. The long-prompt factors apply per request, so price usages one by
/// one and not their sum.
pub fn cost(model: &Model, u: &Usage) -> Cost {
    const MILLION: f64 = 1e6;
    if !model.is_priced() {
        return Cost::default();
    }
    let p = &model.prices;
    let tier = p.long.iter().rev().find(|tier| u.prompt() > tier.from);
    let (input_factor, output_factor) =
        tier.map_or((1.0, 1.0), |tier| (tier.input_factor, tier.output_factor));
    let dollars = |tokens: u64, price: f64, factor: f64| tokens as f64 * price * factor / MILLION;
    Cost {
        input: dollars(u.input, p.input, input_factor),
        cache_write_5m: dollars(u.cache_write, p.write_5m, input_factor),
        cache_write_1h: dollars(u.cache_write_1h, p.write_1h, input_factor),
        cache_read: dollars(u.cache_read, p.read, input_factor),
        output: dollars(u.output, p.output, output_factor),
    }
}

/// Returns the cost of a reply. A compaction by the provider is a separate inner request, so that two
/// prompts below the long-prompt limit are never priced as one above it.
pub fn cost_of_reply(model: &Model, reply: &Reply) -> Cost {
    let mut sum = Cost::default();
    for u in iterations(reply) {
        sum.add(&cost(model, &u));
    }
    sum
}

/// Returns the billed usages of a reply, one per prompt: the provider's compaction, if any, and the
/// answer.
pub fn iterations(reply: &Reply) -> impl Iterator<Item = Usage> {
    let compaction = reply.billed.minus(&reply.usage);
    [compaction, reply.usage].into_iter().filter(|u| u.prompt() + u.output > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::find;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn every_kind_has_its_price() {
        // Sonnet 4.6: 3 / 3.75 / 6 / 0.30 / 15 USD per million.
        let u = Usage {
            input: 1_000,
            cache_write: 2_000,
            cache_write_1h: 3_000,
            cache_read: 100_000,
            output: 500,
            ..Usage::default()
        };
        let c = cost(find("claude-sonnet-4-6").unwrap(), &u);
        close(c.input, 0.003);
        close(c.cache_write_5m, 0.0075);
        close(c.cache_write_1h, 0.018);
        close(c.cache_read, 0.03);
        close(c.output, 0.0075);
        close(c.total(), 0.066);
    }

    #[test]
    fn a_long_prompt_pays_the_factors_on_everything_from_one_token_above_the_limit() {
        // gpt-5.4: 2.5 / 0.25 / 15; above 272,000 twice the input kinds and 1.5 times the output.
        let m = find("gpt-5.4").unwrap();
        let at = Usage { input: 72_000, cache_read: 200_000, output: 1_000, ..Usage::default() };
        close(cost(m, &at).total(), 0.18 + 0.05 + 0.015);
        let above = Usage { input: 72_001, ..at };
        close(cost(m, &above).total(), 2.0 * (0.1800025 + 0.05) + 0.0225);
        // Haiku 5.5: 0.10 / 0.01 / 0.50 up to 100,000; 0.50 / 0.05 / 2.50 above.
        let m = find("claude-haiku-5-5").unwrap();
        let u = Usage { input: 1_000, cache_read: 100_000, output: 1_000, ..Usage::default() };
        close(cost(m, &u).total(), 0.0005 + 0.005 + 0.0025);
    }

    #[test]
    fn other_long_prompt_tiers() {
        let total = |name: &str, input: u64, output: u64| {
            cost(find(name).unwrap(), &Usage { input, output, ..Usage::default() }).total()
        };
        // Gemini 2.5 Pro: 1.25 / 10 up to 200,000; 2.5 / 15 above.
        close(total("gemini-2.5-pro", 200_000, 1_000), 0.25 + 0.01);
        close(total("gemini-2.5-pro", 200_001, 1_000), 0.5000025 + 0.015);
        // Grok 4.7: 2 / 6; from 200,000 on 4 / 12. Grok 4.3: 1.25 / 2.5; above 200,000 twice.
        close(total("grok-4.7", 199_999, 1_000), 0.399998 + 0.006);
        close(total("grok-4.7", 200_000, 1_000), 0.8 + 0.012);
        close(total("grok-4.3", 200_000, 1_000), 0.25 + 0.0025);
        close(total("grok-4.3", 200_001, 1_000), 0.5000025 + 0.005);
        // gpt-5.6-sol with writes: 4 / 0.4 / 5 / 20; above 272,000 8 / 0.8 / 10 / 30.
        let u =
            Usage { cache_read: 272_000, cache_write: 1_000, output: 1_000, ..Usage::default() };
        close(cost(find("gpt-5.6-sol").unwrap(), &u).total(), 0.2176 + 0.01 + 0.03);
    }

    #[test]
    fn a_reply_with_a_compaction_inside_is_priced_prompt_by_prompt() {
        // Haiku 5.5: 90,000 compacted, 20,000 answered from: 110,000 in one sum would be above the
        // limit of 100,000; neither is.
        let m = find("claude-haiku-5-5").unwrap();
        let usage = Usage { input: 20_000, output: 1_000, ..Usage::default() };
        let billed = Usage { input: 110_000, output: 5_000, ..Usage::default() };
        let reply = Reply { usage, billed, ..Reply::default() };
        close(cost_of_reply(m, &reply).total(), 0.009 + 0.002 + 0.002 + 0.0005);
        // A compaction of 120,000 is above it, the answer is not.
        let billed = Usage { input: 140_000, output: 5_000, ..Usage::default() };
        close(cost_of_reply(m, &Reply { billed, ..reply }).total(), 0.06 + 0.01 + 0.002 + 0.0005);
        let plain = Reply { usage, billed: usage, ..Reply::default() };
        close(cost_of_reply(m, &plain).total(), 0.0025);
    }
}
