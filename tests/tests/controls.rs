//! What remembers nothing must not win, and nothing remembers more than the ideal summary.

use std::collections::HashSet;
use std::sync::LazyLock;

use ctxbench_core::block::is_fixed;
use ctxbench_core::prelude::*;
use ctxbench_core::tokens::content_hash;
use ctxbench_mock::summarise::Summariser;
use ctxbench_replay::Options;
use ctxbench_scenarios::{Scenario, autofacts};
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::{About, BuildRequest, Descriptor, Product};

use crate::common::{recordings, replayed};

/// Two recordings with a compaction each.
static SESSIONS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let scenario = |name: &&str| {
        let mut session = recordings::session(name);
        autofacts::add(&mut session);
        Scenario { id: name.to_string(), scale: 1.0, session, ..Scenario::default() }
    };
    recordings::DIRECT.iter().map(scenario).collect()
});

/// Dollars of a row and mean recall over both sessions, per cent.
fn row(spec: &str, summariser: Summariser) -> (f64, f64) {
    row_of(&Spec::parse(spec).unwrap(), summariser)
}

fn row_of(spec: &Spec, summariser: Summariser) -> (f64, f64) {
    let options = Options { summariser, ..Options::default() };
    let runs: Vec<_> = SESSIONS
        .iter()
        .map(|s| replayed::run_spec("claude-opus-4-6", s, spec, &options).replayed.record.summary)
        .collect();
    let recall: f64 = runs.iter().map(|s| s.recall_pct.unwrap()).sum();
    (runs.iter().map(|s| s.cost_usd).sum(), recall / runs.len() as f64)
}

/// A way to list rare terms where a summary would be, in texts that say nothing about them.
#[derive(Clone, Copy, Debug)]
enum Disguise {
    /// By line, with a small word after every second.
    SmallWords,
    /// By line, with a usual pair such as `in the` after each.
    UsualPairs,
    /// In no order, with a small word after each.
    Shuffled,
    /// Alone on a line each, in as many texts as need be.
    LinesOfOne,
    /// By line, each after two short words of its line.
    OwnWords,
    /// By line, each between its neighbors in the line if these are short.
    Neighbors,
}

impl Disguise {
    /// Returns a rare word of a line with the short words of the line that go with it.
    fn with_own_words(self, line: &[&str], at: usize) -> String {
        let around: Vec<&str> = match self {
            Disguise::OwnWords => {
                let short: Vec<&str> =
                    line.iter().filter(|w| (3..=5).contains(&w.len())).copied().collect();
                let own = short.iter().cycle().skip(2 * at).take(2.min(short.len()));
                own.chain([&line[at]]).copied().collect()
            }
            Disguise::Neighbors => {
                let near = at.saturating_sub(1)..line.len().min(at + 2);
                let near = near.filter(|i| *i == at || line[*i].len() <= 5);
                near.map(|i| line[i]).collect()
            }
            _ => vec![line[at]],
        };
        around.join(" ")
    }
}

/// Keeps the newest messages, and the rare terms of the old ones.
struct DisguisedList {
    disguise: Disguise,
    /// Tokens at which the old becomes a list.
    limit: u64,
    seen: HashSet<String>,
}

/// Tokens of the newest messages that stay.
const NEWEST: u64 = 25_000;

/// Lines of a text with lines of one word: as many as would count in a real summary.
const LINES: usize = 32;

impl DisguisedList {
    fn lists(&mut self, old: &[Arc<Block>]) -> Vec<String> {
        let mut lines: Vec<Vec<String>> = Vec::new();
        for line in old.iter().flat_map(|b| b.text.lines()) {
            let words = line.split(|c: char| c.is_whitespace() || "\"'`,;(){}[]<>=".contains(c));
            let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
            let is_rare = |at: &usize| words[*at].len() >= 8;
            let rare: Vec<usize> = (0..words.len()).filter(is_rare).collect();
            let new = rare.into_iter().filter(|at| self.seen.insert(words[*at].into()));
            lines.push(new.map(|at| self.disguise.with_own_words(&words, at)).collect());
        }
        let small = ["of", "to", "in", "is", "the", "it", "on", "at", "by", "we", "as", "or"];
        let usual = ["of the", "in the", "to the", "is a", "for the", "with the", "on the"];
        let pick = |word: &str, n: usize| content_hash(word.as_bytes()) as usize % n;
        if matches!(self.disguise, Disguise::LinesOfOne) {
            return lines.concat().chunks(LINES).map(|words| words.join("\n")).collect();
        }
        let after = |(i, word): (usize, &String)| match self.disguise {
            Disguise::OwnWords | Disguise::Neighbors => word.clone(),
            Disguise::SmallWords if i % 2 == 1 => word.clone(),
            Disguise::SmallWords | Disguise::Shuffled | Disguise::LinesOfOne => {
                format!("{word} {}", small[pick(word, small.len())])
            }
            Disguise::UsualPairs => format!("{word} {}", usual[pick(word, usual.len())]),
        };
        if matches!(self.disguise, Disguise::Shuffled) {
            let mut all = lines.concat();
            all.sort_by_key(|word| content_hash(word.as_bytes()));
            lines = vec![all];
        }
        let lines = lines.iter().filter(|words| !words.is_empty());
        let lines = lines.map(|words| words.iter().enumerate().map(after).collect::<Vec<_>>());
        vec![lines.map(|words| words.join(" ")).collect::<Vec<_>>().join(". ")]
    }
}

