//! Dollars for tokens.

use serde::{Deserialize, Serialize};

use super::models::Model;
use crate::request::Usage;

/// What tokens cost, in USD, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Uncached input, USD.
    pub input: f64,
    /// Cache writes for five minutes, USD.
    pub cache_write_5m: f64,
    /// Cache writes for one hour, USD.
    pub cache_write_1h: f64,
    /// Cache reads, USD.
    pub cache_read: f64,
    /// Output, USD.
    pub output: f64,
}

impl Cost {
    /// All kinds together, USD.
    pub fn total(&self) -> f64 {
        self.input + self.cache_write_5m + self.cache_write_1h + self.cache_read + self.output
    }

    /// Adds another cost.
    pub fn add(&mut self, o: &Cost) {
        self.input += o.input;
        self.cache_write_5m += o.cache_write_5m;
        self.cache_write_1h += o.cache_write_1h;
        self.cache_read += o.cache_read;
        self.output += o.output;
    }
}

/// Cost of one request by the model's price list. A prompt above the long-prompt limit pays its factors on everything, so usages of several
/// requests are priced one by one and not as a sum.
pub fn cost(model: &Model, usage: &Usage) -> Cost {
    priced(model, usage, model.prices.read)
}

/// The same with cache reads at `share` of the input price, such as 0.05.
pub fn cost_with_read_share(model: &Model, usage: &Usage, share: f64) -> Cost {
    priced(model, usage, model.prices.input * share)
}

fn priced(model: &Model, u: &Usage, read: f64) -> Cost {
    const MILLION: f64 = 1e6;
    let p = &model.prices;
    let long = p.long_from.is_some_and(|limit| u.prompt() > limit);
    let (input_factor, output_factor) = if long { (p.long_input_factor, p.long_output_factor) } else { (1.0, 1.0) };
    let dollars = |tokens: u64, price: f64, factor: f64| tokens as f64 * price * factor / MILLION;
    Cost {
        input: dollars(u.input, p.input, input_factor),
        cache_write_5m: dollars(u.cache_write, p.write_5m, input_factor),
        cache_write_1h: dollars(u.cache_write_1h, p.write_1h, input_factor),
        cache_read: dollars(u.cache_read, read, input_factor),
        output: dollars(u.output, p.output, output_factor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::find;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn every_kind_has_its_price() {
        // Sonnet 4.6: 3 / 3.75 / 6 / 0.30 / 15 USD per million.
        let u = Usage { input: 1_000, cache_write: 2_000, cache_write_1h: 3_000, cache_read: 100_000, output: 500, ..Usage::default() };
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
    fn reads_can_be_repriced() {
        let m = find("claude-sonnet-4-6").unwrap();
        let u = Usage { cache_read: 1_000_000, output: 1_000, ..Usage::default() };
        close(cost(m, &u).total(), 0.3 + 0.015);
        close(cost_with_read_share(m, &u, 0.05).total(), 0.15 + 0.015);
        close(cost_with_read_share(m, &u, 0.025).total(), 0.075 + 0.015);
    }
}
