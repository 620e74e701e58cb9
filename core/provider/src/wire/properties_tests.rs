//! Properties of the wire formats over random block sequences and replies.

use std::sync::Arc;

use proptest::prelude::*;

use crate::prompt::Item;
use crate::wire::openai::reported_usage;
use crate::wire::{ALL, LastPrompt, ResultsDue, Wire};
use ctxbench_core::block::{Block, BlockKind, CallRef, Draft, Media, MessageId, Role};
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::model::{Counting, Model, find};
use ctxbench_core::request::{
    Applied, ClearInputs, ClearTrigger, Reply, Request, ServerEdit, StopReason, Thread, Tools,
};
use ctxbench_core::usage::{Ttl, Usage};

fn model() -> Arc<Model> {
    Arc::new(find("claude-sonnet-4-6").unwrap().clone())
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z \n\"\\\\]{0,30}",
        1 => prop::collection::vec(any::<char>(), 0..12).prop_map(|c| c.into_iter().collect()),
    ]
}

fn id() -> impl Strategy<Value = String> {
    "[a-z]{1,3}[0-9_]{0,6}"
}

fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        words().prop_map(|w| serde_json::json!({"path": w, "n": 1}).to_string()),
        Just("{ \"a\" : 1e5, \"u\":\"\\u00e9\\/\" , \"a\":-0 }".to_string()),
        Just("{\"_raw\":\"x\"}".to_string()),
        Just("{\"cut off\": ".to_string()),
        Just(" {} ".to_string()),
        Just("[1]".to_string()),
        words(),
    ]
}

fn media() -> impl Strategy<Value = Media> {
    let urls = prop_oneof![
        Just("data:image/png;base64,AAAA".to_string()),
        Just("https://example.org/a.png".to_string())
    ];
    let kinds = prop_oneof![Just("image/png".to_string()), Just("application/pdf".to_string())];
    (kinds, urls).prop_map(|(media_type, url)| Media { media_type, url, name: None })
}

fn opaque() -> impl Strategy<Value = Option<Arc<str>>> {
    prop::option::of("[A-Za-z0-9+/=]{1,40}".prop_map(Arc::from))
}

fn role() -> impl Strategy<Value = Role> {
    prop::sample::select(vec![
        Role::Instructions,
        Role::System,
        Role::Developer,
        Role::User,
        Role::Assistant,
        Role::Tool,
    ])
}

/// A block as any wire can carry it; a compaction has the form that `wire` knows.
fn draft(wire: Wire) -> impl Strategy<Value = Draft> {
    let text = |kind, role: Role, t: String| Draft::text(kind, role, t);
    let call =
        |id: String, name: String| Some(Arc::new(CallRef { id: id.into(), name: name.into() }));
    prop_oneof![
        4 => (words(), role(), 0..3usize).prop_map(move |(t, r, cuts)| {
            let mut d = text(BlockKind::User, r, t);
            d.splits = d.text.char_indices().map(|(i, _)| i).skip(1).take(cuts).collect();
            d
        }),
        1 => (words(), opaque()).prop_map(move |(t, opaque)| Draft { opaque, ..text(BlockKind::Reasoning, Role::Assistant, t) }),
        2 => (id(), id(), arguments()).prop_map(move |(i, n, a)| Draft { call: call(i, n), ..text(BlockKind::Call, Role::Assistant, a) }),
        2 => (id(), words(), any::<bool>(), prop::option::of(media()), 0..2usize).prop_map(move |(i, t, is_error, m, cuts)| {
            let mut d = Draft { call: call(i, "n".into()), is_error, media: m.map(Arc::new), ..text(BlockKind::Output, Role::Tool, t) };
            d.splits = d.text.char_indices().map(|(i, _)| i).skip(1).take(cuts).collect();
            d
        }),
        1 => (media(), role()).prop_map(move |(m, r)| Draft { media: Some(Arc::new(m)), ..text(BlockKind::Image, r, String::new()) }),
        1 => ("[a-z ]{1,20}", "[A-Z]{4,20}").prop_map(move |(t, o)| {
            let opaque = Draft { opaque: Some(o.into()), ..text(BlockKind::Compaction, Role::Assistant, String::new()) };
            let shown = (wire.rules.shows_compaction)(&opaque.clone().build(MessageId(0), vec![]));
            if shown && !wire.rules.shows_summaries { opaque } else { text(BlockKind::Compaction, Role::User, t) }
        }),
    ]
}

