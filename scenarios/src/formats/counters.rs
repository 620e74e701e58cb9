//! The provider's counters of a call, and remarks on those that cannot be right.

use ctxbench_session::Billing;
use serde_json::{Map, Value};

use super::recording::RecordingStep;
use crate::bounds::{self, TAKEN};

/// Provider's counters of one call, tokens. Input, read and write add up to the prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Input tokens neither read from nor written to the cache.
    pub input: u64,
    /// Input tokens read from the cache.
    pub read: u64,
    /// Input tokens written to the cache.
    pub write: u64,
    pub output: u64,
    /// Written tokens with the long lifetime; the others have the short one. `None` if the
    /// lifetime is unknown.
    pub write_1h: Option<u64>,
    pub billing: Box<Billing>,
    /// Values that are not numbers of tokens.
    pub wrong: Vec<InvalidCounter>,
}

/// Counter that is not a number of tokens, or more than the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCounter {
    /// Name and value of the counter.
    pub told: String,
    pub taken: u64,
    /// Tokens of the prompt, which the counter exceeds.
    pub prompt: Option<u64>,
    /// Line of the counter, if it is not that of its reply.
    pub line: Option<usize>,
}

impl Counters {
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.read).saturating_add(self.write)
    }

    /// Returns the tokens of the prompt and the reply.
    pub(super) fn context(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// Returns whether most cache writes have the long lifetime. `None` if nothing was written or
    /// the lifetime is unknown.
    pub fn is_long(&self) -> Option<bool> {
        self.write_1h.filter(|_| self.write > 0).map(|long| long > self.write / 2)
    }

    /// Sets the identity of the call, if the recording has one. Its prompt and its price are part of
    /// the identity, because gateways and tests number their replies from 1.
    pub(super) fn called<'a>(mut self, id: impl Into<Option<&'a str>>) -> Counters {
        let Some(id) = id.into() else { return self };
        let Counters { input, read, write, billing: b, .. } = &self;
        let mut name = format!("{id} {input}+{read}+{write}");
        for term in [&b.speed, &b.tier, &b.region].into_iter().flatten() {
            name += &format!(" {term}");
        }
        if b.web_searches > 0 {
            name += &format!(" {} searches", b.web_searches);
        }
        self.billing.call_id = Some(name.into());
        self
    }

    /// Converts counters of a provider that includes read and written tokens in the input.
    pub(super) fn of_whole_prompt(mut self) -> Counters {
        let (read, prompt) = (self.read.min(self.input), Some(self.input));
        if self.read.saturating_add(self.write) > self.input {
            let written = match self.write {
                0 => String::new(),
                n => format!(" and {n} written to it"),
            };
            let told = format!("{} tokens read from the cache{written}", self.read);
            let invalid = InvalidCounter { told, taken: self.input, prompt, line: None };
            self.wrong.push(invalid);
        }
        let write = self.write.min(self.input - read);
        Counters { input: self.input - read - write, read, write, ..self }
    }

    /// Reads counters by their names: input, read, write, output.
    pub fn read(usage: &Map<String, Value>, names: [&str; 4]) -> Counters {
        let mut wrong = Vec::new();
        let [input, read, write, output] = names.map(|name| count(usage, name, &mut wrong));
        Counters { input, read, write, output, wrong, ..Counters::default() }
    }

    /// Adds an output counter with another name.
    pub(super) fn and_output(mut self, usage: &Map<String, Value>, name: &str) -> Counters {
        let more = count(usage, name, &mut self.wrong);
        Counters { output: self.output.saturating_add(more), ..self }
    }
}

/// Maximum tokens of a counter; larger values are not numbers of tokens.
const MAX_TOKENS: u64 = 1 << 40;

/// Returns a whole number of tokens. Some programs write numbers with a decimal point.
pub(super) fn tokens(value: &Value) -> Option<u64> {
    let whole = |f: &f64| f.fract() == 0.0 && (0.0..=MAX_TOKENS as f64).contains(f);
    value.as_u64().or_else(|| value.as_f64().filter(whole).map(|f| f as u64))
}