#[async_trait]
impl Strategy for DisguisedList {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let blocks = s.context.blocks();
        if s.billed_tokens() < self.limit {
            return Flow::Proceed;
        }
        let tokens_from = |from: usize| s.prompt_tokens(&blocks[from..]);
        let starts = step_starts(blocks);
        let Some(&from) = starts.iter().find(|&&from| tokens_from(from) <= NEWEST) else {
            return Flow::Proceed;
        };
        let is_old = |b: &Arc<Block>| !is_fixed(b) && b.kind != BlockKind::Reminder;
        let old: Vec<_> = blocks[..from].iter().filter(|b| is_old(b)).cloned().collect();
        let mut after: Vec<_> = blocks[..from].iter().filter(|b| !is_old(b)).cloned().collect();
        let rest = blocks[from..].to_vec();
        for list in self.lists(&old) {
            after.push(s.synthetic(BlockKind::Reminder, Role::User, list, origins(&old)));
        }
        after.extend(rest);
        s.compacted(CompactionKind::Clear, "list", Phase::MidTurn, after).unwrap();
        Flow::Proceed
    }
}

/// A list and its limit, as a product.
struct ListProduct(Disguise, u64);

impl Product for ListProduct {
    fn about(&self) -> About {
        About::read(include_str!("../../strategies/src/controls/word-list.toml"))
    }

    fn build(&self, _: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(DisguisedList { disguise: self.0, limit: self.1, seen: HashSet::new() })
    }
}

/// Dollars of a list and its mean recall over both sessions, per cent.
fn list_row(disguise: Disguise, limit: u64) -> (f64, f64) {
    let product = Box::leak(Box::new(ListProduct(disguise, limit)));
    let descriptor = Box::leak(Box::new(Descriptor::new(product)));
    let spec = Spec { descriptor, ..Spec::parse("word-list").unwrap() };
    row_of(&spec, Summariser::Extractive)
}

#[test]
fn no_list_in_disguise_is_on_the_front_of_products() {
    let later = ["codex:auto_compact_limit=60%", "codex:auto_compact_limit=70%"];
    let specs = ["claude-code", "codex", later[0], later[1], "opencode", "pi"];
    let products = specs.map(|spec| (spec, row(spec, Summariser::Extractive)));
    use Disguise::{LinesOfOne, Neighbors, OwnWords, Shuffled, SmallWords, UsualPairs};
    for disguise in [SmallWords, UsualPairs, Shuffled, LinesOfOne, OwnWords, Neighbors] {
        let (usd, recall) = list_row(disguise, 100_000);
        let beats = |(_, (u, r)): &(&str, (f64, f64))| *u <= usd && *r >= recall;
        assert!(products.iter().any(beats), "{disguise:?}: ${usd:.3}, {recall:.1} %, {products:?}");
    }
}

#[test]
fn no_list_in_disguise_is_worth_as_much_as_copied_lines() {
    let (usd, recall) = row("generational:rent=4", Summariser::Extractive);
    for limit in [100_000, 150_000] {
        for disguise in [Disguise::UsualPairs, Disguise::OwnWords, Disguise::Neighbors] {
            let (list_usd, listed) = list_row(disguise, limit);
            let is_worse = list_usd >= usd && listed < recall;
            assert!(is_worse, "{disguise:?}: ${list_usd:.3}, {listed:.1} %, not {recall:.1} %");
        }
    }
}

#[test]
fn no_list_of_words_is_on_the_front_of_products() {
    let specs =
        ["claude-code", "codex", "codex:auto_compact_limit=50%", "codex:auto_compact_limit=70%"];
    let products = specs.map(|spec| (spec, row(spec, Summariser::Extractive)));
    for list in ["word-list", "word-list:limit=0.7", "shuffled-list"] {
        let (usd, recall) = row(list, Summariser::Extractive);
        let beats = |(_, (u, r)): &(&str, (f64, f64))| *u <= usd && *r >= recall;
        assert!(products.iter().any(beats), "{list}: ${usd:.3}, {recall:.1} %, {products:?}");
    }
}

#[test]
fn the_ideal_summary_keeps_most_and_the_reference_everything() {
    for product in ["claude-code", "codex"] {
        let (_, own) = row(product, Summariser::Extractive);
        let (_, ideal) = row(product, Summariser::Ideal);
        assert!(ideal >= own, "{product}: ideal {ideal:.1} %, extractive {own:.1} %");
    }
    assert_eq!(row("reference", Summariser::Extractive).1, 100.0);
}
