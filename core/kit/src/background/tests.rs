use std::sync::Arc;

use super::*;
use ctxbench_core::block::{BlockKind, Draft, Role};
use ctxbench_core::compaction::origins;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::engine::Incoming;
use ctxbench_core::model::find;
use ctxbench_core::request::{ModelError, Reply, Request};
use ctxbench_core::strategy::Strategy;
use ctxbench_core::world::{Action, Task, World};

struct Nobody;

#[async_trait::async_trait]
impl World for Nobody {
    async fn next(&mut self) -> Option<Action> {
        None
    }
    async fn send(&mut self, _: &Request) -> Result<Reply, ModelError> {
        unreachable!("no request is made")
    }
    async fn run(&mut self, _: &[ToolCall]) -> Vec<Incoming> {
        Vec::new()
    }
    async fn spawn(&mut self, _: &Request) -> Task {
        Task(0)
    }
    async fn collect(&mut self, _: Task, _: bool) -> Option<Result<Reply, ModelError>> {
        None
    }
    fn now(&self) -> u64 {
        0
    }
}

struct Plain;
impl Strategy for Plain {}

fn engine(said: &[&str]) -> Engine {
    let mut s = Engine::new(Arc::new(find("claude-sonnet-4-6").unwrap().clone()), Box::new(Nobody));
    said.iter().for_each(|t| say(&mut s, t));
    s
}

fn say(s: &mut Engine, text: &str) {
    s.record_user(&Plain, &Incoming { key: text.into(), parts: vec![Part::Text(text.into())] });
}

fn shown(s: &Engine) -> Vec<&str> {
    s.context.blocks().iter().map(|b| &*b.text).collect()
}

fn summary(s: &mut Engine, text: &'static str, covered: &[Arc<Block>]) -> Vec<Arc<Block>> {
    let origin = origins(covered);
    vec![s.synthetic(BlockKind::Summary, Role::User, text, origin)]
}

#[tokio::test]
async fn what_arrived_meanwhile_stays() {
    let mut s = engine(&["one", "two", "three"]);
    let (go, gate) = tokio::sync::oneshot::channel::<()>();
    let mut b: Background<_, ()> = Background::spawn(&s, 0..2, async move {
        gate.await.ok();
        Ok("one and two")
    });
    assert_eq!(b.swap(&mut s, "test", summary), Swap::Running);
    say(&mut s, "four");
    go.send(()).unwrap();
    b.done().await;
    assert_eq!(b.swap(&mut s, "test", summary), Swap::Swapped);
    assert_eq!(shown(&s), ["one and two", "three", "four"]);
    assert_eq!(
        s.history.messages().len(),
        5,
        "four that were said and the summary; nothing is lost"
    );
    assert_eq!(b.swap(&mut s, "test", summary), Swap::Cancelled, "an answer is taken once");
}

#[tokio::test]
async fn a_changed_beginning_makes_it_stale_and_changes_nothing() {
    let mut s = engine(&["one", "two", "three"]);
    let (mut b, job) = Background::<_, ()>::begin(&s, 0..2);
    let cleared = s.context.blocks()[1].altered(ctxbench_core::block::Form::Cleared, "gone");
    let mut blocks = s.context.blocks().to_vec();
    blocks[1] = cleared;
    s.context.set(blocks).unwrap();
    assert!(job.finish(Ok("one and two")));
    assert_eq!(b.swap(&mut s, "test", summary), Swap::Stale);
    assert_eq!(shown(&s), ["one", "gone", "three"]);
    let (mut b, job) = Background::<_, ()>::begin(&s, 1..3);
    s.context.set(Vec::new()).unwrap();
    job.finish(Ok("never seen"));
    assert_eq!(b.swap(&mut s, "test", summary), Swap::Stale, "a view that was cleared");
}

#[tokio::test]
async fn failure_panic_and_cancellation_leave_the_context() {
    let mut s = engine(&["one", "two"]);
    let mut failing: Background<&'static str, _> =
        Background::spawn(&s, 0..2, async { Err("refused") });
    failing.done().await;
    assert_eq!(failing.swap(&mut s, "test", summary), Swap::Failed("refused"));
    let mut dying: Background<&'static str, ()> =
        Background::spawn(&s, 0..2, async { panic!("a defect in the caller's work") });
    dying.done().await;
    assert_eq!(dying.swap(&mut s, "test", summary), Swap::Lost);
    let (mut given_up, job) = Background::<_, ()>::begin(&s, 0..2);
    assert!(given_up.cancel() && !given_up.cancel());
    job.cancelled().await;
    assert!(!job.finish(Ok("too late")));
    assert_eq!(given_up.swap(&mut s, "test", summary), Swap::Cancelled);
    assert_eq!(shown(&s), ["one", "two"]);
}

#[tokio::test]
async fn giving_up_drops_the_work() {
    struct Told(Option<tokio::sync::oneshot::Sender<()>>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.take().map(|s| s.send(()));
        }
    }
    let s = engine(&["one"]);
    let (tell, told) = tokio::sync::oneshot::channel();
    let guard = Told(Some(tell));
    let b: Background<(), ()> = Background::spawn(&s, 0..1, async move {
        let _guard = guard;
        std::future::pending().await
    });
    drop(b);
    told.await.expect("the work is dropped, not left running");
}

#[test]
fn everybody_who_waits_is_woken() {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};
    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let s = engine(&["one"]);
    let (b, job) = Background::<&str, ()>::begin(&s, 0..1);
    let counts = [(); 3].map(|()| Arc::new(Count::default()));
    let wakers = counts.clone().map(Waker::from);
    let poll = |f: std::pin::Pin<&mut dyn Future<Output = ()>>, i: usize| {
        f.poll(&mut Context::from_waker(&wakers[i]))
    };
    let (mut first, mut second) = (pin!(b.done()), pin!(b.done()));
    assert!(poll(first.as_mut(), 0).is_pending() && poll(second.as_mut(), 1).is_pending());
    {
        let gone = pin!(b.done());
        assert!(poll(gone, 2).is_pending());
    }
    job.finish(Ok("answer"));
    let woken: Vec<usize> = counts.iter().map(|c| c.0.load(Ordering::Relaxed)).collect();
    assert_eq!(woken, [1, 1, 0], "who no longer waits is left alone");
    assert!(poll(first, 0).is_ready() && poll(second, 1).is_ready());
}

#[test]
fn a_summary_that_would_part_a_call_from_its_result_is_refused() {
    let mut s = engine(&["one"]);
    let call =
        Some(Arc::new(ctxbench_core::block::CallRef { id: "c".into(), name: "read".into() }));
    for (kind, role) in [(BlockKind::Call, Role::Assistant), (BlockKind::Output, Role::Tool)] {
        let at = s.history.append("", role, vec![], false);
        s.context
            .push(Draft { call: call.clone(), ..Draft::text(kind, role, "x") }.build(at, vec![]));
    }
    let (mut b, job) = Background::<_, ()>::begin(&s, 0..2);
    job.finish(Ok("one, and a call"));
    assert!(matches!(b.swap(&mut s, "test", summary), Swap::Refused(EditError::OrphanResult(_))));
    assert_eq!(shown(&s), ["one", "x", "x"]);
}
