//! Builds the record of a run from its session and its log.

use ctxbench_core::host::Event as Noted;
use ctxbench_core::model::Model;
use ctxbench_core::strategy::Standing;
use ctxbench_reports::record::{
    FactRecord, IntegrityFailure, Recall, RequestRecord, Rule, RunRecord, ScenarioInfo, Status,
    StrategyInfo, Summary,
};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use super::conversation::Conversation;
use super::{compactions, delegation, resume};
use crate::keys::SessionContent;
use crate::options::Replayed;
use crate::rewind;
use crate::scene::{FinishedRun, Scene};

/// Builds the record of a run from what was measured of the main conversation and of the subagents
/// that ran. What a monitor saw is not part of it.
pub(super) fn measured(
    run: &FinishedRun<'_>,
    mut main: Conversation,
    mut parts: Vec<Option<Conversation>>,
) -> Replayed {
    let Scene { scenario, session, spec, model, options, desk, .. } = run.scene;
    compactions::complete(&mut main, model, 0);
    let mut offset = main.requests.len() as u64;
    for part in parts.iter_mut().flatten() {
        compactions::complete(part, model, offset);
        offset += part.requests.len() as u64;
    }
    let facts = delegation::facts(run, &main, &parts);
    let delegation = delegation::records(run, &parts, &facts);
    let rewinds = rewind::records(session, spec, run.files, &main.rewound);
    let (resume, loadings) = resume::records(session, spec, &main);
    let integrity = integrity(run, &main, &parts);
    let summary =
        Summary { integrity_failures: integrity.len() as u64, ..summary(&main, &parts, &facts) };
    let note = note(run, &main, &parts);
    let program = main.program();
    let (status, error) = outcome(run, &main, &parts);
    let Conversation { mut requests, mut trace, compactions, lives, background, triggers, .. } =
        main;
    for Conversation { trace: lines, requests: own, offset, .. } in parts.into_iter().flatten() {
        trace.extend(lines);
        requests.extend(own.into_iter().map(|r| RequestRecord { seq: r.seq + offset, ..r }));
    }
    let record = RunRecord {
        scenario: scenario_info(scenario, &run.files.remarks),
        strategy: StrategyInfo {
            settings: spec
                .applied(scenario.scale, model.window)
                .all()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect(),
            ..strategy_info(spec, program)
        },
        model: model.name.to_string(),
        summariser: desk.was_asked().then(|| options.summariser.name().into_owned()),
        window: model.window,
        status,
        error,
        note,
        summary,
        requests,
        compactions,
        background,
        facts,
        lives,
        triggers,
        integrity,
        rewinds,
        resume,
        delegation,
        ..RunRecord::default()
    };
    Replayed { record, trace, loadings, ..Replayed::default() }
}

/// Describes the session of a run. `remarks` = notes of the run.
pub fn scenario_info(s: &Scenario, remarks: &[String]) -> ScenarioInfo {
    let source = s.session.header.source.as_ref();
    ScenarioInfo {
        id: s.id.clone(),
        content: SessionContent::new(s).short(),
        title: s.title.clone(),
        scale: s.scale,
        why: s.why.clone(),
        tags: s.tags.clone(),
        recorded: source.is_some(),
        product: source.filter(|_| s.session.has_counters()).map(|s| s.format.clone()),
        mechanism: !s.is_evidence(),
        warnings: [&s.warnings[..], remarks].concat(),
        counted_as: s.counted_as.clone(),
        continues: source.is_some_and(|source| source.continues),
    }
}

/// Describes a strategy without its settings. `program` = name and version that a program reported.
fn strategy_info(spec: &Spec, program: Option<(String, String)>) -> StrategyInfo {
    let command = spec.descriptor.product.command();
    let unknown = command.as_ref().map(|_| "exec".to_string());
    // A program that filters results of a product does not replace the product's version.
    let own = spec.version.program();
    let version = program.as_ref().filter(|_| own == "exec").map(|(_, version)| version.clone());
    StrategyInfo {
        program: program.map(|(name, version)| format!("{name} {version}")).or(unknown),
        command,
        version: version.unwrap_or_else(|| own.to_string()),
        label: spec.label(),
        given: spec.settings.explicit().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        name: spec.descriptor.name.to_string(),
        standing: spec.descriptor.standing,
        ..Default::default()
    }
}

/// Returns the record of a pair that could not run.
pub fn not_run(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    status: Status,
    error: String,
) -> RunRecord {
    RunRecord {
        scenario: ScenarioInfo {
            id: scenario.id.clone(),
            title: scenario.title.clone(),
            scale: scenario.scale,
            tags: scenario.tags.clone(),
            ..ScenarioInfo::default()
        },
        strategy: strategy_info(spec, None),
        model: model.name.to_string(),
        status,
        error: Some(error),
        ..RunRecord::default()
    }
}

/// Returns the outcome of a run. A run with an unfinished subagent is not completed, and a missing
/// summary or a spend limit ends it without a fault of the strategy.
fn outcome(
    run: &FinishedRun<'_>,
    main: &Conversation,
    parts: &[Option<Conversation>],
) -> (Status, Option<String>) {
    let (mut status, mut error) = main.status();
    if let Some(why) = run.scene.desk.trouble() {
        (status, error) = (Status::Error, Some(format!("{}: {why}", run.scene.spec.label())));
    } else if status == Status::Completed {
        let ended = run.subagents.all.iter().zip(parts).find_map(|(agent, part)| {
            let (status, why) = part.as_ref()?.status();
            let why = format!("subagent {}: {}", agent.id, why.unwrap_or_default());
            (status != Status::Completed).then_some((status, Some(why)))
        });
        (status, error) = ended.unwrap_or((status, error));
    }
    match &run.refused {
        Some(why) if status != Status::Completed => (Status::Failed, Some(why.clone())),
        _ => (status, error),
    }
}

