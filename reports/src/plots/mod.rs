//! Plots as SVG: cost against recall in each session and over sessions, and one for each swept
//! setting. The page contains those over sessions, and draws what is inside a session.

mod cloud;
pub(crate) mod curve;
mod front;
mod palette;
mod sheet;
mod sweep;

use std::collections::BTreeSet;
use std::iter;

pub use palette::Hues;
pub(crate) use palette::{Colors, colors};

use crate::error::ReportError;
use crate::stored::{Artifact, Files, StoredResults};
use crate::sweep::Sweeps;
use crate::terms::{Terms, terms};
use crate::view;
use crate::{fmt, seeds};
use sheet::Fault;

/// Width of a picture, pixels.
pub(crate) const WIDTH: i32 = 680;

/// Draws every plot: `plots/front.svg`, `plots/sweep-<strategy>-<setting>.svg`,
/// `plots/<scenario>-cost-recall.svg`.
pub(crate) fn write(
    stored: &StoredResults<'_>,
    hues: &Hues,
    files: &mut dyn Files,
) -> Result<(), ReportError> {
    let results = &*seeds::averaged(&stored.figures);
    let colors = colors(results, hues);
    let blocks = view::blocks(results);
    for terms in terms(&blocks) {
        let evidence = terms.evidence();
        let is_one = evidence.iter().all(|r| r.scenario.id == evidence[0].scenario.id);
        let front = over_sessions(&terms, &colors, WIDTH)?;
        if let Some(svg) = front.filter(|_| !is_one) {
            files.put(&format!("plots/front{}.svg", terms.suffix()), &svg)?;
        }
        for sweep in sweeps(&terms, &colors, WIDTH)? {
            files.put(&sweep.file, &sweep.text)?;
        }
    }
    let mut taken = BTreeSet::new();
    for block in &blocks {
        let (slug, suffix) = (fmt::slug(&block.first().scenario.id), block.suffix());
        let numbered = (2..).map(|n| format!("{slug}-{n}"));
        let file = iter::once(slug.clone())
            .chain(numbered)
            .map(|name| format!("plots/{name}-cost-recall{suffix}.svg"))
            .find(|file| taken.insert(file.to_lowercase()))
            .expect("some number is free");
        let title = format!("Cost against recall, {}", block.title());
        if let Some(drawn) = front::draw(&title, &block.runs, &colors, WIDTH) {
            files.put(&file, &drawn.map_err(failed)?)?;
        }
    }
    Ok(())
}

/// Draws cost against recall over the compared sessions. `None` if nothing is compared.
pub(crate) fn over_sessions(
    terms: &Terms<'_, '_>,
    colors: &Colors,
    width: i32,
) -> Result<Option<String>, ReportError> {
    let title = format!("Cost against recall, {}, {}", terms.scope(), terms.name());
    front::draw(&title, &terms.evidence(), colors, width).transpose().map_err(failed)
}

/// Draws every swept setting.
pub(crate) fn sweeps(
    terms: &Terms<'_, '_>,
    colors: &Colors,
    width: i32,
) -> Result<Vec<Artifact>, ReportError> {
    let Some(sweeps) = Sweeps::from_terms(terms) else { return Ok(vec![]) };
    let draw = |swept| {
        let text = sweep::draw(&sweeps, swept, &terms.name(), colors, width)?;
        let slug = fmt::slug(&format!("{}-{}", swept.name, swept.setting));
        Ok(Artifact { file: format!("plots/sweep-{slug}{}.svg", terms.suffix()), text })
    };
    sweeps.swept.iter().map(draw).collect()
}

