//! Keys of finished pairs. A key is a hash of everything that determines the pair's row, so pairs
//! with the same key have the same row and need not be computed again.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use ctxbench_core::model::Model;
use ctxbench_reports::record::RESULTS_VERSION;
use ctxbench_scenarios::Scenario;
use ctxbench_session::{Header, Source};
use ctxbench_strategies::Spec;
use rapidhash::v3::rapidhash_v3_file;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::memory::Prefixes;
use crate::options::Options;
use ctxbench_mock::summarise::Summariser;

/// A hash that implements `Write` and counts the bytes.
#[derive(Clone, Default)]
struct Hasher {
    hash: Sha256,
    bytes: u64,
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Hasher {
    /// Hashes a part. Different lists of parts never give the same bytes.
    fn part(&mut self, value: &dyn fmt::Debug) {
        // Debug escapes line breaks in strings, so only the end of a part adds one.
        writeln!(self, "{value:?}").expect("a hash takes everything");
    }

    fn json(&mut self, value: &impl Serialize) {
        serde_json::to_writer(&mut *self, value).expect("sessions always serialise");
        self.write_all(b"\n").expect("a hash takes everything");
    }
}

/// Hash and size of the content of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionContent {
    hash: [u8; 32],
    /// Size as JSON.
    pub bytes: u64,
}

impl SessionContent {
    /// Hashes a session as it was read, with its facts. Its name, title, file and start do not
    /// matter.
    pub fn new(scenario: &Scenario) -> SessionContent {
        let mut hasher = Hasher::default();
        let session = &scenario.session;
        let source = session.header.source.clone().map(|s| Source { file: None, ..s });
        let (id, title, started) = Default::default();
        hasher.json(&Header { id, title, started, source, ..session.header.clone() });
        session.entries.iter().for_each(|e| hasher.json(e));
        session.facts.iter().for_each(|f| hasher.json(f));
        let bytes = hasher.bytes;
        hasher.part(&(&scenario.faults, scenario.facts_found));
        SessionContent { hash: hasher.hash.finalize().into(), bytes }
    }

    /// Returns the first 16 hexadecimal digits of the hash.
    pub(crate) fn short(&self) -> String {
        hex(&self.hash, 8)
    }
}

/// Identifies the running program. A different build, or one with additional strategies, computes
/// everything again.
pub fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let hashed = std::env::current_exe().and_then(|path| file_hash(&path));
    format!("{version} {RESULTS_VERSION} {}", hashed.unwrap_or_default())
}

fn file_hash(path: &Path) -> io::Result<String> {
    Ok(format!("{:016x}", rapidhash_v3_file(std::fs::File::open(path)?)?))
}

fn hex(bytes: &[u8], most: usize) -> String {
    bytes.iter().take(most).map(|b| format!("{b:02x}")).collect()
}

/// Key parts that all pairs of a run share.
pub struct Keys {
    common: Hasher,
    /// External programs, each as it was specified, with the hashes of the files that its command
    /// names.
    programs: Vec<(String, String)>,
    /// Memory files, which differ per strategy.
    memory: Arc<Prefixes>,
}

impl Keys {
    /// Creates the shared part. `programs` = the external programs as they were specified:
    /// `NAME=exec:COMMAND`.
    pub fn new(program: &str, options: &Options, programs: &[String]) -> Keys {
        let mut common = Hasher::default();
        let memory = options.memory.clone();
        // Summariser and seed belong to each variant.
        let (summariser, seed) = (Summariser::Extractive, 0);
        let options = Options { summariser, seed, memory: Arc::default(), ..options.clone() };
        common.part(&(program, &options));
        let with_files = |text: &String| {
            let files = text.split([' ', ':']).filter_map(|word| file_hash(Path::new(word)).ok());
            (text.clone(), files.collect::<Vec<_>>().join(" "))
        };
        Keys { common, programs: programs.iter().map(with_files).collect(), memory }
    }

    /// Adds the content and properties of one session.
    pub fn of_session(&self, scenario: &Scenario, content: &SessionContent) -> SessionKeys<'_> {
        let mut hash = self.common.clone();
        let s = scenario;
        hash.part(&(&s.id, &s.title, &s.why, &s.tags, s.scale, &s.warnings, content.hash));
        hash.part(&(&s.billed_elsewhere, &s.counted_as));
        SessionKeys { keys: self, hash }
    }
}

/// Keys of the pairs of one session.
pub struct SessionKeys<'a> {
    keys: &'a Keys,
    hash: Hasher,
}

