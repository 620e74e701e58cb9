//! Usage and cost in the shape of the providers' admin reports, so that what reads those reads a
//! run.
//!
//! Shapes: <https://platform.claude.com/docs/en/api/admin-api/usage-cost/get-messages-usage-report>,
//! <https://platform.claude.com/docs/en/api/admin-api/usage-cost/get-cost-report>,
//! <https://developers.openai.com/api/reference/resources/admin/subresources/organization/subresources/usage>.
//! A strategy on a session stands where a workspace (Anthropic) or a project (OpenAI) does, a
//! subagent where an API key does. Days are those of the virtual clock, which begins in 1970.
//! Models of other providers have no such report.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use ctxbench_core::calendar;
use ctxbench_core::model::{self, Cost, Model, Provider};
use ctxbench_core::request::Usage;
use serde_json::{Value, json};

use crate::formats::{Format, Make, ReportError};
use crate::plots::Looks;
use crate::record::{RequestRecord, RequestStatus, RunRecord};
use crate::stored::{Files, Stored};
use crate::{fmt, view};

/// The format for `report --format admin`.
pub(crate) const FORMAT: Format = Format { name: "admin", prints: false, make: Make::Rows(write) };

/// Prompts above this are of the larger window in Anthropic's reports, tokens.
const LARGE_PROMPT: u64 = 200_000;

const DAY_MS: u64 = 86_400_000;

fn write(stored: &Stored<'_>, _: &Looks, files: &mut dyn Files) -> Result<(), ReportError> {
    let several = view::summarisers(&stored.figures).len() > 1;
    let (mut by_anthropic, mut by_openai) = (Days::new(), Days::new());
    stored.sessions(&mut |session| {
        let runs = view::told_apart_in(session, several);
        add(&mut by_anthropic, &runs, Provider::Anthropic);
        add(&mut by_openai, &runs, Provider::Openai);
        Ok(())
    })?;
    let mut file = |name: &str, page: Value| -> Result<(), ReportError> {
        let mut out = files.create(&format!("admin/{name}.json"))?;
        serde_json::to_writer_pretty(&mut out, &page).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    };
    file("anthropic-usage", anthropic(&by_anthropic, anthropic_usage))?;
    file("anthropic-cost", anthropic(&by_anthropic, anthropic_cost))?;
    file("openai-usage", openai(&by_openai, openai_usage))?;
    file("openai-costs", openai(&by_openai, openai_costs))
}

/// What a line of a report is about, in the order of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Strategy on a session.
    place: String,
    model: Arc<str>,
    agent: Option<Arc<str>>,
    large: bool,
}

/// What was used and what it cost.
#[derive(Clone, Debug, Default)]
struct Spent {
    requests: u64,
    usage: Usage,
    cost: Cost,
}

type Day = BTreeMap<Key, Spent>;

type Days = BTreeMap<u64, Day>;

/// Adds the answered requests to one provider, by day.
fn add(days: &mut Days, runs: &[RunRecord], provider: Provider) {
    for run in runs {
        for q in run.requests.iter().filter(|q| q.status == RequestStatus::Ok) {
            let Some(model) = model::priced_as(&q.model).filter(|m| m.provider == provider) else {
                continue;
            };
            let key = Key {
                place: format!("{}/{}", run.scenario.id, run.strategy.label),
                model: q.model.clone(),
                agent: q.agent.clone(),
                large: q.input_tokens > LARGE_PROMPT,
            };
            let spent = days.entry(q.at_ms / DAY_MS).or_default().entry(key).or_default();
            let usage = usage(q);
            spent.requests += 1;
            spent.usage.add(&usage);
            spent.cost.add(&cost(model, &usage, q.cost_usd));
        }
    }
}

fn usage(q: &RequestRecord) -> Usage {
    Usage {
        input: q.input_tokens.saturating_sub(q.cache_read + q.cache_write),
        cache_read: q.cache_read,
        cache_write: q.cache_write.saturating_sub(q.cache_write_1h),
        cache_write_1h: q.cache_write_1h,
        output: q.output_tokens,
        ..Usage::default()
    }
}

/// The dollars of a request by kind of token. A request inside which the provider compacted is two
/// prompts, each priced by its own size, so the sum is that of the record.
fn cost(model: &Model, usage: &Usage, usd: f64) -> Cost {
    let list = model::cost(model, usage);
    let factor = if list.total() > 0.0 { usd / list.total() } else { 1.0 };
    Cost {
        input: list.input * factor,
        cache_write_5m: list.cache_write_5m * factor,
        cache_write_1h: list.cache_write_1h * factor,
        cache_read: list.cache_read * factor,
        output: list.output * factor,
    }
}

