//! One answer on its way from a task to a conversation: finished once, taken once, or given up by
//! either side.
//!
//! Everything that both sides touch lies behind one lock, and a waker is woken after it is
//! released. `tests/tests/background.rs` compiles this very file against loom and goes through all
//! orders in which the two sides can meet.

use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::sync::{Arc, Mutex, MutexGuard};

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking<T, E> {
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

/// Those who wait on one side, each under a number of its own.
#[derive(Default)]
struct Waiting {
    wakers: Vec<(u64, Waker)>,
    next: u64,
}

impl Waiting {
    /// Notes a waker; whoever asks again gives the number that it got.
    fn note(&mut self, number: &mut Option<u64>, waker: &Waker) {
        match self.wakers.iter_mut().find(|(n, _)| Some(*n) == *number) {
            Some((_, known)) => known.clone_from(waker),
            None => {
                *number = Some(self.next);
                self.wakers.push((self.next, waker.clone()));
                self.next += 1;
            }
        }
    }

    fn wake(self) {
        self.wakers.into_iter().for_each(|(_, w)| w.wake());
    }
}

enum State<T, E> {
    Running {
        conversation: Waiting,
        task: Waiting,
    },
    Done(Result<T, E>),
    Lost,
    Cancelled,
    /// The answer was handed over.
    Taken,
}

impl<T, E> State<T, E> {
    /// Those who wait on a side while the task runs.
    fn waiting(&mut self, side: Side) -> Option<&mut Waiting> {
        match (self, side) {
            (State::Running { conversation, .. }, Side::Conversation) => Some(conversation),
            (State::Running { task, .. }, Side::Task) => Some(task),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Conversation,
    Task,
}

/// Waits until the task is no longer running. Several may at once; one that is dropped leaves
/// nothing behind.
struct Wait<'a, T, E> {
    shared: &'a Shared<T, E>,
    side: Side,
    number: Option<u64>,
}

impl<T, E> Future for Wait<'_, T, E> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (side, mut number) = (self.side, self.number);
        match self.shared.lock().waiting(side) {
            Some(waiting) => waiting.note(&mut number, cx.waker()),
            None => return Poll::Ready(()),
        }
        self.number = number;
        Poll::Pending
    }
}

impl<T, E> Drop for Wait<'_, T, E> {
    fn drop(&mut self) {
        if self.number.is_none() {
            return;
        }
        let mut state = self.shared.lock();
        let gone = state.waiting(self.side).and_then(|w| {
            let at = w.wakers.iter().position(|(n, _)| Some(*n) == self.number)?;
            Some(w.wakers.swap_remove(at))
        });
        drop(state);
        // A waker's drop is code of others, so it runs outside of the lock.
        drop(gone);
    }
}

struct Shared<T, E>(Mutex<State<T, E>>);

impl<T, E> Shared<T, E> {
    async fn settled(&self, side: Side) {
        Wait { shared: self, side, number: None }.await
    }

    fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        // Only the clone of a waker could panic under the lock, and it leaves a whole state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The conversation's side: what the answer will stand for, and the answer when it is there.
/// Dropping it gives the task up.
pub struct Pending<K, T, E> {
    covered: Vec<K>,
    shared: Arc<Shared<T, E>>,
}

impl<K: PartialEq, T, E> Pending<K, T, E> {
    /// Both sides; `covered` names, in order, what the answer will stand for.
    pub fn new(covered: Vec<K>) -> (Self, Job<T, E>) {
        let shared = Arc::new(Shared(Mutex::new(State::Running {
            conversation: Waiting::default(),
            task: Waiting::default(),
        })));
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

    /// Waits until [`Pending::is_done`]; several may wait at once.
    pub async fn done(&self) {
        self.shared.settled(Side::Conversation).await
    }

    /// The answer, once, if the conversation still begins with what it covers; `now` are the names
    /// of what is there now. What follows the covered part arrived in the meantime and is the
    /// caller's to keep.
    pub fn take(&mut self, now: &[K]) -> Taking<T, E> {
        let mut state = self.shared.lock();
        match &*state {
            State::Running { .. } => return Taking::Running,
            State::Cancelled | State::Taken => return Taking::Cancelled,
            State::Lost => return Taking::Lost,
            State::Done(_) => {}
        }
        let taken = std::mem::replace(&mut *state, State::Taken);
        drop(state);
        match taken {
            State::Done(Ok(_)) if !now.starts_with(&self.covered) => Taking::Stale,
            State::Done(Ok(answer)) => Taking::Finished(answer),
            State::Done(Err(why)) => Taking::Failed(why),
            other => unreachable!("only a finished state gets here, not {}", other.name()),
        }
    }

    /// Gives the task up; an answer that is there already is thrown away. True if there was
    /// something to give up.
    pub fn cancel(&mut self) -> bool {
        self.give_up()
    }
}

impl<K, T, E> Pending<K, T, E> {
    fn give_up(&self) -> bool {
        let before = {
            let mut state = self.shared.lock();
            match &*state {
                State::Running { .. } | State::Done(_) => {
                    std::mem::replace(&mut *state, State::Cancelled)
                }
                _ => return false,
            }
        };
        if let State::Running { task, .. } = before {
            task.wake();
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

    /// Waits until the conversation gives it up, for ever if it does not; several may wait at once.
    pub async fn cancelled(&self) {
        self.shared.settled(Side::Task).await
    }

    fn settle(&self, to: State<T, E>) -> bool {
        let before = {
            let mut state = self.shared.lock();
            match &*state {
                State::Running { .. } => std::mem::replace(&mut *state, to),
                _ => return false,
            }
        };
        if let State::Running { conversation, .. } = before {
            conversation.wake();
        }
        true
    }
}

impl<T, E> Drop for Job<T, E> {
    fn drop(&mut self) {
        self.settle(State::Lost);
    }
}
