//! Finds the rules of a session, and follows them through the requests of its recording and of
//! replays.

use std::collections::{HashMap, HashSet};

use ctxbench_core::content::joined_text;
use ctxbench_core::model::Model;
use ctxbench_core::prelude::*;
use ctxbench_reports::record::{AS_RECORDED, Status};
use ctxbench_reports::rules::{Rule, RuleRequest, RuleRow, RuleState, RuleSurvival};
use ctxbench_scenarios::Scenario;
use ctxbench_session::fact::{FactKind, fold};
use ctxbench_session::matcher::Matcher;
use ctxbench_session::{Entry, Fact, Session, gist};
use ctxbench_strategies::Spec;
use serde_json::Value;

use crate::options::Options;
use crate::replay::replay;

/// Maximum number of rules of a session.
const MAX_RULES: usize = 300;

/// Length of a rule, characters.
const LENGTH: std::ops::RangeInclusive<usize> = 10..=300;

/// Number of stems from which a rule can be reworded.
const STEMS: usize = 3;

/// Terms that make a sentence a rule.
const MUST: [&str; 14] = [
    "must",
    "mustn't",
    "never",
    "always",
    "don't",
    "do not",
    "shouldn't",
    "should not",
    "avoid",
    "make sure",
    "ensure",
    "prefer",
    "from now on",
    "required",
];

const MEMORY_FILES: [&str; 4] = ["CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md"];

/// Follows the rules of a session through its recording, if it is one, and through each strategy.
pub async fn rule_survival(
    scenario: &Scenario,
    specs: &[Spec],
    model: &Model,
    options: &Options,
) -> RuleSurvival {
    let session = &scenario.session;
    let finder = RuleFinder::new(find(session));
    let mut rows = Vec::new();
    if session.header.source.is_some() {
        rows.push(finder.recorded(session));
    }
    let options = Options { rereads: false, trace: true, ..options.clone() };
    for spec in specs.iter().filter(|_| !finder.rules.is_empty()) {
        let replayed = replay(scenario, spec, model, &options).await;
        let note = (replayed.record.status != Status::Completed)
            .then(|| replayed.record.error.unwrap_or_else(|| "did not end".into()));
        let befores: Vec<u64> =
            replayed.record.compactions.iter().map(|c| c.before_request).collect();
        let requests = finder.replayed(&replayed.trace, &befores);
        rows.push(RuleRow { strategy: spec.label(), requests, note });
    }
    let (session, title) = (scenario.id.clone(), scenario.title.clone());
    RuleSurvival { session, title, rules: finder.rules, rows }
}

/// Finds the rules in memory files, also those that the agent read, and in the user's messages.
fn find(session: &Session) -> Vec<Rule> {
    let mut memory_reads: HashMap<Arc<str>, String> = HashMap::new();
    let (mut rules, mut known) = (Vec::new(), HashSet::new());
    let mut add = |from: &str, is_memory: bool, text: &str| {
        for sentence in sentences(text) {
            if rules.len() < MAX_RULES && is_rule(sentence) && known.insert(fold(sentence)) {
                rules.push(Rule { text: sentence.into(), from: from.into(), is_memory });
            }
        }
    };
    for e in session.entries.iter().filter(|e| e.agent().is_none()) {
        match e {
            Entry::Memory { path, text } => add(path, true, text),
            Entry::User(user) => {
                for text in user.content().iter().filter_map(|p| p.as_text()) {
                    // Texts in tags are notices of the program.
                    if !text.trim_start().starts_with('<') {
                        add(&user.id, false, text);
                    }
                }
            }
            Entry::Assistant(reply) => {
                for call in reply.all_calls() {
                    let path = file_path(&call.name, &call.arguments).unwrap_or_default();
                    if MEMORY_FILES.iter().any(|name| path.ends_with(name)) {
                        memory_reads.insert(call.id, path);
                    }
                }
            }
            Entry::Tool(result) => {
                if let Some(path) = memory_reads.get(result.call_id.as_str()) {
                    add(path, true, &joined_text(&result.content(), "\n"));
                }
            }
            _ => {}
        }
    }
    rules
}

