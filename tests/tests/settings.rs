//! Every setting changes a request of some session, or is listed with a reason.

use crate::random;

use std::collections::{BTreeSet, HashMap};

use ctxbench_core::model::{self, Model};
use ctxbench_core::settings::{Setting, SettingKind, Value};
use ctxbench_replay::{Options, replay};
use ctxbench_scenarios::{FaultOn, ProviderFault, Scenario, builtin};
use ctxbench_strategies::descriptor::Descriptor;
use ctxbench_strategies::{Spec, built_in};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

/// Strategies for the test of settings that need a version or another setting.
const WITH: &[(&str, &str)] = &[
    ("aider:architect=true", "auto_accept editor_model"),
    ("aider:cache_prompts=true,keepalive_pings=3", "keepalive_delay_ms"),
    ("aider:cache_prompts=true", "keepalive_pings"),
    ("anthropic-sdk@2.12", "compact_at edits threads"),
    ("claude-code:auto=false", "blocking_buffer"),
    ("claude-code:resume=summary,resume_min_tokens=300", "resume_idle_ms"),
    ("claude-code:resume=summary,resume_idle_ms=0,resume_min_tokens=300", "resume_keep_messages"),
    ("claude-code:resume=summary,resume_idle_ms=0", "resume_min_tokens"),
    ("claude-code:resume_idle_ms=0,resume_min_tokens=300", "resume"),
    ("claude-code:cache_ttl=1h,idle_min_tokens=300", "idle_compaction idle_share"),
    ("claude-code:cache_ttl=1h", "idle_min_tokens"),
    (
        "claude-code:session_memory=true",
        "memory_growth_tokens memory_keep_most_tokens memory_keep_texts memory_keep_tokens \
         memory_start_tokens",
    ),
    ("claude-code:microcompact=cache-edits", "micro_active"),
    ("claude-code:microcompact=count", "micro_keep micro_minimum warning_distance"),
    ("claude-code:microcompact=time", "micro_gap_keep micro_gap_ms"),
    ("claude-code-api:compact=on_demand,compact_trigger=60k", "instructions"),
    ("claude-code-api:pause=true,compact_trigger=60k", "keep_last"),
    ("claude-code-api:thinking=turns", "thinking_keep"),
    ("codex:remote=true", "remote_user_tokens"),
    ("gemini-cli:results_budget=0,mask=false", "cut_to"),
    ("gemini-cli:mask_protect=0,mask_minimum=1", "mask"),
    ("gemini-cli:mask_protect=0", "mask_minimum"),
    ("gemini-cli:mask_minimum=1", "mask_protect"),
    ("gemini-cli:cut_to=300,mask=false", "results_budget"),
    ("opencode:prune=true", "count prune_minimum prune_protect"),
    ("opencode:model=claude-haiku-4-5", "model_context model_input model_output"),
    ("openoxide@provider-side", "clear_at_least clear_keep clear_trigger compact_trigger"),
    ("openoxide:phases=two", "compaction_buffer prune_minimum prune_protect"),
    ("openoxide:phases=two,keep_turns=0,prune_protect=300,prune_minimum=1", "prune_order"),
];

/// Settings that have no effect in these sessions, with the reason and the test that covers them.
const INERT: &[(&str, &str, &str)] = &[(
    "pi",
    "base_estimate",
    "recorded cases show it; sessions have their own system prompt and tools",
)];

