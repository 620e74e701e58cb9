//! Outcomes of background summaries, from the events of a conversation.

use ctxbench_core::host::{BackgroundStep, Event, Task, TimedEvent};
use ctxbench_reports::record::{BackgroundRecord, Fate};

struct Race {
    /// The current request, or the last one.
    task: Task,
    record: BackgroundRecord,
    /// Whether the summary was needed before it was ready.
    missed: bool,
}

/// Returns every background summary of a conversation, in the order of the requests.
pub(super) fn records<'a>(events: impl Iterator<Item = &'a TimedEvent>) -> Vec<BackgroundRecord> {
    let mut races: Vec<Race> = Vec::new();
    for e in events {
        let Event::Background(task, step) = e.event else { continue };
        if let BackgroundStep::Spawned { request } = step {
            let record = BackgroundRecord {
                request,
                spawned_ms: e.at_ms,
                requests: 1,
                before_request: None,
                delivered_ms: None,
                waited_ms: 0,
                fate: Fate::Cancelled,
            };
            races.push(Race { task, record, missed: false });
            continue;
        }
        // Other background requests are not part of a race.
        let Some(race) = races.iter_mut().rfind(|r| r.task == task) else { continue };
        match step {
            BackgroundStep::Spawned { .. } => {}
            BackgroundStep::Continued(next) => {
                (race.task, race.record.fate) = (next, Fate::Cancelled);
                race.record.requests += 1;
            }
            BackgroundStep::Delivered { waited_ms, usable } => {
                race.record.before_request = Some(e.before_request);
                race.record.delivered_ms = Some(e.at_ms);
                race.record.waited_ms += waited_ms;
                race.record.fate = if usable { Fate::InTime } else { Fate::Failed };
            }
            BackgroundStep::Missed => race.missed = true,
            BackgroundStep::Stale => race.record.fate = Fate::Stale,
            BackgroundStep::Unusable => race.record.fate = Fate::Failed,
        }
    }
    races.into_iter().map(|r| BackgroundRecord { fate: r.fate(), ..r.record }).collect()
}

impl Race {
    /// Returns the fate, where the record has that of the last request.
    fn fate(&self) -> Fate {
        match self.record.fate {
            Fate::InTime if self.record.waited_ms > 0 => Fate::LateWaited,
            Fate::InTime | Fate::Cancelled if self.missed => Fate::LateProceeded,
            fate => fate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BackgroundStep::{Continued, Delivered, Missed, Spawned, Stale};
    use ctxbench_core::Millis;

    /// Returns the summaries that result from steps `(before request, ms, task, step)`.
    fn raced(steps: &[(u64, Millis, u64, BackgroundStep)]) -> Vec<BackgroundRecord> {
        let stamped = |(before_request, at_ms, task, step): &(u64, Millis, u64, BackgroundStep)| {
            let event = Event::Background(Task(*task), *step);
            TimedEvent { before_request: *before_request, at_ms: *at_ms, event }
        };
        let events: Vec<TimedEvent> = steps.iter().map(stamped).collect();
        records(events.iter())
    }

    fn ended(steps: &[(u64, BackgroundStep)]) -> Fate {
        let mut all = vec![(4, 1_000, 0, Spawned { request: 3 })];
        all.extend(steps.iter().map(|(before, step)| (*before, 9_000, 0, *step)));
        raced(&all)[0].fate
    }

    fn came(waited_ms: Millis, usable: bool) -> BackgroundStep {
        Delivered { waited_ms, usable }
    }

    #[test]
    fn each_end_has_its_name() {
        assert_eq!(ended(&[(5, came(0, true))]), Fate::InTime);
        assert_eq!(ended(&[(5, came(1, true))]), Fate::LateWaited);
        assert_eq!(ended(&[(5, Missed), (6, came(0, true))]), Fate::LateProceeded, "used later");
        assert_eq!(ended(&[(5, Missed)]), Fate::LateProceeded, "given up");
        assert_eq!(ended(&[]), Fate::Cancelled);
        assert_eq!(
            ended(&[(5, came(10, true)), (5, Stale)]),
            Fate::Stale,
            "waited for, and thrown away"
        );
        assert_eq!(ended(&[(5, came(10, false))]), Fate::Failed);
    }

    #[test]
    fn a_second_model_is_the_same_summary() {
        let first = (4, 1_000, 0, Spawned { request: 3 });
        let failed = (4, 2_000, 0, came(100, false));
        let next = (5, 2_000, 0, Continued(Task(1)));
        assert_eq!(raced(&[first, failed, next])[0].fate, Fate::Cancelled, "under way again");
        let want = BackgroundRecord {
            request: 3,
            spawned_ms: 1_000,
            requests: 2,
            before_request: Some(5),
            delivered_ms: Some(4_000),
            waited_ms: 150,
            fate: Fate::LateWaited,
        };
        assert_eq!(raced(&[first, failed, next, (5, 4_000, 1, came(50, true))]), [want]);
    }
}