fn blocks(wire: Wire) -> impl Strategy<Value = Vec<Arc<Block>>> {
    let ask = |message| {
        let ask = Draft::text(BlockKind::CompactionTrigger, Role::User, "");
        ask.build(MessageId(message), vec![])
    };
    let asks = (wire.rules.shows_trigger)(&ask(0), true);
    (prop::collection::vec((draft(wire), any::<bool>()), 0..24), any::<bool>()).prop_map(
        move |(drafts, trigger)| {
            let mut message = 0;
            let mut blocks: Vec<Arc<Block>> = drafts
                .into_iter()
                .map(|(d, same)| {
                    message += u32::from(!same);
                    d.build(MessageId(message), vec![])
                })
                .collect();
            if trigger && asks {
                blocks.push(ask(message + 1));
            }
            blocks
        },
    )
}

fn edits() -> impl Strategy<Value = Vec<ServerEdit>> {
    let trigger = (0..200_000u64, any::<bool>()).prop_map(|(n, uses)| {
        if uses { ClearTrigger::ToolUses(n) } else { ClearTrigger::InputTokens(n) }
    });
    let inputs = prop_oneof![
        Just(ClearInputs::None),
        Just(ClearInputs::All),
        prop::collection::vec(id(), 1..3).prop_map(ClearInputs::Of),
    ];
    let clear = (trigger, 0..9usize, 0..9_000u64, prop::collection::vec(id(), 0..3), inputs)
        .prop_map(|(trigger, keep, clear_at_least, exclude, inputs)| ServerEdit::ClearToolUses {
            trigger,
            keep,
            clear_at_least,
            exclude,
            inputs,
        });
    let thinking = prop::option::of(1..9usize).prop_map(|keep| ServerEdit::ClearThinking { keep });
    let compact = (50_000..200_000u64, prop::option::of(words()), any::<bool>()).prop_map(
        |(trigger, i, pause)| ServerEdit::Compact {
            trigger,
            instructions: i.map(Arc::from),
            pause,
        },
    );
    let deleted = prop::collection::vec(id().prop_map(Arc::from), 0..3)
        .prop_map(|results| ServerEdit::CacheEdits { results });
    (
        prop::option::of(thinking),
        prop::option::of(clear),
        prop::option::of(compact),
        prop::option::of(deleted),
    )
        .prop_map(|(a, b, c, d)| a.into_iter().chain(b).chain(c).chain(d).collect())
}

fn request(wire: Wire) -> impl Strategy<Value = Request> {
    let tools = prop::collection::vec(
        words()
            .prop_map(|d| serde_json::json!({"name": "t", "description": d, "input_schema": {}})),
        0..3,
    );
    (
        blocks(wire),
        tools,
        prop::option::of(1..99_999u64),
        prop::collection::vec(0..24usize, 0..4),
        any::<bool>(),
        edits(),
    )
        .prop_map(|(blocks, tools, max_tokens, breakpoints, hour, server_edits)| Request {
            max_tokens,
            tools: Tools::new(&tools),
            breakpoints: breakpoints.into_iter().filter(|b| *b < blocks.len()).collect(),
            ttl: if hour { Ttl::OneHour } else { Ttl::FiveMinutes },
            server_edits,
            ..Request::new(model(), blocks)
        })
}

