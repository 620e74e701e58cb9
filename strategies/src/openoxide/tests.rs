//! Small sessions driven through the agent's loop. At scale 0.01 the window is 2,000 tokens, the
//! gate 1,596, the history cap 82.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctxbench_core::agent;
use ctxbench_core::block::{BlockKind, Draft, MessageId, Role};
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::context::{Orphans, orphans};
use ctxbench_core::engine::{Action, Engine, Event, Host, Task};
use ctxbench_core::host::Incoming;
use ctxbench_core::model::{Counting, Model, find};
use ctxbench_core::request::{
    ClearInputs, ClearTrigger, ModelError, Phase, Purpose, Reply, Request, ServerEdit, StopReason,
    Usage,
};
use ctxbench_core::session::Millis;
use proptest::prelude::*;

use crate::Spec;
use crate::testing::{Answer, back_to, block_on, calls, text_answer, too_long, user};

const SCALE: f64 = 0.01;
const GATE: u64 = 1_596;

/// A scripted world with background requests that complete after `looks` polls.
#[derive(Default)]
struct ScriptedHost {
    actions: VecDeque<Action>,
    replies: VecDeque<Answer>,
    summaries: VecDeque<Answer>,
    outputs: VecDeque<String>,
    looks: u32,
    tasks: Vec<(u32, Answer)>,
    log: Arc<Mutex<Vec<Request>>>,
}

impl ScriptedHost {
    fn new(actions: Vec<Action>, replies: Vec<Answer>) -> Self {
        ScriptedHost { actions: actions.into(), replies: replies.into(), ..ScriptedHost::default() }
    }

    fn with_summaries(mut self, texts: &[&str]) -> Self {
        self.summaries = texts.iter().map(|t| text_answer(t)).collect();
        self
    }

    fn with_outputs(mut self, outputs: &[usize]) -> Self {
        self.outputs = outputs.iter().map(|n| "word ".repeat(*n)).collect();
        self
    }

    fn answer(&mut self, request: &Request) -> Answer {
        self.log.lock().unwrap().push(request.clone());
        let mut reply = match request.purpose {
            Purpose::Sample => self.replies.pop_front().unwrap_or_else(|| Err(ModelError::ended())),
            _ => self.summaries.pop_front().unwrap_or_else(|| text_answer("S")),
        }?;
        reply.usage = Usage { input: request.tokens(), output: 10, ..Usage::default() };
        Ok(reply)
    }
}