impl SessionKeys<'_> {
    /// Returns the key of a strategy with a model. `named` = the row shows the seed.
    pub fn pair(
        &self,
        spec: &Spec,
        model: &Model,
        summariser: &Summariser,
        seed: u64,
        named: bool,
    ) -> String {
        let mut hash = self.hash.clone();
        let from_scenario = |(text, _): &&(String, String)| {
            text.strip_prefix(spec.descriptor.name).is_some_and(|t| t.starts_with(['=', '@']))
        };
        let settings: Vec<_> = spec.settings.all().collect();
        hash.part(&(
            spec.label(),
            spec.version.name,
            settings,
            self.keys.programs.iter().find(from_scenario),
        ));
        hash.part(&(self.keys.memory.files(spec), model, named));
        // The answers of an endpoint are in its cassette.
        match summariser {
            Summariser::Endpoint(e) => hash.part(&e.name()),
            other => hash.part(other),
        }
        // Without randomness the text is the same with every seed.
        hash.part(&summariser.seeded().then_some(seed));
        hex(&hash.hash.finalize(), 16)
    }

    pub fn recorded(&self, model: &Model) -> String {
        let mut hash = self.hash.clone();
        hash.part(&("as recorded", model));
        hex(&hash.hash.finalize(), 16)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ctxbench_core::model::find;
    use ctxbench_session::{Entry, Fact, Session};

    use super::*;

    /// What decides a row.
    struct Row {
        options: Options,
        program: &'static str,
        scenario: Scenario,
        spec: &'static str,
        model: &'static str,
        by: Summariser,
        seed: u64,
    }

    #[test]
    fn a_session_is_the_same_one_under_another_name_and_date() {
        let short = |change: &dyn Fn(&mut Session)| {
            let mut scenario = Scenario::default();
            scenario.session.header.source = Some(Source::default());
            change(&mut scenario.session);
            SessionContent::new(&scenario).short()
        };
        let same = short(&|_| {});
        assert_eq!(short(&|s| s.header.title = "other".into()), same);
        assert_eq!(short(&|s| s.header.started = Some("2026-01-01T00:00:00Z".into())), same);
        assert_eq!(short(&|s| s.header.id = "other".into()), same);
        assert_eq!(short(&|s| s.header.source.as_mut().unwrap().file = Some("other".into())), same);
        assert_ne!(short(&|s| s.header.source = None), same);
        assert_ne!(short(&|s| s.header.model = Some("other".into())), same);
        assert_ne!(short(&|s| s.entries.push(Entry::Idle { ms: 1 })), same);
        assert_ne!(short(&|s| s.facts.push(Fact::default())), same);
    }

    #[test]
    fn whatever_decides_a_row_decides_its_key() {
        let key = |change: &dyn Fn(&mut Row)| {
            let mut row = Row {
                options: Options::default(),
                program: "1",
                scenario: Scenario { id: "s".into(), ..Scenario::default() },
                spec: "codex",
                model: "claude-sonnet-4-6",
                by: Summariser::Extractive,
                seed: 1,
            };
            change(&mut row);
            let Row { options, program, scenario, spec, model, by, seed } = row;
            let (keys, content) =
                (Keys::new(program, &options, &[]), SessionContent::new(&scenario));
            let (spec, model) = (Spec::parse(spec).unwrap(), find(model).unwrap());
            keys.of_session(&scenario, &content).pair(&spec, model, &by, seed, false)
        };
        let lossy = |row: &mut Row| row.by = Summariser::Lossy { keep: 0.5, distort: 0.1 };
        let all = [
            key(&|_| {}),
            key(&|row| row.program = "2"),
            key(&|row| row.scenario.session.entries.push(Entry::Restart)),
            key(&|row| row.scenario.id = "t".into()),
            key(&|row| row.scenario.scale = 0.5),
            key(&|row| row.spec = "aider"),
            key(&|row| row.spec = "codex:auto_compact_limit=90000"),
            key(&|row| row.model = "gpt-5.4"),
            key(&lossy),
            key(&|row| {
                lossy(row);
                row.seed = 2;
            }),
            key(&|row| row.options.window = Some(9)),
            key(&|row| row.options.trace = true),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        let seeds = |row: &mut Row| (row.options.seed, row.seed) = (7, 2);
        assert_eq!(key(&seeds), all[0], "nothing in it is seeded");
        assert!(all[0].len() == 32 && all[0].bytes().all(|b| b.is_ascii_hexdigit()));
    }
}