fn reply(wire: Wire) -> impl Strategy<Value = Reply> {
    let some = |words: String| Arc::<str>::from(words + ".");
    let reasoning = (words(), opaque())
        .prop_map(|(t, encrypted)| Part::Reasoning { text: t.into(), encrypted });
    let said = words().prop_map(move |w| Part::Text(some(w)));
    let calls = (id(), id(), arguments()).prop_map(|(i, n, a)| {
        Part::Call(ToolCall { id: i.into(), name: n.into(), arguments: a.into() })
    });
    let parts = (
        prop::option::of(reasoning),
        prop::option::of(said),
        prop::collection::vec(calls, 0..3),
        any::<bool>(),
    );
    let n = || 0..1_000_000u64;
    let usage = (n(), n(), n(), n(), n()).prop_map(|(input, output, cache_read, w5, w1)| Usage {
        input,
        output,
        cache_read,
        reasoning: output / 2,
        cache_write: w5,
        cache_write_1h: w1,
        reported_total: None,
    });
    (parts, usage.clone(), prop::option::of(usage), 0..9usize).prop_map(
        move |((r, t, c, failed), usage, compaction, cleared)| {
            let mut parts: Vec<Part> = r.into_iter().chain(t).chain(c).collect();
            let mut billed = usage;
            if let Some(extra) = compaction.filter(|u| u.prompt() > 0) {
                billed.add(&extra);
                parts.insert(0, Part::Compaction((!failed).then(|| "summary".into())));
            }
            let turns = cleared / 2;
            let applied = Applied {
                cleared_tool_uses: cleared,
                cleared_tokens: 10 * cleared as u64,
                cleared_thinking_turns: turns,
                thinking_tokens: 5 * turns as u64,
            };
            let id = (cleared % 3 > 0).then(|| format!("msg_{cleared}").into());
            let mut reply = Reply { id, parts, usage, billed, applied, ..Reply::default() };
            reply.stop = if reply.has_calls() { StopReason::ToolUse } else { StopReason::EndTurn };
            carried_reply(wire, reply)
        },
    )
}

/// Returns the part of a reply that survives encoding and decoding.
fn carried_reply(wire: Wire, mut reply: Reply) -> Reply {
    if wire.name == "anthropic-messages" {
        // The wire does not report reasoning separately.
        (reply.usage.reasoning, reply.billed.reasoning) = (0, 0);
        return reply;
    }
    // One usage, and no edits of the provider.
    reply.parts.retain(|p| !matches!(p, Part::Compaction(_)));
    let Reply { id, parts, usage, stop, .. } = reply;
    if wire.name == "gemini" {
        let u = reported_usage(&Reply { usage, billed: reply.billed, ..Reply::default() });
        let input = u.input + u.cache_write + u.cache_write_1h;
        let usage = Usage { input, cache_write: 0, cache_write_1h: 0, ..u };
        return Reply { id, parts, stop, usage, billed: usage, ..Reply::default() };
    }
    let usage = Usage { cache_write_1h: 0, ..usage };
    Reply { parts, billed: usage, usage, stop, ..Reply::default() }
}

