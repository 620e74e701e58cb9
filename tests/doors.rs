// All parsers of external bytes, each as a function that must not panic. `tests/tests/parsers.rs`
// and `fuzz/` run them.

use std::path::Path;

use ctxbench_agents::serve;
use ctxbench_conform::Case;
use ctxbench_core::block::Role;
use ctxbench_core::model::{DEFAULT_MODEL, catalogue, find};
use ctxbench_core::usage::Ttl;
use ctxbench_kit::memory::{DurableFacts, PathScope, front_matter, merge};
use ctxbench_mock::summarise::endpoint::Cassette;
use ctxbench_provider::wire::{ALL as WIRES, Wire, apis, for_model};
use ctxbench_replay::validate::{PredictOptions, validate};
use ctxbench_replay::{Options as ReplayOptions, replay};
use ctxbench_scenarios::formats::Source;
use ctxbench_scenarios::{exports, formats as recordings, parse};
use ctxbench_strategies::Spec;
use ctxbench_strategies::evidence::split_chat_history_markdown;
use ctxbench_strategies::persist::{JournalEntry, StoredMessage, formats};

/// Name of a parser and a function that feeds it bytes.
pub type Door = (&'static str, fn(&[u8]));

pub const DOORS: [Door; 19] = [
    ("session", |b| drop(parse(b, "x.jsonl"))),
    ("scenario", |b| drop(parse(b, "x.toml"))),
    // Every format reads the bytes.
    ("recording", |b| in_every_format(&Source::of_bytes(b, "x.jsonl"))),
    // Recordings that can be read are written in every format and read again.
    ("export", |b| {
        let Ok(scenario) = parse(b, "x.jsonl") else { return };
        for export in exports::ALL {
            let mut losses = exports::ExportLosses::default();
            if let Ok(text) = (export.write)(&scenario.session, &mut losses) {
                in_every_format(&Source::of_bytes(text.as_bytes(), "x.json"));
            }
        }
    }),
    // Compressed bytes, and each member of an archive.
    ("packed", |b| {
        let source = Source::of_bytes(b, "x");
        drop(source.text());
        if let Ok(Some(archive)) = source.archive() {
            for name in archive.names() {
                drop(archive.member(name).and_then(|m| m.text().map(drop)));
            }
        }
    }),
    // Formats that are folders or databases, with the bytes in place of every file.
    ("store", |b| {
        let Ok(dir) = tempfile::tempdir() else { return };
        let places = [
            "opencode.db",
            "base_state.json",
            "events/event-00001.json",
            "session/p/s.json",
            "message/s/m.json",
            "part/m/p.json",
        ];
        for place in places.map(|p| dir.path().join(p)) {
            drop(place.parent().map(std::fs::create_dir_all));
            drop(std::fs::write(place, b));
        }
        for path in [dir.path().to_path_buf(), dir.path().join(places[0])] {
            in_every_format(&Source::at(&path));
        }
    }),
    ("validate", |b| {
        ctxbench_replay::validate::read(&Source::of_bytes(b, "x.jsonl"), |one| {
            let options = PredictOptions { lifetimes: true, ttl: Ttl::FiveMinutes };
            drop(one.map(|r| validate(&r, options)));
        });
    }),
    ("request", |b| WIRES.iter().for_each(|w| drop((w.decode("", b), (w.reply_options)("", b))))),
    ("reply", |b| {
        WIRES.iter().for_each(|w| drop(((w.decode_reply)(b), w.decode_count_reply(b))));
        apis().iter().for_each(|a| drop(a.decode_error(400, b)));
    }),
    // Every product reads the settings file; its values are applied.
    ("settings file", |b| {
        for spec in Spec::defaults() {
            drop(spec.with_file(&lossy(b)));
        }
    }),
    ("markdown", |b| {
        [true, false].iter().for_each(|t| drop(split_chat_history_markdown(&lossy(b), *t)))
    }),
    ("strategy", |b| drop(Spec::parse(&lossy(b)))),
    ("case", |b| drop(Case::parse(&lossy(b), "x.json"))),
    ("results", |b| drop(ctxbench_reports::parse_results(&lossy(b), Path::new("x.json")))),
    ("memory", |b| {
        let text = lossy(b);
        let (body, patterns) = front_matter(&text);
        if let Ok(scope) = PathScope::new(patterns) {
            scope.matches_any_suffix(body);
        }
        let items = text.lines().map(String::from).collect();
        merge(body, &[DurableFacts { heading: "Notes".into(), items }]);
    }),
    ("cassette", |b| in_a_file("x.jsonl", b, |p| drop(Cassette::open(p, true)))),
    // The first byte selects the format.
    ("stored", |b| {
        let Some((which, bytes)) = b.split_first() else { return };
        let all = formats();
        let format = all[usize::from(*which) % all.len()];
        let Ok(dir) = tempfile::tempdir() else { return };
        let said = JournalEntry::Message(StoredMessage::text(Role::User, "first"));
        let begun = (format.open)(dir.path(), 1).and_then(|mut p| p.append(&said));
        if begun.is_ok() {
            damage(dir.path(), bytes);
            if let Ok(mut p) = (format.open)(dir.path(), 2) {
                drop((p.load(), p.log(), p.append(&said), p.load()));
            }
        }
    }),
    // Sessions that can be read are replayed.
    ("replay", |b| {
        let Ok(scenario) = parse(b, "x.jsonl") else { return };
        if let (Ok(spec), Ok(model)) = (Spec::parse("sliding-window"), find(DEFAULT_MODEL)) {
            block_on(replay(&scenario, &spec, model, &ReplayOptions::default()));
        }
    }),
    // The first byte selects the path.
    ("serve", |b| {
        let Some((which, body)) = b.split_first() else { return };
        let paths = served();
        let path = &paths[usize::from(*which) % paths.len()];
        let clock: serve::Clock = std::sync::Arc::new(|| 0);
        let options = serve::ServeOptions { clock, ..serve::ServeOptions::default() };
        block_on(serve::answer(
            options,
            path,
            &[("anthropic-version", "2023-06-01")],
            body.to_vec(),
        ));
    }),
];

/// Reads a source as a recording of every format.
fn in_every_format(source: &Source<'_>) {
    recordings::ALL.iter().for_each(|format| drop(format.import_all(source)));
}

fn block_on<T>(work: impl Future<Output = T>) {
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() {
        runtime.block_on(work);
    }
}

pub fn served() -> Vec<String> {
    let paths = |w: &Wire| {
        let model =
            catalogue().iter().find(|m| for_model(m) == *w).map_or(DEFAULT_MODEL, |m| &*m.name);
        let (wire, path) = (*w, (w.path)(model));
        let mut all = ["", "/count_tokens", "/compact"].map(|end| format!("{path}{end}")).to_vec();
        // The model is part of the path, followed by the requested method.
        if let Some((front, _)) = path.rsplit_once(':') {
            all.extend(["streamGenerateContent", "countTokens"].map(|m| format!("{front}:{m}")));
        }
        all.into_iter().filter(move |p| (wire.endpoint)(p).is_some())
    };
    WIRES.iter().flat_map(paths).collect()
}

/// Replaces the content of every file in a folder with the bytes.
fn damage(dir: &Path, bytes: &[u8]) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            damage(&path, bytes);
        } else {
            drop(std::fs::write(path, bytes));
        }
    }
}

/// Calls `call` with the path of a file with these bytes.
fn in_a_file(name: &str, bytes: &[u8], call: impl Fn(&Path)) {
    let Ok(dir) = tempfile::tempdir() else { return };
    let path = dir.path().join(name);
    if std::fs::write(&path, bytes).is_ok() {
        call(&path);
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
