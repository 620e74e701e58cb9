//! Every setting changes a request of some session, or is listed with a reason.

use crate::random;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ctxbench_core::model::{self, Model};
use ctxbench_core::settings::{Setting, SettingKind, Value};
use ctxbench_replay::{Options, replay};
use ctxbench_scenarios::{FaultOn, ProviderFault, Scenario, builtin};
use ctxbench_strategies::descriptor::Descriptor;
use ctxbench_strategies::{Spec, built_in};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

/// A resumed session continues from a summary.
const RESUMED: &str = "claude-code:resume=summary,resume_idle_ms=0,resume_min_tokens=300";

/// Settings that need a version or another setting, and the strategy for the test.
const WITH: &[(&str, &str, &str)] = &[
    ("aider", "auto_accept", "aider:architect=true"),
    ("aider", "editor_model", "aider:architect=true"),
    ("aider", "keepalive_delay_ms", "aider:cache_prompts=true,keepalive_pings=3"),
    ("aider", "keepalive_pings", "aider:cache_prompts=true"),
    ("anthropic-sdk", "compact_at", "anthropic-sdk@2.12"),
    ("anthropic-sdk", "edits", "anthropic-sdk@2.12"),
    ("anthropic-sdk", "threads", "anthropic-sdk@2.12"),
    ("claude-code", "blocking_buffer", "claude-code:auto=false"),
    ("claude-code", "resume_idle_ms", "claude-code:resume=summary,resume_min_tokens=300"),
    ("claude-code", "resume_keep_messages", RESUMED),
    ("claude-code", "resume_min_tokens", "claude-code:resume=summary,resume_idle_ms=0"),
    ("claude-code", "resume", "claude-code:resume_idle_ms=0,resume_min_tokens=300"),
    ("claude-code", "idle_compaction", "claude-code:cache_ttl=1h,idle_min_tokens=300"),
    ("claude-code", "idle_min_tokens", "claude-code:cache_ttl=1h"),
    ("claude-code", "idle_share", "claude-code:cache_ttl=1h,idle_min_tokens=300"),
    ("claude-code", "memory_growth_tokens", "claude-code:session_memory=true"),
    ("claude-code", "memory_keep_most_tokens", "claude-code:session_memory=true"),
    ("claude-code", "memory_keep_texts", "claude-code:session_memory=true"),
    ("claude-code", "memory_keep_tokens", "claude-code:session_memory=true"),
    ("claude-code", "memory_start_tokens", "claude-code:session_memory=true"),
    ("claude-code", "micro_active", "claude-code:microcompact=cache-edits"),
    ("claude-code", "micro_keep", "claude-code:microcompact=count"),
    ("claude-code", "micro_minimum", "claude-code:microcompact=count"),
    ("claude-code", "warning_distance", "claude-code:microcompact=count"),
    ("claude-code", "micro_gap_keep", "claude-code:microcompact=time"),
    ("claude-code", "micro_gap_ms", "claude-code:microcompact=time"),
    ("claude-code-api", "instructions", "claude-code-api:compact=on_demand,compact_trigger=60k"),
    ("claude-code-api", "keep_last", "claude-code-api:pause=true,compact_trigger=60k"),
    ("claude-code-api", "thinking_keep", "claude-code-api:thinking=turns"),
    ("codex", "remote_user_tokens", "codex:remote=true"),
    ("gemini-cli", "cut_to", "gemini-cli:results_budget=0,mask=false"),
    ("gemini-cli", "mask", "gemini-cli:mask_protect=0,mask_minimum=1"),
    ("gemini-cli", "mask_minimum", "gemini-cli:mask_protect=0"),
    ("gemini-cli", "mask_protect", "gemini-cli:mask_minimum=1"),
    ("gemini-cli", "results_budget", "gemini-cli:cut_to=300,mask=false"),
    ("opencode", "count", "opencode:prune=true"),
    ("opencode", "model_context", "opencode:model=claude-haiku-4-5"),
    ("opencode", "model_input", "opencode:model=claude-haiku-4-5"),
    ("opencode", "model_output", "opencode:model=claude-haiku-4-5"),
    ("opencode", "prune_minimum", "opencode:prune=true"),
    ("opencode", "prune_protect", "opencode:prune=true"),
    ("openoxide", "clear_at_least", "openoxide@provider-side"),
    ("openoxide", "clear_keep", "openoxide@provider-side"),
    ("openoxide", "clear_trigger", "openoxide@provider-side"),
    ("openoxide", "compact_trigger", "openoxide@provider-side"),
    ("openoxide", "compaction_buffer", "openoxide:phases=two"),
    ("openoxide", "prune_minimum", "openoxide:phases=two"),
    ("openoxide", "prune_protect", "openoxide:phases=two"),
    (
        "openoxide",
        "prune_order",
        "openoxide:phases=two,keep_turns=0,prune_protect=300,prune_minimum=1",
    ),
];

/// Settings that have no effect in these sessions, with the reason and the test that covers them.
const INERT: &[(&str, &str, &str)] = &[(
    "pi",
    "base_estimate",
    "recorded cases show it; sessions have their own system prompt and tools",
)];

/// Returns random sessions and two built-in ones.
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
        let with = WITH
            .iter()
            .find(|(n, k, _)| *n == d.name && *k == s.name)
            .map_or(d.name, |(_, _, w)| w);
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
    let mut silent: BTreeMap<(&str, &str), ()> = BTreeMap::new();
    for d in built_in().iter().enumerate().filter(|(i, _)| i % of == part).map(|(_, d)| d) {
        for s in &d.settings {
            if !shower.changes_a_request(d, s) {
                silent.insert((d.name, s.name), ());
            }
        }
        let listed = INERT.iter().filter(|(n, _, _)| *n == d.name);
        for (name, setting, why) in listed {
            assert!(!why.is_empty());
            assert!(
                silent.remove(&(name, setting)).is_some(),
                "{name}:{setting} is in the list of inert settings but changes requests"
            );
        }
    }
    assert!(silent.is_empty(), "these settings change no request: {:?}", silent.keys());
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
    for (name, setting, _) in WITH.iter().chain(INERT) {
        let d = built_in()
            .iter()
            .find(|d| d.name == *name)
            .unwrap_or_else(|| panic!("no strategy {name}"));
        assert!(d.settings.iter().any(|s| s.name == *setting), "{name} has no setting {setting}");
    }
    for (_, _, with) in WITH {
        assert!(Spec::parse(with).is_ok(), "{with}");
    }
}
