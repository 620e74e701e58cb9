//! What a program may take for one answer; settings that are not passed on to it.

use std::path::PathBuf;
use std::time::Duration;

use ctxbench_core::quantity::{parse_bytes, parse_quantity};
use ctxbench_strategies::SpecError;

/// What such settings begin with.
const PREFIX: &str = "exec.";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limits {
    /// Of one answer, without the time that ctxbench takes for calls back.
    pub(super) timeout: Duration,
    /// Bytes of one answer with all its calls.
    pub(super) output: u64,
    /// Calls back for one answer.
    pub(super) calls: u64,
    /// Each session is run twice, and the second run must go as the first.
    pub(super) twice: bool,
    /// Where every line is written to.
    pub(super) transcript: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            timeout: Duration::from_secs(60),
            output: 64 << 20,
            calls: 10_000,
            twice: false,
            transcript: None,
        }
    }
}

impl Limits {
    /// Takes a setting if it is one of these; `false` = it is the program's.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<bool, SpecError> {
        let Some(limit) = name.strip_prefix(PREFIX) else { return Ok(false) };
        let wrong = |expected: &str| {
            SpecError::Program(format!("`{name}` takes {expected}, not `{value}`"))
        };
        match limit {
            "timeout" => {
                self.timeout = seconds(value).ok_or_else(|| wrong("a time such as 60s or 5m"))?;
            }
            "output" => {
                let bytes = parse_bytes(value).filter(|n| *n > 0);
                self.output =
                    bytes.ok_or_else(|| wrong("bytes above 0, such as 64MiB, or 64m for 64,000,000"))?;
            }
            "calls" => {
                let calls = parse_quantity(value).filter(|n| *n > 0);
                self.calls = calls.ok_or_else(|| wrong("a whole number above 0 such as 10k"))?;
            }
            "twice" => self.twice = value.parse().map_err(|_| wrong("true or false"))?,
            "transcript" => self.transcript = Some(value.into()),
            _ => {
                let known = "exec.timeout, exec.output, exec.calls, exec.transcript and exec.twice";
                return Err(SpecError::Program(format!("there is no `{name}`; known are {known}")));
            }
        }
        Ok(true)
    }
}

/// `60`, `60s`, `5m`; above 0 and at most a day.
fn seconds(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.parse::<f64>().ok()? * unit;
    (seconds > 0.0 && seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_taken_and_everything_else_is_the_programs() {
        let mut l = Limits::default();
        assert_eq!(l.take("timeout", "5s"), Ok(false));
        assert_eq!(l.take("exec.timeout", "1.5s"), Ok(true));
        assert_eq!(l.take("exec.output", "64k"), Ok(true));
        assert_eq!(l.output, 64_000);
        assert_eq!(l.take("exec.output", "2KiB"), Ok(true));
        assert_eq!(l.take("exec.twice", "true"), Ok(true));
        let wanted = Limits {
            timeout: Duration::from_millis(1_500),
            output: 2_048,
            twice: true,
            ..Limits::default()
        };
        assert_eq!(l, wanted);
        for (name, value) in [
            ("exec.timeout", "0s"),
            ("exec.timeout", "soon"),
            ("exec.output", "-1"),
            ("exec.calls", "0"),
            ("exec.twice", "yes"),
            ("exec.tries", "3"),
        ] {
            let e = l.take(name, value).unwrap_err().to_string();
            assert!(e.contains(name), "{e}");
        }
    }
}
