//! Tests the page as bytes; `.ci/page` tests it in a browser.

use std::io::Read;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::Value;

use super::*;
use crate::record::{FactLife, FactRecord, Results, RunRecord};
use crate::testing;

fn render_page(results: &Results) -> String {
    let matrix = [["a", "b <x>"], ["`c`", "<u>d | e"]].map(|row| row.map(String::from).into());
    page(&StoredResults::new(results, &results.runs).unwrap(), &Hues::default(), &matrix).unwrap()
}

/// Content of the script element with that id.
fn embedded<'a>(page: &'a str, id: &str) -> Option<&'a str> {
    let begin = page.find(&format!("<script id=\"{id}\""))?;
    let begin = begin + page[begin..].find('>')? + 1;
    Some(&page[begin..begin + page[begin..].find("</script>")?])
}

fn data(page: &str) -> Value {
    serde_json::from_str(embedded(page, "data").unwrap()).unwrap()
}

fn strategy(data: &Value, label: &str) -> Option<usize> {
    data["strategies"].as_array().unwrap().iter().position(|s| s["label"] == label)
}

fn chunk(page: &str, i: usize) -> Option<Value> {
    let packed = BASE64_STANDARD.decode(embedded(page, &format!("d{i}"))?.trim()).unwrap();
    let mut json = String::new();
    ZlibDecoder::new(&packed[..]).read_to_string(&mut json).unwrap();
    Some(serde_json::from_str(&json).unwrap())
}

/// Texts with markup that tries to escape, in every field written by a person or a model.
fn hostile() -> Results {
    let bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\u{0}\"'&";
    let mut results = testing::results();
    results.generator = "<b>&".into();
    results.assumptions.insert("<i>".into(), bad.into());
    for r in &mut results.runs {
        r.scenario.title = bad.into();
        r.scenario.why = bad.into();
        r.scenario.tags = vec![bad.into()];
        r.scenario.warnings = vec![bad.into()];
        r.note = Some(bad.into());
        r.strategy.settings.insert(bad.into(), bad.into());
        for c in &mut r.compactions {
            c.mechanism = bad.into();
            c.came[0].texts[0].text = format!("{bad}{}", "x".repeat(10_000));
        }
    }
    results
}

#[test]
fn nothing_in_the_results_becomes_markup() {
    let page = render_page(&hostile());
    assert!(page.contains("&lt;u&gt;d | e"));
    for bad in ["<script>alert", "<img", "<b>&", "<i>", "<u>", "<x>", "\u{202e}", "\u{0}"] {
        assert!(!page.contains(bad), "{bad:?}");
    }
    // The scripts of the page itself: data, one session, the script.
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (3, 3));
    assert!(data(&page)["blocks"][0]["tags"][0].as_str().unwrap().contains("</script>"));
}

#[test]
fn nothing_is_fetched_and_nothing_else_runs() {
    let page = render_page(&testing::results());
    for part in ["src=", "url(", "@import", "style=\"", "onclick=\"", "https://"] {
        assert!(!page.contains(part), "{part}");
    }
    // The only address is the SVG name space, which is not a link.
    assert_eq!(page.matches("http://").count(), 1);
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    let between = |begin: &str, end: &str| {
        let at = page.find(begin).unwrap() + begin.len();
        &page[at..at + page[at..].find(end).unwrap()]
    };
    let script = hash(between("<script type=\"module\">", "</script>"));
    let style = hash(between("<style>", "</style>"));
    let policy = between("Content-Security-Policy\" content=\"", "\"").replace("&#39;", "'");
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; \
             img-src data:; base-uri 'none'; form-action 'none'"
        )
    );
}

#[test]
fn what_is_broken_stands_on_the_first_screen() {
    let page = render_page(&testing::results());
    let broken = page.find("sent a tool result without its call").unwrap();
    assert!(broken < page.find("id=\"sessions\"").unwrap());
    assert!(page.contains("<h1>10 strategies on login-bug, claude-sonnet-4-6</h1>"));
    assert!(page.contains("ctxbench 0.1.0 · claude-sonnet-4-6, 200k window · 10 strategies"));
}