/// Returns a cost in USD that the program itself computed. Programs write 0 where they know no price.
pub(super) fn cost(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|usd| *usd > 0.0)
}

/// Reads a counter. A value that is not a number of tokens becomes 0, and an impossibly large value
/// becomes the maximum.
fn count(usage: &Map<String, Value>, name: &str, wrong: &mut Vec<InvalidCounter>) -> u64 {
    let Some(value) = usage.get(name).filter(|v| !v.is_null()) else { return 0 };
    let taken = match tokens(value) {
        Some(n) if n <= MAX_TOKENS => return n,
        Some(n) => n,
        None if value.as_f64().is_some_and(|f| f > MAX_TOKENS as f64) => bounds::TOKENS,
        None => 0,
    };
    let told = format!("{name} is {value}");
    wrong.push(InvalidCounter { told, taken, prompt: None, line: None });
    taken
}

/// Describes invalid counters, and the values used instead: the first one that inflates the figures,
/// the first that is no number of tokens, and the first that exceeds its prompt. Counters that are
/// merely too large are reported together with the bounds.
pub(super) fn wrong_counters<'a>(
    steps: impl IntoIterator<Item = &'a RecordingStep>,
    file: &str,
) -> Vec<String> {
    let mut all: Vec<(usize, &InvalidCounter)> = Vec::new();
    for step in steps {
        let counters = step.what.any_reply().and_then(|reply| reply.counters.as_ref().ok());
        let wrong = counters.into_iter().flat_map(|c| &c.wrong);
        all.extend(wrong.map(|w| (w.line.unwrap_or(step.line), w)));
    }
    let is_of: [fn(&InvalidCounter) -> bool; 3] = [
        |w| w.prompt.is_none() && w.taken == bounds::TOKENS,
        |w| w.prompt.is_none() && w.taken == 0,
        |w| w.prompt.is_some(),
    ];
    let note = |is_of: fn(&InvalidCounter) -> bool| {
        let mut all = all.iter().filter(|(_, w)| is_of(w));
        let (line, InvalidCounter { told, taken, prompt, .. }) = all.next()?;
        let (problem, meaning) = match prompt {
            Some(n) => (format!("which is more than the prompt of {n} tokens"), ""),
            None if *taken == 0 => ("which is not a number of tokens".to_string(), ""),
            None => ("which is not a number of tokens".to_string(), ", the largest there is"),
        };
        let more = match all.count() {
            0 => String::new(),
            1 => "; so is one more counter".to_string(),
            n => format!("; so are {n} more counters"),
        };
        Some(format!("{file}:{line}: {told}, {problem}{TAKEN}{taken}{meaning}{more}"))
    };
    is_of.into_iter().filter_map(note).collect()
}

/// Returns counters, or the usual reason why they are missing.
pub(super) fn known(counters: Option<Counters>) -> Result<Counters, String> {
    counters.ok_or_else(|| "a reply without counters".into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_counter_is_a_whole_number_of_tokens() {
        let read = |value: Value| {
            let usage = json!({"output": value});
            let all =
                Counters::read(usage.as_object().unwrap(), ["input", "read", "write", "output"]);
            (all.output, all.wrong.into_iter().next().map(|w| (w.told, w.taken)))
        };
        let wrong = |told: &str, taken: u64| Some((format!("output is {told}"), taken));
        assert_eq!(read(json!(20)), (20, None));
        assert_eq!(read(json!(20.0)), (20, None));
        assert_eq!(read(json!(null)), (0, None));
        assert_eq!(read(json!(20.5)), (0, wrong("20.5", 0)));
        assert_eq!(read(json!(-20)), (0, wrong("-20", 0)));
        assert_eq!(read(json!("20")), (0, wrong("\"20\"", 0)));
        assert_eq!(read(json!(1e23)), (1_000_000_000, wrong("1e+23", 1_000_000_000)));
        assert_eq!(read(json!(u64::MAX)), (u64::MAX, wrong("18446744073709551615", u64::MAX)));
    }
}
