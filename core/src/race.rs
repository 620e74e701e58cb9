//! Background summaries race the user: for each one, when it was asked for, when it came, and how the race ended.

use serde::{Deserialize, Serialize};

use crate::session::Millis;
use crate::world::Task;

/// How the race of a background summary ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was there when it was first needed, and was used.
    InTime,
    /// The conversation waited for it and used it.
    LateWaited,
    /// It was needed and not there: the conversation went on without it. It was used later or given up.
    LateProceeded,
    /// It was given up before it was needed, or the session ended first.
    Cancelled,
    /// It came, and what it covers no longer stood as it was: thrown away.
    Stale,
    /// No usable summary came.
    Failed,
}

impl Fate {
    /// All of them, in the order of the columns.
    pub const ALL: [Fate; 6] = [Fate::InTime, Fate::LateWaited, Fate::LateProceeded, Fate::Cancelled, Fate::Stale, Fate::Failed];

    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Fate::InTime => "in_time",
            Fate::LateWaited => "late_waited",
            Fate::LateProceeded => "late_proceeded",
            Fate::Cancelled => "cancelled",
            Fate::Stale => "stale",
            Fate::Failed => "failed",
        }
    }

    /// The words in a remark.
    fn phrase(self) -> &'static str {
        match self {
            Fate::InTime => "in time",
            Fate::LateWaited => "late and waited for",
            Fate::LateProceeded => "late, gone on without",
            Fate::Cancelled => "cancelled",
            Fate::Stale => "stale",
            Fate::Failed => "failed",
        }
    }
}

/// One background summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundRecord {
    /// Number of its first request in the run.
    pub request: u64,
    /// Virtual time at which that was sent, ms.
    pub spawned_ms: Millis,
    /// Requests that it took: further models and further parts of a long history are requests of the same summary.
    pub requests: u64,
    /// Number of the request before which its last answer was taken; `None` = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_request: Option<u64>,
    /// Virtual time of that, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_ms: Option<Millis>,
    /// How long the conversation waited for it, ms.
    pub waited_ms: Millis,
    /// How the race ended.
    pub fate: Fate,
}

/// A remark when not all of them were in time: how many ended how.
pub fn remark(all: &[BackgroundRecord]) -> Option<String> {
    let count = |f: Fate| all.iter().filter(|b| b.fate == f).count();
    if count(Fate::InTime) == all.len() {
        return None;
    }
    let parts: Vec<String> = Fate::ALL.into_iter().filter(|f| count(*f) > 0).map(|f| format!("{} {}", count(f), f.phrase())).collect();
    Some(format!("background summaries: {}", parts.join(", ")))
}

/// The races of one conversation.
#[derive(Debug, Default)]
pub struct Races(Vec<Race>);

#[derive(Debug)]
struct Race {
    /// The request under way, or the last one.
    task: Task,
    request: u64,
    spawned_ms: Millis,
    requests: u64,
    delivered: Option<(u64, Millis)>,
    waited_ms: Millis,
    /// It was needed before it was there.
    missed: bool,
    came: Option<Came>,
}

/// What came of the last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Usable,
    Stale,
    Unusable,
}

impl Races {
    fn of(&mut self, task: Task) -> Option<&mut Race> {
        self.0.iter_mut().rfind(|r| r.task == task)
    }

    /// A summary is asked for.
    pub(crate) fn begin(&mut self, task: Task, request: u64, now: Millis) {
        self.0.push(Race { task, request, spawned_ms: now, requests: 1, delivered: None, waited_ms: 0, missed: false, came: None });
    }

    /// Its next request takes the place of the one before.
    pub(crate) fn go_on(&mut self, before: Task, task: Task) {
        if let Some(r) = self.of(before) {
            (r.task, r.came, r.requests) = (task, None, r.requests + 1);
        }
    }

    /// An answer was taken after waiting for it.
    pub(crate) fn came(&mut self, task: Task, before_request: u64, now: Millis, waited_ms: Millis, ok: bool) {
        if let Some(r) = self.of(task) {
            r.delivered = Some((before_request, now));
            r.waited_ms += waited_ms;
            r.came = Some(if ok { Came::Usable } else { Came::Unusable });
        }
    }