/// Returns the broken rules of a conversation. A refused prompt is none if the strategy then makes
/// room and finishes: the refusals are counted.
fn lasting(c: &Conversation) -> impl Iterator<Item = &IntegrityFailure> {
    let is_completed = c.status().0 == Status::Completed;
    c.integrity.iter().filter(move |f| !is_completed || f.rule != Rule::OverTheWindow)
}

fn integrity(
    run: &FinishedRun<'_>,
    main: &Conversation,
    parts: &[Option<Conversation>],
) -> Vec<IntegrityFailure> {
    let mut out: Vec<IntegrityFailure> = lasting(main).cloned().collect();
    for (agent, part) in run.subagents.all.iter().zip(parts) {
        let Some(part) = part else { continue };
        out.extend(lasting(part).map(|i| IntegrityFailure {
            request: i.request + part.offset,
            rule: i.rule,
            detail: format!("subagent {}: {}", agent.id, i.detail),
        }));
    }
    out.sort_by_key(|f| (f.request, f.rule));
    out
}

/// Note of a row on a product without a command for manual compactions.
const NO_MANUAL: &str = "manual compaction n/a";

/// Returns the note of the row in the table.
fn note(
    run: &FinishedRun<'_>,
    main: &Conversation,
    parts: &[Option<Conversation>],
) -> Option<String> {
    if run.scene.spec.descriptor.standing != Standing::Contender {
        return None;
    }
    let idle = main.compactions.is_empty() && main.status().0 == Status::Completed;
    let idle = idle.then_some(match main.summary_calls() {
        0 => "never triggered",
        _ => "a summary was written, nothing was replaced",
    });
    let refused = main.noted.iter().any(|e| matches!(e.event, Noted::NoManualCompaction));
    let all: Vec<&str> = idle.into_iter().chain(refused.then_some(NO_MANUAL)).collect();
    if all.is_empty() {
        return None;
    }
    let in_subagents = parts.iter().flatten().any(|p| !p.compactions.is_empty());
    if main.compactions.is_empty() && in_subagents {
        return Some("compacted in subagents only".into());
    }
    Some(all.join("; "))
}

/// Computes the figures of the row. Costs include all windows. Figures of a window (peak, prefix,
/// compactions, steps, waiting) are those of the main conversation.
fn summary(main: &Conversation, parts: &[Option<Conversation>], facts: &[FactRecord]) -> Summary {
    let (c, compactions) = (main, &main.compactions);
    let windows: Vec<&Conversation> = std::iter::once(c).chain(parts.iter().flatten()).collect();
    let each = |of: fn(&Conversation) -> u64| windows.iter().map(|c| of(c)).sum::<u64>();
    let total = |of: fn(&RequestRecord) -> u64| {
        windows.iter().flat_map(|c| &c.requests).map(of).sum::<u64>()
    };
    let usd = |of: &dyn Fn(&Conversation) -> f64| windows.iter().map(|c| of(c)).sum::<f64>();
    let (input, output) = (total(|r| r.input_tokens), total(|r| r.output_tokens));
    let cache_read = total(|r| r.cache_read);
    let at_risk = Recall::over(facts.iter().filter(|f| f.is_at_risk()));
    let errors: Vec<f64> = c.triggers.iter().map(|t| t.believed as f64 - t.billed as f64).collect();
    let (common, earlier) = c.shared_tokens;
    let ratio = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
    Summary {
        steps_completed: c.steps,
        steps_total: c.all_steps,
        requests: each(|c| c.requests.len() as u64),
        compactions: compactions.len() as u64,
        summary_calls: each(Conversation::summary_calls),
        input_tokens: input,
        cache_read_tokens: cache_read,
        cache_write_tokens: total(|r| r.cache_write),
        output_tokens: output,
        peak_context_tokens: c.peak(),
        cost_usd: usd(&Conversation::cost_usd),
        prefix_stability: ratio(common, earlier),
        invalidated_tokens: total(|r| r.invalidated_tokens),
        cache_read_ratio: ratio(cache_read, input),
        blocked_ms: c.blocked_ms,
        total_ms: c.took_ms,
        recall_pct: Recall::over(facts.iter().filter(|f| f.is_need())).pct,
        recall_at_risk_pct: at_risk.pct,
        at_risk: Some(at_risk.events),
        reread_tokens: each(|c| c.reread_tokens),
        extra_requests: total(|r| u64::from(r.extra)),
        provider_overflows: each(Conversation::overflows),
        user_interventions: each(Conversation::interventions),
        trigger_error_tokens: (!errors.is_empty())
            .then(|| errors.iter().sum::<f64>() / errors.len() as f64),
        // Set later, from the whole row or from other rows.
        saved_pct: None,
        cost_saved_pct: None,
        cost_estimate_usd: None,
        cost_with_cache_usd: None,
        integrity_failures: 0,
    }
}