#[test]
fn every_metric_comes_with_its_words_and_every_run_with_its_figures() {
    let results = testing::results();
    let data = data(&render_page(&results));
    let metrics = data["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), crate::metrics::numbers().count());
    assert!(metrics.iter().all(|m| !m["help"].as_str().unwrap().is_empty()));
    let at = |column: &str| metrics.iter().position(|m| m["column"] == column).unwrap();
    let rows = data["blocks"][0]["rows"].as_array().unwrap();
    let codex = rows.iter().find(|r| r["s"] == strategy(&data, "codex").unwrap()).unwrap();
    let run = results.runs.iter().find(|r| r.strategy.label == "codex").unwrap();
    let v = &codex["v"];
    assert_eq!(v[at("compactions")], run.compactions.len());
    assert!((v[at("cost_usd")].as_f64().unwrap() - run.summary.cost_usd).abs() < 1e-6);
    assert!(v[at("cost_estimate_usd")].is_null());
    // The row with an overflow has its outcome as text, the row with a broken rule its number of
    // failures.
    let none = rows.iter().find(|r| r.get("end").is_some()).unwrap();
    assert!(none["end"].as_str().unwrap().starts_with("failed at reply"));
    assert!(rows.iter().any(|r| r["broken"] == 1));
}

#[test]
fn a_session_holds_its_compactions_in_their_words() {
    let results = testing::forgetful();
    let page = render_page(&results);
    let (data, chunk) = (data(&page), chunk(&page, 0).unwrap());
    assert_eq!(chunk["left"], "whole");
    let runs = chunk["runs"].as_array().unwrap();
    let codex = runs.iter().find(|r| r["s"] == strategy(&data, "codex").unwrap()).unwrap();
    let record = results.runs.iter().find(|r| r.strategy.label == "codex").unwrap();
    let text = |i: &Value| chunk["texts"][i.as_u64().unwrap() as usize].as_str().unwrap();
    let first = &codex["compactions"][0];
    let (step, c) = (first["step"].as_u64().unwrap(), &record.compactions[0]);
    assert_eq!(step, record.requests[c.before_request as usize].step);
    assert_eq!(
        (&first["before_tokens"], &first["after_tokens"]),
        (&c.before_tokens.into(), &c.after_tokens.into())
    );
    let came = &first["came"][0]["texts"][0]["text"];
    let came: Value = came.as_str().unwrap().parse().unwrap();
    assert_eq!(text(&came), format!("Until step {step}: the login was mended."));
    let moved = &codex["moves"][0];
    assert_eq!(
        (text(&moved["before"]), text(&moved["after"])),
        ("the token lives 900 s", "tokens expire")
    );
    let need = &codex["needs"][0];
    assert_eq!((need["place"].as_str(), need["counts"].as_bool()), (Some("nowhere"), Some(true)));
    // The stored differences add up to the figures of the requests.
    let sum = |name: &str| {
        codex["q"][name].as_array().unwrap().iter().filter_map(Value::as_i64).sum::<i64>()
    };
    let last = record.requests.last().unwrap();
    assert_eq!((sum("step"), sum("context")), (last.step as i64, last.context_tokens as i64));
    let cost: f64 = record.requests.iter().map(|q| q.cost_usd).sum();
    assert!((sum("micro_usd") as f64 / 1e6 - cost).abs() < 1e-6);
}

#[test]
fn several_models_and_like_names_have_links_of_their_own() {
    let mut results = testing::results();
    let mut other = testing::run("login-bug", "codex", 1);
    other.model = "gpt-5.4".into();
    results.runs.push(other);
    let mut twin = testing::run("login-bug", "codex ", 1);
    twin.strategy.name = "codex".into();
    results.runs.push(twin);
    let data = data(&render_page(&results));
    let names: Vec<&str> =
        data["blocks"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["login-bug, claude-sonnet-4-6", "login-bug, gpt-5.4"]);
    assert!(strategy(&data, "codex").is_some() && strategy(&data, "codex (2)").is_some());
}

/// Texts without repetition, from a stateless generator.
fn words(seed: u64, count: usize) -> String {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = String::new();
    for _ in 0..count {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out.push_str(&format!("{:x} ", x % 1_000_000_007));
    }
    out
}

/// Results of the size of a large benchmark. Each run has `steps` requests and its own texts.
fn large(sessions: u64, strategies: u64, steps: u64) -> Results {
    let labels = ["reference", "codex", "aider", "opencode", "openoxide", "claude-code"];
    let mut results = Results { version: 1, generator: "ctxbench".into(), ..Results::default() };
    for session in 0..sessions {
        for i in 0..strategies {
            let label = match labels.get(i as usize) {
                Some(label) => (*label).to_string(),
                None => format!("codex:auto_compact_limit={}000", 40 + 5 * i),
            };
            let seed = session * 31 + i;
            let mut r: RunRecord =
                testing::run(&format!("session-{session:03}"), &label, seed % 13);
            r.scenario.recorded = true;
            r.scenario.tags = vec![format!("team-{}", session % 7)];
            let whole = r.requests.clone();
            for (n, q) in whole.iter().cycle().take(steps as usize).enumerate().skip(whole.len()) {
                let mut q = q.clone();
                (q.seq, q.step) = (n as u64, n as u64);
                q.context_tokens += (n as u64 * 7919 + seed * 104_729) % 900;
                q.cost_usd += (n as f64 * 0.618_033).fract() * 0.01;
                r.requests.push(q);
            }
            for c in &mut r.compactions {
                c.came[0].texts[0].text = words(seed * 1_000 + c.seq, 400);
                c.went[0].texts[0].text = words(seed * 1_000 + 500 + c.seq, 20);
            }
            let fact = |f| FactRecord { fact: format!("fact-{f}"), ..r.facts[0].clone() };
            r.facts = (0..20).map(fact).collect();
            let life = |f| FactLife {
                fact: format!("fact-{f}"),
                tokens: vec![words(f, 1)],
                text: words(session * 100 + f, 20).into(),
                ..FactLife::default()
            };
            r.lives = (0..20).map(life).collect();
            results.runs.push(r);
        }
    }
    results
}

#[test]
fn words_give_way_first_where_the_page_would_be_too_large() {
    let results = large(6, 4, 240);
    let blocks = view::blocks(&results);
    let overview = Overview::new(&results, &blocks);
    let sizes: Vec<usize> = chunk::Detail::ALL
        .into_iter()
        .map(|part| chunk::pack(&blocks[0], &overview, part).len())
        .collect();
    assert!(sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
    // Budgets for everything, for about two thirds of the texts, for the curves only, and for no
    // session.
    let packed = |room: usize| {
        let mut packed = Packed::new(room);
        blocks.iter().enumerate().for_each(|(i, b)| packed.add(b, &overview, blocks.len() - i));
        packed
    };
    assert_eq!(packed(100 * sizes[0]).note(), "");
    let cut = packed(6 * (sizes[1] + 200) + 1_000);
    assert!(cut.note().contains("with words that are cut short"), "{}", cut.note());
    let bare = packed(6 * (sizes[2] + 200) + 1_000);
    assert!(bare.note().contains("6 without words"), "{}", bare.note());
    let none = packed(2_000);
    assert!(none.note().contains("6 by their figures only"), "{}", none.note());
    assert!(none.chunks.iter().all(Option::is_none));
    for p in [cut, bare] {
        assert_eq!(p.chunks.iter().flatten().count(), 6);
    }
}

/// 200 sessions × 20 strategies. `.ci/page` measures how fast such a page opens.
#[test]
#[ignore = "nightly: slow"]
fn four_thousand_runs_stay_below_the_limit() {
    let page = render_page(&large(200, 20, 250));
    if let Some(file) = std::env::var_os("CTXBENCH_LARGE_PAGE") {
        std::fs::write(file, &page).unwrap();
    }
    assert!(page.len() <= MAX_BYTES, "{} bytes", page.len());
    assert!(page.contains("So that this page stays below 20 MB"));
    let data = data(&page);
    assert_eq!(data["blocks"].as_array().unwrap().len(), 200);
    for i in [0, 100, 199] {
        assert_eq!(chunk(&page, i).unwrap()["runs"].as_array().unwrap().len(), 20);
    }
}

#[test]
fn results_without_runs_make_a_page_that_says_so() {
    assert!(render_page(&Results::default()).contains("hold no runs"));
}