fn sessions() -> Vec<Scenario> {
    let config = ProptestConfig {
        rng_seed: RngSeed::Fixed(4),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new(config);
    let mut out = vec![builtin::by_id("login-bug-tight").unwrap()];
    out.extend(
        (0..40).map(|_| random::plan(14).new_tree(&mut runner).unwrap().current().scenario()),
    );
    out.push(builtin::by_id("two-sessions").unwrap());
    // Every third session has a provider that fails occasionally.
    for (n, s) in out.iter_mut().enumerate().filter(|(n, _)| n % 3 == 2) {
        let on = if n % 2 == 0 { FaultOn::Sample } else { FaultOn::Summary };
        let status = Some(500);
        s.faults.push(ProviderFault { times: 2, status, ..ProviderFault::new(on, 1) });
    }
    out
}

const MODELS: [&str; 3] = ["claude-sonnet-4-6", "gpt-5.1", "gpt-4.1"];

/// Returns the requests of a run, without the strategy's name.
fn course(scenario: &Scenario, spec: &Spec, model: &Model) -> Vec<String> {
    if spec.unfit(model).is_some() {
        return vec![];
    }
    let options = Options { trace: true, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let replayed = runtime.block_on(replay(scenario, spec, model, &options));
    let label = format!("\"strategy\":{},", serde_json::to_string(&spec.label()).unwrap());
    replayed.trace.iter().map(|l| l.replacen(&label, "", 1)).collect()
}

/// Returns values to try: around the default, and the ends of the range.
fn values(s: &Setting) -> Vec<String> {
    let numbers = |n: u64| {
        [0, 1, n / 16, n / 4, n / 2, n * 2, n * 8, 300, 5_000].map(|n| n.to_string()).to_vec()
    };
    match (s.kind, &s.default) {
        (SettingKind::Choice(words), _) => words.iter().map(|w| w.to_string()).collect(),
        (SettingKind::Flag, _) => vec!["true".into(), "false".into()],
        (SettingKind::Percent, _) => ["5", "20", "50", "90", "100"].map(String::from).to_vec(),
        (SettingKind::Share, _) => ["0.05", "0.3", "0.6", "0.9", "1"].map(String::from).to_vec(),
        (SettingKind::Text, _) => vec!["claude-haiku-4-5".into(), "bash".into()],
        (SettingKind::Limit, _) => {
            ["1", "300", "4000", "60000", "200000"].map(String::from).to_vec()
        }
        (_, Value::Int(n)) => numbers(*n),
        _ => ["0", "1", "300", "4000", "60000", "200000"].map(String::from).to_vec(),
    }
}

fn strategy_of(spec: &str) -> &'static str {
    Spec::parse(spec).unwrap().descriptor.name
}

struct Shower {
    sessions: Vec<Scenario>,
    /// Indexes of sessions and models. The pairs that showed an effect last come first, because
    /// they are likely to show more.
    order: Vec<(usize, usize)>,
    plain: HashMap<(String, usize, usize), Vec<String>>,
}

impl Shower {
    fn new() -> Self {
        let sessions = sessions();
        let models = |at| (0..MODELS.len()).map(move |m| (at, m));
        let order = (0..sessions.len()).flat_map(models).collect();
        Shower { sessions, order, plain: HashMap::new() }
    }

    /// Returns whether any value changes a request of any session.
    fn changes_a_request(&mut self, d: &Descriptor, s: &Setting) -> bool {
        let needs = |(with, settings): &&(&str, &str)| {
            strategy_of(with) == d.name && settings.split(' ').any(|name| name == s.name)
        };
        let with = WITH.iter().find(needs).map_or(d.name, |(with, _)| with);
        let base = Spec::parse(with).unwrap();
        let joint = if with.contains(':') { "," } else { ":" };
        for place in 0..self.order.len() {
            let (at, m) = self.order[place];
            let model = model::find(MODELS[m]).unwrap();
            if base.unfit(model).is_some() {
                continue;
            }
            let key = (with.to_string(), at, m);
            if !self.plain.contains_key(&key) {
                let course = course(&self.sessions[at], &base, model);
                self.plain.insert(key.clone(), course);
            }
            for v in values(s) {
                let Ok(spec) = Spec::parse(&format!("{with}{joint}{}={v}", s.name)) else {
                    continue;
                };
                if spec.unfit(model).is_none()
                    && course(&self.sessions[at], &spec, model) != self.plain[&key]
                {
                    self.order[..=place].rotate_right(1);
                    return true;
                }
            }
        }
        false
    }
}

fn check(part: usize, of: usize) {
    let mut shower = Shower::new();
    let mut silent = BTreeSet::new();
    for d in built_in().iter().enumerate().filter(|(i, _)| i % of == part).map(|(_, d)| d) {
        for s in &d.settings {
            if !shower.changes_a_request(d, s) {
                silent.insert((d.name, s.name));
            }
        }
        let listed = INERT.iter().filter(|(n, _, _)| *n == d.name);
        for (name, setting, why) in listed {
            assert!(!why.is_empty());
            let is_inert = silent.remove(&(*name, *setting));
            assert!(is_inert, "{name}:{setting} is listed as inert but changes requests");
        }
    }
    assert!(silent.is_empty(), "these settings change no request: {silent:?}");
}

#[test]
#[ignore = "nightly: slow"]
fn every_setting_changes_some_request_1() {
    check(0, 2);
}

#[test]
#[ignore = "nightly: slow"]
fn every_setting_changes_some_request_2() {
    check(1, 2);
}

/// A version that rejects a setting must not use it either.
#[test]
fn settings_unread_by_version_change_no_request() {
    let scenario = &builtin::by_id("login-bug-tight").unwrap();
    let model = model::find("claude-sonnet-4-6").unwrap();
    let mut wrong = BTreeSet::new();
    for version in built_in()
        .iter()
        .flat_map(|d| d.versions.iter().map(move |v| format!("{}@{}", d.name, v.name)))
    {
        let plain = Spec::parse(&version).unwrap();
        let settings = &plain.descriptor.settings;
        let expected = course(scenario, &plain, model);
        for s in settings.iter().filter(|s| !plain.reads(s.name)) {
            for v in values(s) {
                // `with` does not check whether the version reads a setting.
                let Ok(spec) = plain.clone().with(s.name, &v) else { continue };
                if course(scenario, &spec, model) != expected {
                    wrong.insert(format!("{version}:{}", s.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these versions refuse settings that they obey: {wrong:?}");
}

#[test]
fn exception_lists_name_existing_settings() {
    let with = WITH.iter().map(|(with, settings)| (strategy_of(with), *settings));
    for (name, settings) in with.chain(INERT.iter().map(|(name, setting, _)| (*name, *setting))) {
        let d = built_in().iter().find(|d| d.name == name).expect(name);
        for setting in settings.split(' ') {
            assert!(d.settings.iter().any(|s| s.name == setting), "{name} has no {setting}");
        }
    }
}