fn failed(e: Fault) -> ReportError {
    ReportError::Refused(format!("a plot could not be drawn: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Results;
    use crate::stored::Artifact;
    use crate::testing;
    use ctxbench_core::strategy::Standing;

    fn plots(results: &Results) -> Vec<Artifact> {
        testing::files("svg", results).unwrap()
    }

    /// Checks enough of XML to detect unescaped text, unclosed tags and forbidden characters.
    fn well_formed(svg: &str) -> Result<(), String> {
        let mut open: Vec<String> = Vec::new();
        let mut rest = svg;
        while let Some(at) = rest.find('<') {
            text_ok(&rest[..at])?;
            let end = rest[at..].find('>').ok_or("unclosed tag")? + at;
            let tag = &rest[at + 1..end];
            if tag.contains('<') {
                return Err(format!("< inside <{tag}>"));
            }
            text_ok(tag)?;
            if let Some(name) = tag.strip_prefix('/') {
                let top = open.pop();
                if top.as_deref() != Some(name.trim()) {
                    return Err(format!("{top:?} closed by {name}"));
                }
            } else if !tag.ends_with('/') {
                open.push(tag.split_whitespace().next().unwrap_or("").to_string());
            }
            rest = &rest[end + 1..];
        }
        if open.is_empty() { Ok(()) } else { Err(format!("never closed: {open:?}")) }
    }

    fn text_ok(text: &str) -> Result<(), String> {
        if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
            return Err(format!("control character in {text:?}"));
        }
        for part in text.split('&').skip(1) {
            let name = part.split(';').next().unwrap_or("");
            if !["lt", "gt", "amp", "quot", "#39"].contains(&name) {
                return Err(format!("bare & in {text:?}"));
            }
        }
        Ok(())
    }

    #[test]
    fn plots_are_xml_and_labels_are_escaped() {
        let mut results = testing::results();
        results.runs[0].scenario.title = "a <b> & \"c\" \u{0} ]]>".into();
        let drawn = plots(&results);
        assert_eq!(drawn.len(), 1);
        for p in &drawn {
            well_formed(&p.text).unwrap_or_else(|e| panic!("{}: {e}", p.file));
            assert!(p.text.contains("x&lt;&amp;&quot;y"), "{} lacks the hostile label", p.file);
        }
    }

    #[test]
    fn file_names_are_safe_and_unique() {
        let mut results = testing::results();
        for (i, id) in ["../../etc", "a b", "a-b", "A-B", "…"].iter().enumerate() {
            results.runs.push(testing::run(id, "codex", i as u64));
        }
        let mut other = testing::run("a b", "codex", 1);
        other.model = "gpt-5/codex".into();
        results.runs.push(other);
        let mut files: Vec<String> = plots(&results).into_iter().map(|p| p.file).collect();
        assert!(
            files.iter().all(|f| !f[6..].contains(['/', ' ', '…']) && !f.contains("..")),
            "{files:?}"
        );
        assert!(files.iter().any(|f| f == "plots/a-b-cost-recall-gpt-5-codex.svg"), "{files:?}");
        files.iter_mut().for_each(|f| *f = f.to_lowercase());
        files.sort();
        let before = files.len();
        files.dedup();
        assert_eq!(files.len(), before);
    }

    #[test]
    fn a_strategy_has_its_colour_in_every_run() {
        let hues = testing::LABELS[..10].iter().zip(0..).map(|(l, i)| (*l, i)).collect();
        let all = testing::results();
        let mut few = all.clone();
        few.runs
            .retain(|r| matches!(r.strategy.label.as_str(), "codex" | "opencode" | "reference"));
        let (a, b) = (colors(&all, &hues), colors(&few, &hues));
        assert!(b.iter().all(|(label, color)| a[label] == *color));
    }

    #[test]
    fn every_product_has_a_colour_of_its_own_which_its_settings_share() {
        let all = colors(&testing::results(), &Hues::default());
        assert_eq!(all["codex"], all["codex:auto_compact_limit=90000"]);
        let distinct: BTreeSet<_> = all.values().map(|c| (c.0, c.1, c.2)).collect();
        // Twelve labels without the reference and two controls; two of them have settings.
        assert_eq!((all.len(), distinct.len()), (9, 7));
    }

    /// The sample, and a second scenario with a reference that exceeds the window and with points
    /// that are close together.
    fn crowded() -> Results {
        let mut results = testing::results();
        for (i, label) in testing::LABELS.iter().enumerate() {
            let mut run = testing::run("a-very-long-scenario-name-that-goes-on", label, i as u64);
            run.scenario.title =
                "A title which is much longer than anybody would want to read in the heading of a \
                 plot, and then some"
                    .into();
            run.window = 2_000;
            run.summary.cost_usd = 0.01 + i as f64 * 1e-5;
            run.summary.recall_pct = Some(99.0 + (i % 2) as f64);
            run.requests
                .iter_mut()
                .filter(|_| run.strategy.standing != Standing::Hypothetical)
                .for_each(|q| q.context_tokens /= 120);
            run.compactions.iter_mut().for_each(|c| c.before_tokens /= 120);
            if i == 2 {
                run.status = crate::record::Status::NotApplicable;
            }
            results.runs.push(run);
        }
        results
    }

    #[test]
    fn crowded_and_empty_results_give_well_formed_plots() {
        let status = crate::record::Status::NotApplicable;
        let empty = testing::of([crate::record::RunRecord { status, ..Default::default() }]);
        for results in [crowded(), empty] {
            plots(&results).iter().for_each(|p| well_formed(&p.text).unwrap());
        }
    }

    /// Two sessions with two values of a setting and two products.
    fn swept() -> Results {
        let rows = |session: &str, cost: f64| {
            [
                testing::scored(session, "reference", cost, 100.0),
                testing::scored(session, "aider", cost * 0.9, 90.0),
                testing::with_settings(session, &[], cost * 0.5, 80.0),
                testing::with_settings(session, &[("limit", "90000")], cost * 0.25, 60.0),
                testing::with_settings(session, &[("limit", "120000")], cost * 0.6, 70.0),
            ]
        };
        let mut results = testing::of([rows("one", 4.0), rows("two", 8.0)].concat());
        results.runs.iter_mut().for_each(|r| r.scenario.recorded = true);
        results
    }

    fn of_sessions(drawn: &[Artifact]) -> Vec<&Artifact> {
        let is = |p: &&Artifact| p.file.contains("/front") || p.file.contains("/sweep-");
        drawn.iter().filter(is).collect()
    }

    #[test]
    fn sessions_have_one_plot_of_the_front_and_settings_one_of_their_values() {
        let drawn = plots(&swept());
        let pooled = of_sessions(&drawn);
        let files: Vec<&str> = pooled.iter().map(|p| p.file.as_str()).collect();
        assert_eq!(files, ["plots/front.svg", "plots/sweep-codex-limit.svg"]);
        assert!(pooled.iter().all(|p| well_formed(&p.text).is_ok()));
        let says = |p: &Artifact, text: &str| {
            assert!(p.text.contains(&format!("<title>{text}</title>")), "{text}: {}", p.text);
        };
        // A quarter of the cost of the reference and 40 points fewer: the cheapest.
        says(pooled[0], "codex 90000: cost −75.0 %, recall −40.0 points, on the front");
        // Codex with default settings costs half and keeps more than with the larger limit.
        says(pooled[0], "codex 120000: cost −40.0 %, recall −30.0 points");
        says(pooled[1], "codex: limit, 2 sessions, claude-sonnet-4-6");
        says(pooled[1], "today: cost −50.0 %, on the front");
        says(pooled[1], "120000: recall −30.0 points");
        // A single session has no front over sessions, but its swept settings are drawn.
        let mut one = swept();
        one.runs.retain(|r| r.scenario.id == "one");
        let drawn = plots(&one);
        let pooled = of_sessions(&drawn);
        assert_eq!(pooled.len(), 1);
        says(pooled[0], "90000: cost $1.000, on the front");
    }

    #[test]
    fn intervals_are_spoken_of_where_they_are_drawn() {
        let two = plots(&swept());
        assert!(of_sessions(&two).iter().all(|p| !p.text.contains("interval")));
        let mut twelve = testing::recordings(12);
        for (i, r) in twelve.runs.iter_mut().enumerate() {
            r.summary.cost_usd *= 1.0 + (i % 7) as f64 / 100.0;
        }
        let drawn = plots(&twelve);
        let front = drawn.iter().find(|p| p.file == "plots/front.svg").unwrap();
        assert!(front.text.contains("95 % intervals"), "{}", front.text);
    }

    #[test]
    fn every_document_begins_with_its_title_and_tells_of_its_points() {
        let drawn = plots(&testing::results());
        for p in &drawn {
            let head = p.text.lines().nth(1).unwrap_or("");
            assert!(head.starts_with("<title>") && head.ends_with("</title>"), "{}", p.file);
        }
        let names = ["anthropic-sdk", "claude-code", "codex", "opencode", "never compacting"];
        for name in names {
            let told = format!("<title>{name}: cost $");
            assert!(drawn[0].text.contains(&told), "{told}: {}", drawn[0].text);
        }
        // A mark and its tooltip.
        assert!(drawn[0].text.matches("<circle").count() >= 2 * names.len());
        // A row that broke a rule has no point.
        assert!(drawn[0].text.contains("failed: ") && !drawn[0].text.contains("<title>x&lt;"));
    }
}