fn anthropic(days: &Days, lines: fn(&Key, &Spent) -> Vec<Value>) -> Value {
    let data: Vec<Value> = days
        .iter()
        .map(|(day, spent)| {
            json!({
                "starting_at": calendar::midnight(*day),
                "ending_at": calendar::midnight(day + 1),
                "results": spent.iter().flat_map(|(k, s)| lines(k, s)).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({"data": data, "has_more": false, "next_page": null})
}

fn window(key: &Key) -> &'static str {
    if key.large { "200k-1M" } else { "0-200k" }
}

fn anthropic_usage(key: &Key, spent: &Spent) -> Vec<Value> {
    let u = &spent.usage;
    vec![json!({
        "uncached_input_tokens": u.input,
        "cache_creation": {
            "ephemeral_1h_input_tokens": u.cache_write_1h,
            "ephemeral_5m_input_tokens": u.cache_write,
        },
        "cache_read_input_tokens": u.cache_read,
        "output_tokens": u.output,
        "server_tool_use": {"web_search_requests": 0},
        "api_key_id": key.agent,
        "workspace_id": key.place,
        "model": key.model,
        "service_tier": "standard",
        "context_window": window(key),
    })]
}

/// Amounts are decimal texts in cents.
fn anthropic_cost(key: &Key, spent: &Spent) -> Vec<Value> {
    let c = &spent.cost;
    let kinds = [
        ("uncached_input_tokens", c.input),
        ("cache_creation.ephemeral_5m_input_tokens", c.cache_write_5m),
        ("cache_creation.ephemeral_1h_input_tokens", c.cache_write_1h),
        ("cache_read_input_tokens", c.cache_read),
        ("output_tokens", c.output),
    ];
    let line = |(kind, usd): (&str, f64)| {
        json!({
            "currency": "USD",
            "amount": fmt::exact(usd * 100.0),
            "workspace_id": key.place,
            "description": format!("{} usage: {kind}", key.model),
            "cost_type": "tokens",
            "context_window": window(key),
            "model": key.model,
            "service_tier": "standard",
            "token_type": kind,
        })
    };
    kinds.into_iter().filter(|(_, usd)| *usd > 0.0).map(line).collect()
}

fn openai(days: &Days, lines: fn(&Key, &Spent) -> Vec<Value>) -> Value {
    let data: Vec<Value> = days
        .iter()
        .map(|(day, spent)| {
            json!({
                "object": "bucket",
                "start_time": day * DAY_MS / 1_000,
                "end_time": (day + 1) * DAY_MS / 1_000,
                "results": spent.iter().flat_map(|(k, s)| lines(k, s)).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({"object": "page", "data": data, "has_more": false, "next_page": null})
}

fn openai_usage(key: &Key, spent: &Spent) -> Vec<Value> {
    vec![json!({
        "object": "organization.usage.completions.result",
        "input_tokens": spent.usage.prompt(),
        "output_tokens": spent.usage.output,
        "input_cached_tokens": spent.usage.cache_read,
        "input_audio_tokens": 0,
        "output_audio_tokens": 0,
        "num_model_requests": spent.requests,
        "project_id": key.place,
        "user_id": null,
        "api_key_id": key.agent,
        "model": key.model,
        "batch": false,
    })]
}

fn openai_costs(key: &Key, spent: &Spent) -> Vec<Value> {
    let c = &spent.cost;
    let kinds = [
        ("input", c.input),
        ("cache write", c.cache_write_5m + c.cache_write_1h),
        ("cached input", c.cache_read),
        ("output", c.output),
    ];
    let line = |(kind, usd): (&str, f64)| {
        json!({
            "object": "organization.costs.result",
            "amount": {"value": usd, "currency": "usd"},
            "line_item": format!("{}, {kind}", key.model),
            "project_id": key.place,
        })
    };
    kinds.into_iter().filter(|(_, usd)| *usd > 0.0).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Results;
    use crate::sample;

    fn page(results: &Results, name: &str) -> Value {
        let all = FORMAT.render(results, &Looks::default()).unwrap();
        let found = all.iter().find(|a| a.file == format!("admin/{name}.json")).unwrap();
        serde_json::from_str(&found.text).unwrap()
    }

    /// Two days on Sonnet 4.6 (3 / 3.75 / 6 / 0.30 / 15 USD per million): on the first a prompt of
    /// 100,000 with 80,000 read and 15,000 written, 5,000 of them for an hour; on the second one of
    /// 200,001 by a subagent.
    fn results(model: &str) -> Results {
        let mut run = sample::run("s", "codex", 1);
        run.model = model.into();
        let first = run.requests[0].clone();
        let mut one = RequestRecord {
            model: model.into(),
            input_tokens: 100_000,
            cache_read: 80_000,
            cache_write: 15_000,
            cache_write_1h: 5_000,
            output_tokens: 1_000,
            ..first.clone()
        };
        one.cost_usd = model::cost(model::find(model).unwrap(), &usage(&one)).total();
        let mut two = RequestRecord {
            model: model.into(),
            agent: Some("x".into()),
            input_tokens: 200_001,
            cache_read: 0,
            cache_write: 0,
            output_tokens: 0,
            at_ms: DAY_MS,
            ..first
        };
        two.cost_usd = model::cost(model::find(model).unwrap(), &usage(&two)).total();
        run.requests = vec![one, two];
        Results { runs: vec![run], ..Results::default() }
    }

    #[test]
    fn anthropic_by_hand() {
        let results = results("claude-sonnet-4-6");
        let usage = page(&results, "anthropic-usage");
        assert_eq!(usage["data"].as_array().unwrap().len(), 2);
        let day = &usage["data"][0];
        assert_eq!(
            (day["starting_at"].as_str(), day["ending_at"].as_str()),
            (Some("1970-01-01T00:00:00Z"), Some("1970-01-02T00:00:00Z"))
        );
        assert_eq!(
            day["results"][0],
            json!({
                "uncached_input_tokens": 5_000,
                "cache_creation": {
                    "ephemeral_1h_input_tokens": 5_000, "ephemeral_5m_input_tokens": 10_000,
                },
                "cache_read_input_tokens": 80_000,
                "output_tokens": 1_000,
                "server_tool_use": {"web_search_requests": 0},
                "api_key_id": null,
                "workspace_id": "s/codex",
                "model": "claude-sonnet-4-6",
                "service_tier": "standard",
                "context_window": "0-200k",
            })
        );
        let second = &usage["data"][1]["results"][0];
        assert_eq!(
            (second["api_key_id"].as_str(), second["context_window"].as_str()),
            (Some("x"), Some("200k-1M"))
        );
        let cost = page(&results, "anthropic-cost");
        let amounts: Vec<(&str, &str)> = cost["data"][0]["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| (l["token_type"].as_str().unwrap(), l["amount"].as_str().unwrap()))
            .collect();
        // In cents: 5,000 × 3, 10,000 × 3.75, 5,000 × 6, 80,000 × 0.30, 1,000 × 15 USD per million.
        assert_eq!(
            amounts,
            [
                ("uncached_input_tokens", "1.5"),
                ("cache_creation.ephemeral_5m_input_tokens", "3.75"),
                ("cache_creation.ephemeral_1h_input_tokens", "3"),
                ("cache_read_input_tokens", "2.4"),
                ("output_tokens", "1.5")
            ]
        );
        let none = page(&results, "openai-usage");
        assert_eq!(none["data"], json!([]));
    }

    #[test]
    fn openai_by_hand() {
        // gpt-5.4: 2.5 / 0.25 / 15 USD per million; writes cost as input.
        let results = results("gpt-5.4");
        let usage = page(&results, "openai-usage");
        assert_eq!(
            (usage["object"].as_str(), usage["data"][0]["end_time"].as_u64()),
            (Some("page"), Some(86_400))
        );
        assert_eq!(
            usage["data"][0]["results"][0],
            json!({
                "object": "organization.usage.completions.result",
                "input_tokens": 100_000,
                "output_tokens": 1_000,
                "input_cached_tokens": 80_000,
                "input_audio_tokens": 0,
                "output_audio_tokens": 0,
                "num_model_requests": 1,
                "project_id": "s/codex",
                "user_id": null,
                "api_key_id": null,
                "model": "gpt-5.4",
                "batch": false,
            })
        );
        let costs = page(&results, "openai-costs");
        let values: Vec<(String, f64)> = costs["data"][0]["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| {
                (l["line_item"].as_str().unwrap().into(), l["amount"]["value"].as_f64().unwrap())
            })
            .collect();
        let by_hand =
            [("input", 0.0125), ("cache write", 0.0375), ("cached input", 0.02), ("output", 0.015)];
        assert_eq!(values.len(), by_hand.len());
        for ((item, usd), (kind, expected)) in values.iter().zip(by_hand) {
            assert_eq!(*item, format!("gpt-5.4, {kind}"));
            assert!((usd - expected).abs() < 1e-9, "{item}: {usd}");
        }
    }

    #[test]
    fn a_model_with_the_date_of_its_release_is_in_it() {
        let listed = results("claude-sonnet-4-6");
        let mut dated = listed.clone();
        let requests = dated.runs.iter_mut().flat_map(|r| &mut r.requests);
        requests.for_each(|q| q.model = "claude-sonnet-4-6-20260101".into());
        let lines = |r: &Results| page(r, "anthropic-usage")["data"][0]["results"].clone();
        let of_listed = lines(&listed).as_array().unwrap().len();
        let of_dated = lines(&dated);
        assert_eq!(of_dated.as_array().unwrap().len(), of_listed);
        assert_eq!(of_dated[0]["model"], "claude-sonnet-4-6-20260101");
    }

    #[test]
    fn lines_add_up_to_what_the_run_cost() {
        let mut results = results("claude-sonnet-4-6");
        // The provider compacted inside: priced as two prompts, the record says what both cost.
        results.runs[0].requests[0].cost_usd = 0.2;
        let cost = page(&results, "anthropic-cost");
        let cents: f64 = cost["data"][0]["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| l["amount"].as_str().unwrap().parse::<f64>().unwrap())
            .sum();
        assert!((cents - 20.0).abs() < 1e-4, "{cents}");
    }
}