    /// It was needed and is not there; the conversation goes on.
    pub(crate) fn missed(&mut self, task: Task) {
        if let Some(r) = self.of(task) {
            r.missed = true;
        }
    }

    /// What it covers no longer stands as it was.
    pub(crate) fn stale(&mut self, task: Task) {
        if let Some(r) = self.of(task) {
            r.came = Some(Came::Stale);
        }
    }

    /// The answer cannot be used.
    pub(crate) fn unusable(&mut self, task: Task) {
        if let Some(r) = self.of(task) {
            r.came = Some(Came::Unusable);
        }
    }

    /// The records, once the session is over.
    pub fn records(&self) -> Vec<BackgroundRecord> {
        self.0.iter().map(Race::record).collect()
    }
}

impl Race {
    fn record(&self) -> BackgroundRecord {
        let fate = match self.came {
            Some(Came::Usable) if self.waited_ms > 0 => Fate::LateWaited,
            Some(Came::Usable) if !self.missed => Fate::InTime,
            Some(Came::Stale) => Fate::Stale,
            Some(Came::Unusable) => Fate::Failed,
            Some(Came::Usable) | None if self.missed => Fate::LateProceeded,
            _ => Fate::Cancelled,
        };
        BackgroundRecord {
            request: self.request,
            spawned_ms: self.spawned_ms,
            requests: self.requests,
            before_request: self.delivered.map(|(n, _)| n),
            delivered_ms: self.delivered.map(|(_, at)| at),
            waited_ms: self.waited_ms,
            fate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(course: impl Fn(&mut Races)) -> Fate {
        let mut races = Races::default();
        races.begin(Task(0), 3, 1_000);
        course(&mut races);
        races.records()[0].fate
    }

    #[test]
    fn each_end_has_its_name() {
        let t = Task(0);
        assert_eq!(ended(|r| r.came(t, 5, 9_000, 0, true)), Fate::InTime);
        assert_eq!(ended(|r| r.came(t, 5, 9_000, 1, true)), Fate::LateWaited);
        let late = |r: &mut Races| {
            r.missed(t);
            r.came(t, 6, 9_000, 0, true);
        };
        assert_eq!(ended(late), Fate::LateProceeded, "used later");
        assert_eq!(ended(|r| r.missed(t)), Fate::LateProceeded, "given up");
        assert_eq!(ended(|_| {}), Fate::Cancelled);
        let stale = |r: &mut Races| {
            r.came(t, 5, 9_000, 10, true);
            r.stale(t);
        };
        assert_eq!(ended(stale), Fate::Stale, "waited for, and thrown away");
        assert_eq!(ended(|r| r.came(t, 5, 9_000, 10, false)), Fate::Failed);
    }

    #[test]
    fn a_second_model_is_the_same_summary() {
        let mut races = Races::default();
        races.begin(Task(0), 3, 1_000);
        races.came(Task(0), 4, 2_000, 100, false);
        races.go_on(Task(0), Task(1));
        assert_eq!(races.records()[0].fate, Fate::Cancelled, "under way again");
        races.came(Task(1), 5, 4_000, 50, true);
        let want = BackgroundRecord {
            request: 3,
            spawned_ms: 1_000,
            requests: 2,
            before_request: Some(5),
            delivered_ms: Some(4_000),
            waited_ms: 150,
            fate: Fate::LateWaited,
        };
        assert_eq!(races.records(), [want]);
    }

    #[test]
    fn the_remark_is_silent_when_all_is_well() {
        let of = |fate| BackgroundRecord {
            request: 0,
            spawned_ms: 0,
            requests: 1,
            before_request: None,
            delivered_ms: None,
            waited_ms: 0,
            fate,
        };
        assert_eq!(remark(&[]), None);
        assert_eq!(remark(&[of(Fate::InTime)]), None);
        let some = remark(&[of(Fate::Stale), of(Fate::InTime), of(Fate::Stale)]);
        assert_eq!(some.as_deref(), Some("background summaries: 1 in time, 2 stale"));
    }
}
