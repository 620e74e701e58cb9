//! Progress messages: completed items, rate and remaining time.

use std::time::Duration;

/// Interval between two lines if the output cannot overwrite a line.
const EVERY: Duration = Duration::from_secs(30);

/// State of a progress display. The caller passes the time.
#[derive(Debug)]
pub struct Pace {
    what: &'static str,
    total: u64,
    /// Total weight, in a unit that is proportional to time, such as bytes.
    weight: u64,
    done: u64,
    done_weight: u64,
    told: Duration,
}

impl Pace {
    /// Creates a display for `total` items with this total weight.
    pub fn new(what: &'static str, total: u64, weight: u64) -> Pace {
        Pace { what, total, weight, done: 0, done_weight: 0, told: Duration::ZERO }
    }

    /// Counts a completed item.
    pub fn step(&mut self, weight: u64) {
        self.done += 1;
        self.done_weight += weight;
    }

    /// Formats the progress at `now`, the time since the start.
    pub fn line(&self, now: Duration) -> String {
        let (done, total, what) = (self.done, self.total, self.what);
        let seconds = now.as_secs_f64();
        let mut line = format!("{done} of {total} {what}");
        if done > 0 && seconds > 0.0 {
            let rate = done as f64 / seconds;
            line += &match rate {
                rate if rate < 0.1 => format!(", {} each", format_duration(1.0 / rate)),
                rate if rate < 10.0 => format!(", {rate:.1} per second"),
                rate => format!(", {rate:.0} per second"),
            };
            let left = self.weight.saturating_sub(self.done_weight);
            if left > 0 && self.done_weight > 0 {
                line += &format!(
                    ", about {} left",
                    format_duration(seconds * left as f64 / self.done_weight as f64)
                );
            }
        }
        line
    }

    /// Returns a line at most every 30 s, for output that cannot overwrite a line.
    pub fn due(&mut self, now: Duration) -> Option<String> {
        if now < self.told + EVERY || self.done >= self.total {
            return None;
        }
        self.told = now;
        Some(self.line(now))
    }
}

fn format_duration(seconds: f64) -> String {
    match seconds.round() as u64 {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s.div_ceil(60)),
        s => format!("{} h", s.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_line_comes_every_half_minute() {
        let mut pace = Pace::new("files", 100, 1_000);
        pace.step(100);
        assert_eq!(pace.due(at(29)), None);
        // 10 % of the weight took 30 s.
        let line = "1 of 100 files, 30 s each, about 5 min left";
        assert_eq!(pace.due(at(30)).as_deref(), Some(line));
        assert_eq!(pace.due(at(59)), None);
        pace.step(400);
        let line = "2 of 100 files, 30 s each, about 60 s left";
        assert_eq!(pace.due(at(60)).as_deref(), Some(line));
    }

    #[test]
    fn what_is_short_or_done_says_nothing() {
        let mut pace = Pace::new("rows", 1, 1);
        assert_eq!(pace.line(at(0)), "0 of 1 rows");
        pace.step(1);
        assert_eq!(pace.due(at(90)), None);
    }

    #[test]
    fn times_are_told_in_units_of_people() {
        let all = [(1.4, "1 s"), (119.0, "119 s"), (121.0, "3 min"), (7_300.0, "3 h")];
        for (seconds, words) in all {
            assert_eq!(format_duration(seconds), words);
        }
    }
}
