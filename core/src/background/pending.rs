//! One answer on its way from a task to a conversation: finished once, taken once, or given up by either side.
//!
//! Everything that both sides touch lies behind one lock, and a waker is woken after it is released. `tests/tests/background.rs`
//! compiles this very file against loom and goes through all orders in which the two sides can meet.

use std::future::poll_fn;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::sync::{Arc, Mutex, MutexGuard};

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T, E> {
    /// No answer yet.
    Running,
    /// The answer; all that it covers is unchanged.
    Finished(T),
    /// An answer came, but what it covers has changed since; it was thrown away.
    Stale,
    /// The task says why there is no answer.
    Failed(E),
    /// The task ended without a word: it panicked, or its runtime shut down.
    Lost,
    /// The conversation had given it up.
    Cancelled,
}

enum State<T, E> {
    Running {
        conversation: Option<Waker>,
        task: Option<Waker>,
    },
    Done(Result<T, E>),
    Lost,
    Cancelled,
    /// The answer was handed over.
    Taken,
}

struct Shared<T, E>(Mutex<State<T, E>>);

impl<T, E> Shared<T, E> {
    fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        // Only the clone of a waker could panic under the lock, and it leaves a whole state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The conversation's side: what the answer will stand for, and the answer when it is there. Dropping it gives the task up.
pub struct Pending<K, T, E> {
    covered: Vec<K>,
    shared: Arc<Shared<T, E>>,
}

impl<K: PartialEq, T, E> Pending<K, T, E> {
    /// Both sides; `covered` names, in order, what the answer will stand for.
    pub fn new(covered: Vec<K>) -> (Self, Job<T, E>) {
        let shared = Arc::new(Shared(Mutex::new(State::Running { conversation: None, task: None })));
        (Pending { covered, shared: shared.clone() }, Job { shared })
    }

    /// What the answer stands for.
    pub fn covered(&self) -> &[K] {
        &self.covered
    }

    /// Whether [`Pending::take`] would say something other than `Running`.
    pub fn is_done(&self) -> bool {
        !matches!(*self.shared.lock(), State::Running { .. })
    }

    /// Waits until [`Pending::is_done`].
    pub async fn done(&self) {
        poll_fn(|cx| self.poll_done(cx)).await
    }

    fn poll_done(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut *self.shared.lock() {
            State::Running { conversation, .. } => {
                *conversation = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// The answer, once, if the conversation still begins with what it covers; `now` are the names of what is there now.
    /// What follows the covered part arrived in the meantime and is the caller's to keep.
    pub fn take(&mut self, now: &[K]) -> Outcome<T, E> {
        let mut state = self.shared.lock();
        match &*state {
            State::Running { .. } => return Outcome::Running,
            State::Cancelled | State::Taken => return Outcome::Cancelled,
            State::Lost => return Outcome::Lost,
            State::Done(_) => {}
        }
        let taken = std::mem::replace(&mut *state, State::Taken);
        drop(state);
        match taken {
            State::Done(Ok(_)) if !now.starts_with(&self.covered) => Outcome::Stale,
            State::Done(Ok(answer)) => Outcome::Finished(answer),
            State::Done(Err(why)) => Outcome::Failed(why),
            other => unreachable!("only a finished state gets here, not {}", other.name()),
        }
    }

    /// Gives the task up; an answer that is there already is thrown away. True if there was something to give up.
    pub fn cancel(&mut self) -> bool {
        self.give_up()
    }
}

impl<K, T, E> Pending<K, T, E> {
    fn give_up(&self) -> bool {
        let before = {
            let mut state = self.shared.lock();
            match &*state {
                State::Running { .. } | State::Done(_) => std::mem::replace(&mut *state, State::Cancelled),
                _ => return false,
            }
        };
        if let State::Running { task: Some(w), .. } = before {
            w.wake();
        }
        true
    }
}

impl<K, T, E> Drop for Pending<K, T, E> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<T, E> State<T, E> {
    fn name(&self) -> &'static str {
        match self {
            State::Running { .. } => "running",
            State::Done(_) => "done",
            State::Lost => "lost",
            State::Cancelled => "cancelled",
            State::Taken => "taken",
        }
    }
}

/// The task's side. Dropping it without an answer tells the conversation that none will come.
pub struct Job<T, E> {
    shared: Arc<Shared<T, E>>,
}

impl<T, E> Job<T, E> {
    /// Hands the answer over; false if nobody wants it any more.
    pub fn finish(self, answer: Result<T, E>) -> bool {
        self.settle(State::Done(answer))
    }

    /// Whether the conversation has given it up.
    pub fn is_cancelled(&self) -> bool {
        !matches!(*self.shared.lock(), State::Running { .. })
    }

    /// Waits until the conversation gives it up, for ever if it does not.
    pub async fn cancelled(&self) {
        poll_fn(|cx| match &mut *self.shared.lock() {
            State::Running { task, .. } => {
                *task = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
        .await
    }

    fn settle(&self, to: State<T, E>) -> bool {
        let before = {
            let mut state = self.shared.lock();
            match &*state {
                State::Running { .. } => std::mem::replace(&mut *state, to),
                _ => return false,
            }
        };
        if let State::Running { conversation: Some(w), .. } = before {
            w.wake();
        }
        true
    }
}

impl<T, E> Drop for Job<T, E> {
    fn drop(&mut self) {
        self.settle(State::Lost);
    }
}