/// Returns the sentences of a text without code, headings, rows of tables, and marks of lists.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let prose = text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.trim_start().starts_with(['#', '|'])
    });
    let is_mark = |c: char| !c.is_alphabetic() && !matches!(c, '`' | '"' | '/' | '.');
    let split = |line| ["! ", "; ", "? "].iter().fold(vec![line], split_all);
    prose
        .flat_map(|l| l.split_inclusive(". "))
        .flat_map(split)
        .map(move |s| s.trim_start_matches(is_mark).trim_end())
}

fn split_all<'a>(parts: Vec<&'a str>, end: &&str) -> Vec<&'a str> {
    parts.into_iter().flat_map(|part| part.split_inclusive(*end)).collect()
}

fn is_rule(sentence: &str) -> bool {
    let words = format!(" {} ", sentence.replace('’', "'").to_lowercase());
    let is_word = |c: char| c.is_alphanumeric() || c == '\'';
    let has = |must: &&str| {
        words.match_indices(*must).any(|(at, _)| {
            let after = &words[at + must.len()..];
            !words[..at].ends_with(is_word) && !after.starts_with(is_word)
        })
    };
    LENGTH.contains(&sentence.chars().count()) && !sentence.ends_with('?') && MUST.iter().any(has)
}

/// Finds rules in texts.
struct RuleFinder {
    rules: Vec<Rule>,
    /// Matches the text of each rule, and then its stems.
    matcher: Matcher,
}

/// Rules in a text, by index.
type Found = Vec<(usize, RuleState)>;

impl RuleFinder {
    fn new(rules: Vec<Rule>) -> RuleFinder {
        let fact = |text: &str| Fact::new("rule", FactKind::Constraint, text, "");
        let literal = |r: &Rule| fact(&r.text);
        let stems = |r: &Rule| {
            let mut words: Vec<String> = gist::stems(&r.text).collect();
            words.sort_unstable();
            words.dedup();
            let words = if words.len() < STEMS { vec![] } else { words };
            Fact { tokens: Vec::new(), words, ..fact("") }
        };
        let facts: Vec<Fact> = rules.iter().map(literal).chain(rules.iter().map(stems)).collect();
        RuleFinder { matcher: Matcher::new(&facts), rules }
    }

    /// Returns the rules in a text. Only summaries and replies reword one.
    fn found(&self, text: &str, may_reword: bool) -> Found {
        let n = self.rules.len();
        let all = self.matcher.find(text, &fold(text)).into_iter().map(|(i, _)| i);
        let state = |i| if i < n { (i, RuleState::Kept) } else { (i - n, RuleState::Reworded) };
        all.filter(|i| *i < n || may_reword).map(state).collect()
    }

    /// Returns the row of a recording: memory files are in every prompt, a compaction leaves its
    /// summary.
    fn recorded(&self, session: &Session) -> RuleRow {
        let mut fixed: Vec<Found> = Vec::new();
        let mut context: Vec<Found> = Vec::new();
        let (mut requests, mut compactions) = (Vec::new(), 0);
        let mut states = vec![None; self.rules.len()];
        for e in session.entries.iter().filter(|e| e.agent().is_none()) {
            match e {
                Entry::RecordedCompaction(c) => {
                    compactions += 1;
                    context = vec![self.found(c.summary.as_deref().unwrap_or_default(), true)];
                }
                Entry::Clear | Entry::NewSession => context.clear(),
                Entry::Assistant(_) => {
                    step(&mut states, fixed.iter().chain(&context).flatten());
                    requests.push(RuleRequest { compactions, states: states.clone() });
                }
                _ => {}
            }
            fixed.extend(e.standing_text().map(|text| self.found(text, false)));
            for part in e.content() {
                context.push(self.found(part.text(), matches!(e, Entry::Assistant(_))));
            }
            context.retain(|found| !found.is_empty());
        }
        RuleRow { strategy: AS_RECORDED.into(), requests, note: None }
    }