fn any_wire<T: std::fmt::Debug + 'static>(
    of: impl Fn(Wire) -> BoxedStrategy<T>,
) -> impl Strategy<Value = (Wire, T)> {
    prop::strategy::Union::new(ALL.iter().map(|&w| of(w).prop_map(move |t| (w, t)).boxed()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_request_survives_its_wire((wire, r) in any_wire(|w| request(w).boxed())) {
        let e = wire.encode(&r);
        let mut p = wire.decode(&e.path, &e.body).unwrap();
        prop_assert_eq!(&p, &wire.prompt_of(&r));
        p.recognise(e.shows);
        let same = |(a, b): (&Item, &Item)| {
            a.shows.as_ref().zip(b.shows.as_ref()).is_some_and(|(a, b)| Arc::ptr_eq(a, b))
        };
        prop_assert!(p.items.iter().zip(&wire.prompt_of(&r).items).all(same));
        prop_assert_eq!(p.tokens(&r.model.counting), r.tokens());
        let prompt = wire.prompt_of(&r);
        prop_assert_eq!(prompt.tokens(&r.model.counting), r.tokens());
        // The prefixes are the same after any request, also one that begins like it.
        let mut last = LastPrompt::default();
        let n = r.blocks.len();
        for end in [n / 2, n.saturating_sub(1), n, n / 3, n] {
            let mut part = Request { blocks: r.blocks[..end].to_vec(), ..r.clone() };
            if end < n {
                part.breakpoints = vec![0, end / 2, end.saturating_sub(1)];
            }
            let expected = wire.prompt_of(&part).prefixes(&r.model.counting);
            prop_assert_eq!(wire.prefixes_of(&part, &mut last), expected);
        }
        prop_assert_eq!(p.items.len(), r.blocks.len());
        prop_assert_eq!(p.tools.as_ref().map(|t| t.json.get()), r.tools.as_ref().map(|t| t.json.get()));
        // Nothing is lost or renamed, whatever the layout did with roles and order.
        let sorted = |mut v: Vec<String>| { v.sort(); v };
        let shown = p.items.iter().map(|i| i.text().to_string()).collect();
        let said = r.blocks.iter().map(|b| b.text.to_string()).collect();
        // If results are due in the next message, they come first in it.
        if wire.rules.results_due == ResultsDue::NextMessage {
            prop_assert_eq!(sorted(shown), sorted(said));
        } else {
            prop_assert_eq!(shown, said);
            let messages: Vec<usize> = p.items.iter().map(|i| i.message).collect();
            prop_assert_eq!(&e.messages, &messages);
        }
        for b in r.blocks.iter().filter(|b| b.kind == BlockKind::Call) {
            let c = b.call.as_ref().unwrap();
            let same = |i: &Item| i.kind == BlockKind::Call && i.call.as_ref() == Some(c) && i.text == b.text;
            prop_assert!(p.items.iter().any(same));
        }
    }

    #[test]
    fn a_continued_thread_survives_its_wire((wire, r) in any_wire(|w| request(w).boxed()), held in 0..24usize, id in "[a-z_0-9]{1,12}") {
        let r = Request { thread: Some(Thread::Continue { after: id.as_str().into(), held }), ..r };
        let e = wire.encode(&r);
        let p = wire.decode(&e.path, &e.body).unwrap();
        prop_assert_eq!(&p, &wire.prompt_of(&r));
        prop_assert_eq!((p.items.len(), p.tools.is_none()), (r.blocks.len().saturating_sub(held), true));
        let sent = Thread::Continue { after: id.as_str().into(), held: 0 };
        let thread = wire.rules.carries_threads.then_some(sent);
        prop_assert_eq!(p.thread, thread);
    }

    #[test]
    fn a_reply_survives_its_wire((wire, r) in any_wire(|w| reply(w).boxed())) {
        prop_assert_eq!((wire.decode_reply)(&(wire.encode_reply)(&r, &model())).unwrap(), r);
    }

    #[test]
    fn a_stream_is_the_reply_that_it_was_made_of((wire, r) in any_wire(|w| reply(w).boxed())) {
        let bytes = (wire.encode_reply)(&r, &model());
        let data: Vec<String> =
            (wire.events)(&bytes, true).unwrap().into_iter().map(|e| e.data).collect();
        let whole = (wire.assemble)(&data).expect("a whole stream is a whole reply");
        // A stream has no pieces of a thought without text.
        let told = |bytes: &[u8]| {
            let mut reply = (wire.decode_reply)(bytes).unwrap();
            let empty = |p: &Part| matches!(p, Part::Reasoning { text, encrypted: None } if text.is_empty());
            reply.parts.retain(|p| !empty(p));
            reply
        };
        prop_assert_eq!(told(&whole), told(&bytes));
        // Without its end it is none.
        for cut in 0..data.len().saturating_sub(3) {
            prop_assert!((wire.assemble)(&data[..cut]).is_none(), "{} of {}", cut, data.len());
        }
    }

    #[test]
    fn garbage_is_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for wire in ALL {
            let _ = (wire.decode("", &bytes).is_ok(), (wire.decode_reply)(&bytes).is_ok());
            let _ = ((wire.reply_options)("", &bytes).is_ok(), wire.api.decode_error(400, &bytes));
        }
    }

    #[test]
    fn damaged_bodies_are_refused_without_panic((wire, r) in any_wire(|w| request(w).boxed()), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut body = wire.encode(&r).body;
        let i = at.index(body.len());
        body[i] = byte;
        if cut {
            body.truncate(i);
        }
        let _ = wire.decode("", &body).map(|p| p.tokens(&Counting::O200K));
        let _ = (wire.decode_reply)(&body);
    }
}