#[async_trait]
impl Host for ScriptedHost {
    async fn next(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
    async fn send(&mut self, request: &Request) -> Answer {
        self.answer(request)
    }
    async fn run(&mut self, calls: &[ToolCall]) -> Vec<Incoming> {
        let mut out = Vec::new();
        for c in calls {
            let output = self.outputs.pop_front().unwrap_or_else(|| "out".into());
            out.push(Incoming::result(c, false, output));
        }
        out
    }
    async fn spawn(&mut self, request: &Request) -> Task {
        let answer = self.answer(request);
        self.tasks.push((self.looks, answer));
        Task(self.tasks.len() as u64 - 1)
    }
    async fn collect(&mut self, task: Task, wait: bool) -> Option<Answer> {
        let (looks, answer) = self.tasks.get_mut(task.0 as usize)?;
        if *looks > 0 && !wait {
            *looks -= 1;
            return None;
        }
        Some(answer.clone())
    }
    fn now(&self) -> Millis {
        0
    }
}

struct ScriptOutcome {
    requests: Vec<Request>,
    engine: Engine,
}

impl ScriptOutcome {
    fn samples(&self) -> Vec<&Request> {
        self.requests.iter().filter(|r| r.purpose == Purpose::Sample).collect()
    }
    fn summaries(&self) -> Vec<&Request> {
        self.requests.iter().filter(|r| r.purpose == Purpose::Summary).collect()
    }
    fn compactions(&self) -> Vec<(&'static str, Phase)> {
        let found = |e: &Event| match e {
            Event::Compaction { mechanism, phase, .. } => Some((*mechanism, *phase)),
            _ => None,
        };
        self.engine.events.iter().filter_map(|e| found(&e.event)).collect()
    }
    fn failures(&self) -> Vec<String> {
        let found = |e: &Event| match e {
            Event::TurnFailed(t) => Some(t.clone()),
            _ => None,
        };
        self.engine.events.iter().filter_map(|e| found(&e.event)).collect()
    }
    fn view(&self) -> Vec<(BlockKind, String)> {
        self.engine
            .context
            .blocks()
            .iter()
            .map(|b| (b.kind, b.text.chars().take(5).collect()))
            .collect()
    }
}

fn play_with(
    spec: &str,
    model: &str,
    script: ScriptedHost,
    prepare: impl FnOnce(&mut Engine),
) -> ScriptOutcome {
    let log = script.log.clone();
    let model = Model { counting: Counting::O200K, ..find(model).unwrap().scaled(SCALE) };
    let window = model.window;
    let mut engine = Engine::new(Arc::new(model), Box::new(script));
    engine.fixed.base =
        vec![Draft::text(BlockKind::Base, Role::System, "base").build(MessageId(0), vec![])];
    prepare(&mut engine);
    let mut strategy = Spec::parse(spec).unwrap().build(SCALE, window);
    block_on(agent::run(&mut engine, &mut *strategy));
    ScriptOutcome { requests: log.lock().unwrap().clone(), engine }
}

fn play(settings: &str, script: ScriptedHost) -> ScriptOutcome {
    play_with(&format!("openoxide:{settings}"), "claude-sonnet-4-6", script, |_| {})
}

fn kinds(r: &Request) -> Vec<BlockKind> {
    r.blocks.iter().map(|b| b.kind).collect()
}

fn words(n: usize) -> String {
    "word ".repeat(n)
}

use BlockKind::{Assistant, Base, Call, Compaction, File, Output, RepoMap, Summary, User};

#[test]
fn finished_turns_over_their_budget_are_summarised_beside_the_conversation() {
    let turns = vec![user("u1", &words(100)), user("u2", "next")];
    let p = play(
        "",
        ScriptedHost::new(turns, vec![text_answer("done"), text_answer("fine")])
            .with_summaries(&["asked for words"]),
    );
    let s = p.summaries();
    assert_eq!(s.len(), 1);
    assert_eq!(
        (&*s[0].model.name, s[0].phase, s[0].max_tokens),
        ("claude-haiku-4-5", Some(Phase::Background), Some(82))
    );
    assert!(s[0].blocks[1].text.contains("# USER\nword"));
    // The newest half of the budget stays verbatim: the reply, but not the long message.
    assert_eq!(kinds(p.samples()[1]), [Base, Summary, Assistant, User]);
    assert_eq!(p.compactions(), [("history_summary", Phase::Background)]);
}

#[test]
fn a_summary_that_is_not_ready_holds_nobody_up() {
    let turns = vec![user("u1", &words(100)), user("u2", "next"), user("u3", "more")];
    let mut script = ScriptedHost::new(
        turns,
        vec![text_answer("done"), text_answer("fine"), text_answer("good")],
    )
    .with_summaries(&["short"]);
    // The summary is polled before the second request and after its turn.
    script.looks = 2;
    let p = play("", script);
    assert_eq!(kinds(p.samples()[1]), [Base, User, Assistant, User]);
    assert_eq!(kinds(p.samples()[2]), [Base, Summary, Assistant, User, Assistant, User]);
}

#[test]
fn a_summary_of_what_has_changed_is_thrown_away() {
    let turns = vec![user("u1", &words(100)), back_to("u1"), user("u2", "next")];
    let p = play("", ScriptedHost::new(turns, vec![text_answer("done"), text_answer("fine")]));
    assert_eq!(kinds(p.samples()[1]), [Base, User, User]);
    assert!(p.compactions().is_empty());
}

#[test]
fn a_summary_that_saves_nothing_is_not_used() {
    let turns = vec![user("u1", &words(100)), user("u2", "next")];
    let p = play(
        "",
        ScriptedHost::new(turns, vec![text_answer("done"), text_answer("fine")])
            .with_summaries(&[&words(300)]),
    );
    assert!(p.compactions().is_empty());
}

#[test]
fn clearing_comes_first_and_needs_no_model() {
    let turns = (1..=3).map(|i| user(&format!("u{i}"), "go")).collect();
    let replies = vec![
        calls("", "a", "read", "{}"),
        calls("", "b", "read", "{}"),
        text_answer("1"),
        text_answer("2"),
        calls("", "c", "read", "{}"),
        text_answer("3"),
    ];
    // A history budget of 600 keeps the second tier inactive.
    let script = ScriptedHost::new(turns, replies).with_outputs(&[500, 400, 700]);
    let p = play("chat_history_max=600k,chat_history_fraction=1", script);
    assert_eq!(p.compactions(), [("prune", Phase::MidTurn)]);
    assert!(p.summaries().is_empty());
    let last = p.samples()[5];
    let cleared: Vec<bool> =
        last.blocks.iter().filter(|b| b.kind == Output).map(|b| b.text.starts_with('[')).collect();
    // The newest 400 tokens of old results are protected. The result that crosses this limit and
    // all older ones are cleared.
    assert_eq!(cleared, [true, true, false]);
    assert!(last.tokens() <= GATE);
}

#[test]
fn one_long_turn_becomes_the_request_and_a_session_summary() {
    let replies =
        vec![calls("", "a", "read", "{}"), calls("", "b", "read", "{}"), text_answer("done")];
    let script = ScriptedHost::new(vec![user("u1", "fix it")], replies)
        .with_outputs(&[900, 700])
        .with_summaries(&["read two files"]);
    let p = play("", script);
    assert_eq!(kinds(p.samples()[2]), [Base, User, Summary]);
    assert_eq!(&*p.samples()[2].blocks[1].text, "fix it");
    assert_eq!(&*p.summaries()[0].model.name, "claude-sonnet-4-6");
    assert_eq!(p.compactions(), [("session_summary", Phase::MidTurn)]);
    assert!(p.failures().is_empty());
}

#[test]
fn old_history_is_waited_for_when_there_is_no_room() {
    let turns = vec![user("u1", &words(900)), user("u2", &words(900))];
    let mut script = ScriptedHost::new(turns, vec![text_answer("done"), text_answer("fine")])
        .with_summaries(&["short"]);
    script.looks = 99;
    let p = play("", script);
    assert_eq!(p.compactions(), [("history_summary", Phase::PreTurn)]);
    assert_eq!(p.summaries().len(), 2, "one for the first turn, one after the second");
    assert_eq!(kinds(p.samples()[1]), [Base, Summary, Assistant, User]);
}

#[test]
fn a_summary_still_too_large_is_summarised_again() {
    let turns = vec![user("u1", &words(100)), user("u2", "next")];
    let script = ScriptedHost::new(turns, vec![text_answer(&words(20)), text_answer("fine")])
        .with_summaries(&[&words(80), "short"]);
    let p = play("", script);
    assert_eq!(p.compactions().len(), 2);
    assert_eq!(kinds(p.samples()[1]), [Base, Summary, User]);
    assert!(p.samples()[1].blocks[1].text.ends_with("short"));
}

#[test]
fn what_cannot_fit_fails_with_advice() {
    let p =
        play("", ScriptedHost::new(vec![user("u1", &words(1_700))], vec![text_answer("never")]));
    let failures = p.failures();
    assert!(
        failures[0].contains("over its limit of 1596") && failures[0].contains("current turn 17"),
        "{failures:?}"
    );
    assert!(p.samples().is_empty());
    let p = play(
        "phases=two,compaction_buffer=500k",
        ScriptedHost::new(vec![user("u1", "hi")], vec![text_answer("never")]),
    );
    assert!(
        p.failures()[0].contains("window of 2000") && p.failures()[0].contains("smaller reserve"),
        "{:?}",
        p.failures()
    );
}

#[test]
fn the_provider_is_asked_where_it_can_and_its_compaction_becomes_the_beginning() {
    let compacting = Reply {
        parts: vec![
            Part::Compaction(Some("so far".into())),
            Part::Call(ToolCall { id: "a".into(), name: "read".into(), arguments: "{}".into() }),
        ],
        stop: StopReason::ToolUse,
        ..Reply::default()
    };
    let turns = vec![user("u1", &words(300)), user("u2", &words(300)), user("u3", "next")];
    let script = ScriptedHost::new(
        turns,
        vec![text_answer("one"), Ok(compacting), text_answer("two"), text_answer("three")],
    );
    let p = play_with("openoxide@provider-side", "claude-sonnet-4-6", script, |e| {
        let block =
            |kind, text: &str| Draft::text(kind, Role::User, text).build(MessageId(0), vec![]);
        e.fixed.repo_map = vec![block(RepoMap, "map")];
        e.fixed.files = vec![block(File, "file")];
    });
    let samples = p.samples();
    assert_eq!(
        samples[0].server_edits,
        [
            ServerEdit::ClearToolUses {
                trigger: ClearTrigger::InputTokens(1_000),
                keep: 3,
                clear_at_least: 0,
                exclude: vec![],
                inputs: ClearInputs::None
            },
            ServerEdit::Compact { trigger: 1_500, instructions: None, pause: false }
        ]
    );
    assert_eq!(kinds(samples[1]), [Base, RepoMap, User, Assistant, File, User]);
    assert_eq!(kinds(samples[2]), [Base, Compaction, Call, Output]);
    assert_eq!(kinds(samples[3]), [Base, Compaction, Call, Output, Assistant, RepoMap, File, User]);
    assert_eq!(p.compactions(), [("server_compaction", Phase::MidTurn)]);
    assert!(p.summaries().is_empty());
}

#[test]
fn a_pause_after_the_providers_compaction_goes_on() {
    let paused = Reply {
        parts: vec![Part::Compaction(Some("so far".into()))],
        stop: StopReason::Compaction,
        ..Reply::default()
    };
    let p = play_with(
        "openoxide@provider-side",
        "claude-sonnet-4-6",
        ScriptedHost::new(vec![user("u1", "go")], vec![Ok(paused), text_answer("done")]),
        |_| {},
    );
    assert_eq!(kinds(p.samples()[1]), [Base, Compaction]);
}

#[test]
fn the_provider_is_asked_only_by_its_version_and_only_for_what_it_can() {
    let edits = |spec: &str, model: &str| {
        let script = ScriptedHost::new(vec![user("u", "x")], vec![text_answer("done")]);
        play_with(spec, model, script, |_| {}).samples()[0].server_edits.len()
    };
    assert_eq!(edits("openoxide", "claude-sonnet-4-6"), 0);
    assert_eq!(edits("openoxide@provider-side", "claude-sonnet-4-6"), 2);
    // This model's provider clears but does not compact.
    assert_eq!(edits("openoxide@provider-side", "claude-sonnet-4-5"), 1);
    let unfit = |spec: &str, model: &str| {
        Spec::parse(spec).unwrap().unfit(ctxbench_core::model::find(model).unwrap())
    };
    assert!(unfit("openoxide@provider-side", "gpt-5").unwrap().contains("Anthropic API only"));
    assert_eq!(unfit("openoxide", "gpt-5"), None);
}

#[test]
fn a_refused_prompt_is_made_smaller_and_sent_again() {
    let turns = vec![user("u1", &words(400)), user("u2", "next")];
    let script = ScriptedHost::new(
        turns,
        vec![text_answer("done"), too_long(2_100, 2_000), text_answer("fine")],
    )
    .with_summaries(&["short"]);
    let p = play("chat_history_max=600k,chat_history_fraction=1", script);
    assert_eq!(p.compactions(), [("session_summary", Phase::MidTurn)]);
    assert_eq!(kinds(p.samples()[2]), [Base, Summary, User]);
    assert!(p.failures().is_empty());
}

#[test]
fn the_user_may_ask_and_say_what_for() {
    let turns = vec![
        user("u1", &words(60)),
        Action::Compact { instructions: Some("keep the colours".into()) },
        user("u2", "next"),
    ];
    let script = ScriptedHost::new(turns, vec![text_answer(&words(60)), text_answer("fine")])
        .with_summaries(&["short"]);
    let p = play("chat_history_max=600k,chat_history_fraction=1", script);
    assert!(p.summaries()[0].blocks.last().unwrap().text.ends_with("keep the colours"));
    assert_eq!(kinds(p.samples()[1]), [Base, User, Summary, User]);
    assert_eq!(p.compactions(), [("session_summary", Phase::StandaloneTurn)]);
}

#[test]
fn going_back_behind_a_compaction_brings_the_history_back() {
    let turns = vec![user("u1", &words(100)), user("u2", "next"), back_to("u1")];
    let p = play("", ScriptedHost::new(turns, vec![text_answer("done"), text_answer("fine")]));
    assert_eq!(p.view(), [(Base, "base".into()), (User, "word ".into())]);
    let turns = vec![user("u1", &words(100)), user("u2", "next"), back_to("u2")];
    let p = play("", ScriptedHost::new(turns, vec![text_answer("done"), text_answer("fine")]));
    // The compaction was made with this message in the view, so it is kept.
    assert_eq!(p.view().iter().map(|v| v.0).collect::<Vec<_>>(), [Base, Summary, Assistant, User]);
}

#[test]
fn two_phases_clear_after_a_turn_and_summarise_the_session_over_the_buffer() {
    let turns = (1..=4).map(|i| user(&format!("u{i}"), "go")).collect();
    let replies = vec![
        calls("", "a", "read", "{}"),
        calls("", "b", "read", "{}"),
        text_answer("1"),
        text_answer("2"),
        text_answer("3"),
        text_answer("4"),
    ];
    let p = play("phases=two", ScriptedHost::new(turns, replies).with_outputs(&[500, 450]));
    assert_eq!(p.compactions(), [("prune", Phase::PostTurn)]);

    let turns = vec![user("u1", &words(900)), user("u2", "next")];
    let p = play(
        "phases=two",
        ScriptedHost::new(turns, vec![text_answer(&words(1_000)), text_answer("fine")]),
    );
    assert_eq!(p.compactions(), [("session_summary", Phase::Background)]);
    assert_eq!(kinds(p.samples()[1]), [Base, Summary, User]);
}

#[test]
fn two_phases_have_no_third() {
    // 900 words far exceed the budget of finished turns and fit in the window less the buffer.
    let turns = || vec![user("u1", &words(900)), user("u2", "next")];
    let short = || ScriptedHost::new(turns(), vec![text_answer("done"), text_answer("fine")]);
    let mechanisms =
        |p: &ScriptOutcome| p.compactions().iter().map(|(m, _)| *m).collect::<Vec<_>>();
    assert_eq!(mechanisms(&play("", short())), ["history_summary"]);
    assert_eq!(mechanisms(&play("phases=two", short())), [""; 0]);
    // The session's own model writes the summary, not the weak model.
    let long = ScriptedHost::new(turns(), vec![text_answer(&words(1_000)), text_answer("fine")]);
    let p = play("phases=two", long);
    assert_eq!(mechanisms(&p), ["session_summary"]);
    assert_eq!(p.summaries()[0].model.name, p.samples()[0].model.name);
}

#[test]
fn the_map_is_cut_to_its_budget_at_a_line_end() {
    let map = "src/file.rs: fn a\n".repeat(100);
    let p = play_with(
        "openoxide",
        "claude-sonnet-4-6",
        ScriptedHost::new(vec![user("u", "x")], vec![text_answer("y")]),
        |e| {
            e.fixed.repo_map =
                vec![Draft::text(RepoMap, Role::User, map.as_str()).build(MessageId(0), vec![])];
        },
    );
    let shown = &p.samples()[0].blocks[1];
    // 8,192 tokens at this scale are 82, which is 331 bytes: 18 whole lines.
    assert_eq!((shown.kind, shown.text.lines().count()), (RepoMap, 18));
    assert!(shown.text.ends_with('\n'));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_request_is_over_the_gate_and_none_is_torn(
        outputs in prop::collection::vec(0usize..1_200, 1..14),
        per_turn in 1usize..5,
        looks in 0u32..3,
        two in any::<bool>(),
    ) {
        let mut replies = Vec::new();
        let mut turns = Vec::new();
        for (i, chunk) in outputs.chunks(per_turn).enumerate() {
            turns.push(user(&format!("u{i}"), "do it"));
            replies.extend((0..chunk.len()).map(|k| calls("look", &format!("{i}-{k}"), "read", "{}")));
            replies.push(text_answer("done"));
        }
        let mut script = ScriptedHost::new(turns, replies).with_outputs(&outputs);
        script.looks = looks;
        let p = play(if two { "phases=two" } else { "" }, script);
        let gate = if two { 1_800 } else { GATE };
        for r in p.samples() {
            prop_assert!(r.tokens() <= gate, "{} tokens", r.tokens());
            prop_assert_eq!(orphans(&r.blocks), Orphans::default());
            prop_assert!(r.blocks.iter().any(|b| b.kind == User));
        }
        prop_assert!(p.failures().is_empty());
    }
}
