//! Background compaction in every order in which the conversation and the task can meet. The
//! shipped file is compiled against loom.

#[path = "../../core/kit/src/background/pending.rs"]
mod pending;

/// Loom's lock and shared ownership in the place of the standard library's.
mod sync {
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

use loom::future::block_on;
use loom::thread;
use pending::{Pending, Taking};

type Answer = &'static str;

/// Runs both sides in all orders and returns what the conversation saw, without repetitions.
fn all_orders(
    task: impl Fn(pending::Job<Answer, Answer>) + Clone + Send + Sync + 'static,
    conversation: impl Fn(&mut Pending<u32, Answer, Answer>) -> Vec<Taking<Answer, Answer>>
    + Send
    + Sync
    + 'static,
) -> Vec<Vec<Taking<Answer, Answer>>> {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = seen.clone();
    loom::model(move || {
        let (mut pending, job) = Pending::new(vec![1, 2]);
        assert_eq!(pending.covered(), [1, 2]);
        let task = task.clone();
        let other = thread::spawn(move || task(job));
        let outcome = conversation(&mut pending);
        other.join().unwrap();
        let mut seen = noted.lock().unwrap();
        if !seen.contains(&outcome) {
            seen.push(outcome);
        }
    });
    let mut out = seen.lock().unwrap().clone();
    out.sort_by_key(|o| format!("{o:?}"));
    out
}

#[test]
fn an_answer_is_seen_once_or_not_yet_and_what_arrived_is_no_obstacle() {
    let seen = all_orders(
        |job| assert!(job.finish(Ok("summary"))),
        |p| {
            // Messages are sent between the attempts.
            let mut out: Vec<_> =
                [vec![1, 2], vec![1, 2, 3]].iter().map(|now| p.take(now)).collect();
            block_on(p.done());
            out.push(p.take(&[1, 2, 3, 4]));
            out
        },
    );
    use Taking::{Cancelled, Finished, Running};
    assert_eq!(
        seen,
        [
            vec![Finished("summary"), Cancelled, Cancelled],
            vec![Running, Finished("summary"), Cancelled],
            vec![Running, Running, Finished("summary")],
        ]
    );
}

#[test]
fn a_changed_conversation_never_gets_the_answer() {
    let seen = all_orders(
        |job| assert!(job.finish(Ok("summary"))),
        |p| {
            let first = p.take(&[1, 9]);
            block_on(p.done());
            vec![first, p.take(&[1])]
        },
    );
    use Taking::{Cancelled, Running, Stale};
    assert_eq!(seen, [vec![Running, Stale], vec![Stale, Cancelled]]);
}

#[test]
fn cancelling_wins_or_loses_as_a_whole() {
    let accepted = std::sync::Arc::new(std::sync::Mutex::new((0, 0)));
    let counted = accepted.clone();
    let seen = all_orders(
        move |job| {
            let mut n = counted.lock().unwrap();
            if job.finish(Ok("summary")) { n.0 += 1 } else { n.1 += 1 }
        },
        |p| {
            let took = p.take(&[1, 2]);
            let gave_up = p.cancel();
            assert_eq!(
                gave_up,
                took == Taking::Running,
                "what was taken cannot be given up, all else can"
            );
            assert!(p.is_done());
            vec![took, p.take(&[1, 2])]
        },
    );
    use Taking::{Cancelled, Finished, Running};
    assert_eq!(seen, [vec![Finished("summary"), Cancelled], vec![Running, Cancelled]]);
    let (first, late) = *accepted.lock().unwrap();
    assert!(first > 0 && late > 0, "both orders happen: {first}, {late}");
}

#[test]
fn the_task_hears_of_it() {
    // Both wait for each other: an order in which a wake is lost would hang, and loom would say so.
    let seen = all_orders(
        |job| {
            block_on(job.cancelled());
            assert!(job.is_cancelled() && !job.finish(Ok("too late")));
        },
        |p| {
            assert!(p.cancel());
            vec![p.take(&[1, 2])]
        },
    );
    assert_eq!(seen, [vec![Taking::Cancelled]]);
    all_orders(
        |job| block_on(job.cancelled()),
        |p| {
            let (other, _job) = Pending::new(vec![]);
            drop(std::mem::replace(p, other));
            vec![]
        },
    );
}

#[test]
fn two_who_wait_at_once_both_hear_of_it() {
    use std::task::{Context, Waker};
    // Loom says so if the wait never ends.
    loom::model(|| {
        let (pending, job) = Pending::<u32, Answer, Answer>::new(vec![]);
        let pending = std::sync::Arc::new(pending);
        let other = pending.clone();
        let waits = thread::spawn(move || block_on(other.done()));
        let mut second = std::pin::pin!(pending.done());
        let asked = second.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(asked.is_pending());
        assert!(job.finish(Ok("summary")));
        waits.join().unwrap();
        block_on(second);
    });
}

#[test]
fn a_failure_arrives_and_a_task_that_vanishes_is_noticed() {
    let waits = |p: &mut Pending<u32, Answer, Answer>| {
        block_on(p.done());
        // A changed conversation does not hide why there is no summary.
        vec![p.take(&[7]), p.take(&[7])]
    };
    use Taking::{Cancelled, Failed, Lost};
    assert_eq!(
        all_orders(|job| assert!(job.finish(Err("refused"))), waits),
        [vec![Failed("refused"), Cancelled]]
    );
    assert_eq!(all_orders(drop, waits), [vec![Lost, Lost]]);
}
