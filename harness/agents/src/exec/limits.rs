//! Limits of one answer of a program: the settings `exec.*`, which are not passed to it.

use std::path::PathBuf;
use std::time::Duration;

use ctxbench_strategies::SpecError;
use ctxbench_util::quantity::{parse_bytes, parse_quantity};

const PREFIX: &str = "exec.";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExecLimits {
    /// Time for one answer, without the time that ctxbench needs for calls back.
    pub(super) timeout: Duration,
    /// Bytes of one answer and its calls.
    pub(super) output: u64,
    /// Calls back during one answer.
    pub(super) calls: u64,
    /// Whether each session is run twice to check that the program is deterministic.
    pub(super) twice: bool,
    pub(super) transcript: Option<PathBuf>,
}

impl Default for ExecLimits {
    fn default() -> ExecLimits {
        ExecLimits {
            timeout: Duration::from_secs(60),
            output: 64 << 20,
            calls: 10_000,
            twice: false,
            transcript: None,
        }
    }
}

impl ExecLimits {
    /// Applies a setting. Returns `false` for a setting of the program.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<bool, SpecError> {
        let Some(limit) = name.strip_prefix(PREFIX) else { return Ok(false) };
        let wrong = |expected: &str| {
            SpecError::Program(format!("`{name}` takes {expected}, not `{value}`"))
        };
        match limit {
            "timeout" => {
                self.timeout =
                    parse_duration(value).ok_or_else(|| wrong("a time such as 60s or 5m"))?;
            }
            "output" => {
                let bytes = parse_bytes(value).filter(|n| *n > 0);
                self.output = bytes
                    .ok_or_else(|| wrong("bytes above 0, such as 64m (64,000,000) or 64MiB"))?;
            }
            "calls" => {
                let calls = parse_quantity(value).filter(|n| *n > 0);
                self.calls = calls.ok_or_else(|| wrong("a whole number above 0 such as 10k"))?;
            }
            "twice" => self.twice = value.parse().map_err(|_| wrong("true or false"))?,
            "transcript" => self.transcript = Some(value.into()),
            _ => {
                let known = "exec.timeout, exec.output, exec.calls, exec.transcript and exec.twice";
                return Err(SpecError::Program(format!(
                    "unknown setting `{name}`; known are {known}"
                )));
            }
        }
        Ok(true)
    }
}

/// Parses `60`, `60s` or `5m`, above 0 and at most a day.
fn parse_duration(text: &str) -> Option<Duration> {
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
    fn take_exec_setting_sets_limit_and_leaves_others() {
        let mut l = ExecLimits::default();
        assert_eq!(l.take("timeout", "5s"), Ok(false));
        assert_eq!(l.take("exec.timeout", "1.5s"), Ok(true));
        assert_eq!(l.take("exec.output", "64k"), Ok(true));
        assert_eq!(l.output, 64_000);
        assert_eq!(l.take("exec.output", "2KiB"), Ok(true));
        assert_eq!(l.take("exec.twice", "true"), Ok(true));
        let wanted = ExecLimits {
            timeout: Duration::from_millis(1_500),
            output: 2_048,
            twice: true,
            ..ExecLimits::default()
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