    /// Returns the requests of a trace.
    fn replayed(&self, trace: &[String], befores: &[u64]) -> Vec<RuleRequest> {
        let mut known: HashMap<String, Found> = HashMap::new();
        // Items of the line before of each window, whose first ones a line leaves out.
        let mut shown: HashMap<Option<String>, Vec<String>> = HashMap::new();
        let mut states = vec![None; self.rules.len()];
        let mut requests = Vec::new();
        for line in trace {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            let items = line["items"].as_array().map_or(&[][..], Vec::as_slice);
            let window = shown.entry(line["agent"].as_str().map(Into::into)).or_default();
            window.truncate(line["same"].as_u64().unwrap_or_default() as usize);
            for item in items {
                window.extend(item["sha256"].as_str().map(String::from));
                let hash = item["sha256"].as_str().unwrap_or_default();
                if let Some(text) = item["text"].as_str()
                    && !known.contains_key(hash)
                {
                    let reworded = ["assistant", "summary", "compaction", "reasoning"];
                    let may_reword = item["kind"].as_str().is_some_and(|k| reworded.contains(&k));
                    known.insert(hash.to_string(), self.found(text, may_reword));
                }
            }
            if line["purpose"] != "sample" || !line["agent"].is_null() {
                continue;
            }
            step(&mut states, window.iter().filter_map(|hash| known.get(hash)).flatten());
            let seq = line["seq"].as_u64().unwrap_or_default();
            let compactions = befores.iter().filter(|b| **b <= seq).count() as u64;
            requests.push(RuleRequest { compactions, states: states.clone() });
        }
        requests
    }
}

/// Sets the states at a request that shows these rules.
fn step<'a>(states: &mut [Option<RuleState>], shown: impl Iterator<Item = &'a (usize, RuleState)>) {
    states.iter_mut().flatten().for_each(|state| *state = RuleState::Gone);
    for (rule, state) in shown {
        let is_stated = states[*rule].is_some() || *state == RuleState::Kept;
        states[*rule] = is_stated.then(|| (*state).max(states[*rule].unwrap_or(*state)));
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::model;
    use ctxbench_os::block_on;

    use super::*;

    const LINES: &str = r##"{"type":"session","version":1,"id":"s","model":"claude-sonnet-4-6","source":{"format":"claude-code"}}
{"type":"memory","path":"AGENTS.md","text":"# Always\n- Never edit generated files. It is slow?\n"}
{"type":"user","id":"u1","text":"Always run the linter before each commit. Is it a must? Thanks; don't push."}
{"type":"assistant","id":"a1","text":"I have seen it."}
{"type":"recorded_compaction","summary":"The user wants the linter to be run before a commit."}
{"type":"user","id":"u2","text":"go on"}
{"type":"assistant","id":"a2","text":"so be it"}
"##;

    fn scenario() -> Scenario {
        ctxbench_scenarios::parse(LINES.as_bytes(), "s.jsonl").unwrap()
    }

    #[test]
    fn rules_are_sentences_that_demand() {
        let rules = find(&scenario().session);
        let texts: Vec<(&str, &str)> = rules.iter().map(|r| (&*r.text, &*r.from)).collect();
        assert_eq!(
            texts,
            [
                ("Never edit generated files.", "AGENTS.md"),
                ("Always run the linter before each commit.", "u1"),
                ("don't push.", "u1"),
            ]
        );
        for (text, yes) in [
            ("I don’t want tabs", true),
            ("mustard is never enough", true),
            ("whenever mustard arrives", false),
            ("Should we always do it?", false),
        ] {
            assert_eq!(is_rule(text), yes, "{text}");
        }
    }

    #[test]
    fn a_compaction_keeps_rewords_and_loses_rules() {
        let specs = [Spec::parse("none").unwrap()];
        let model = model::find("claude-sonnet-4-6").unwrap();
        let found = block_on(rule_survival(&scenario(), &specs, model, &Options::default()));
        let found = found.unwrap();
        let [recorded, none] = &found.rows[..] else { panic!("{found:?}") };
        let states = |row: &RuleRow| -> Vec<(u64, Vec<Option<RuleState>>)> {
            row.requests.iter().map(|r| (r.compactions, r.states.clone())).collect()
        };
        let [kept, reworded, gone] =
            [RuleState::Kept, RuleState::Reworded, RuleState::Gone].map(Some);
        let all = vec![kept, kept, kept];
        assert_eq!(states(recorded), [(0, all.clone()), (1, vec![kept, reworded, gone])]);
        assert_eq!(states(none), [(0, all.clone()), (0, all)]);
        // 5 and 4 of 6.
        let (shown, verbatim) = recorded.shares().unwrap();
        assert!((shown - 500.0 / 6.0).abs() < 1e-9 && (verbatim - 400.0 / 6.0).abs() < 1e-9);
        let text = found.to_text();
        assert!(text.contains("gone from request 2: “don't push.” (u1)"), "{text}");
    }
}
