//! Sessions made by rule: as many turns in the shop as a plan asks for, each with a ticket, bulk
//! and facts of its own.
//!
//! Every turn but the reports establishes one fact, its kind in rotation. A report asks for those
//! since the last one, for the first goal and rule, and for the request limit that the last report
//! set; its own words give none of them away.

use super::domain::{Entity, words};
use super::rng::Rng;
use super::script::{FactNote, StoryBlock, StoryCall};
use super::vfs::Vfs;
use ctxbench_core::fact::FactKind;

/// What a generated session looks like.
pub struct Rounds {
    /// Id of the session; seeds everything in it.
    pub id: &'static str,
    /// Window of the session's header, tokens.
    pub window: u64,
    /// User turns, the reports among them.
    pub turns: usize,
    /// Every so many turns the user asks for a report.
    pub report_every: usize,
    /// What the agent looks at in a turn: kinds of output with their lines, two calls per step.
    pub looks: &'static [(&'static str, usize)],
}

/// The sessions that scenarios extend as `generated:ID`.
pub const ROUNDS: &[Rounds] = &[
    Rounds {
        id: "ten-rounds",
        window: 200_000,
        turns: 30,
        report_every: 3,
        looks: &[
            ("log", 13),
            ("rows", 12),
            ("json", 8),
            ("spans", 24),
            ("gitlog", 16),
            ("log", 14),
        ],
    },
    Rounds {
        id: "five-hundred",
        window: 200_000,
        turns: 500,
        report_every: 10,
        looks: &[("log", 6), ("rows", 4)],
    },
    Rounds {
        id: "million",
        window: 200_000,
        turns: 50,
        report_every: 5,
        looks: &[
            ("log", 130),
            ("rows", 110),
            ("json", 70),
            ("ci", 150),
            ("spans", 190),
            ("log", 120),
        ],
    },
];

/// A block's label for facts.
fn turn_label(turn: usize) -> String {
    format!("turn-{turn}")
}

impl Rounds {
    /// The story, from the first turn to the last report.
    pub fn blocks(&self) -> Vec<StoryBlock> {
        let vfs = Vfs::new();
        let mut out = Vec::new();
        for turn in 1..=self.turns {
            let mut rng = Rng::named(&format!("{} turn {turn}", self.id));
            match turn % self.report_every {
                0 => self.report(turn, &mut rng, &mut out),
                _ => self.work(
                    turn,
                    &vfs.entities[turn * 7 % vfs.entities.len()],
                    &mut rng,
                    &mut out,
                ),
            }
        }
        out
    }

    fn is_report(&self, turn: usize) -> bool {
        turn.is_multiple_of(self.report_every)
    }

    /// The report that asks for what a turn established; the last turns of a plan may have none.
    fn next_report(&self, turn: usize) -> Vec<String> {
        let next = (turn / self.report_every + 1) * self.report_every;
        if next <= self.turns { vec![turn_label(next)] } else { vec![] }
    }

    fn work(&self, turn: usize, entity: &Entity, rng: &mut Rng, out: &mut Vec<StoryBlock>) {
        let ticket = format!("HS-{}", 3000 + turn);
        let verb = words(&entity.verbs[turn % entity.verbs.len()]);
        let noun = words(&entity.name);
        let ask = match turn % 4 {
            0 => format!(
                "{ticket}: two customers wrote that \"{verb}\" does nothing on a {noun} since the \
                 last release. Find out why, please."
            ),
            1 => format!(
                "Next is {ticket}: let staff {verb} a {noun} from the list, with a reason. Look at \
                 what is there first."
            ),
            2 => format!(
                "{ticket} please: \"{verb}\" of a {noun} takes seconds on staging. I want to know \
                 what it waits for."
            ),
            _ => format!(
                "Then {ticket}. The nightly job stops when it should {verb} a {noun}; the job log \
                 and the rows should tell."
            ),
        };
        let (kind, said) = Planted::of_turn(turn, rng);
        let mut text = ask;
        let mut facts = Vec::new();
        if turn == 1 {
            text = format!(
                "We prepare release train {} this week, and all tickets of today go into it. One \
                 rule for the whole day: nothing is written to the replica {}, not even a \
                 temporary table. {text}",
                self.train(),
                self.replica()
            );
            let reports: Vec<String> =
                (1..=self.turns).filter(|t| self.is_report(*t)).map(turn_label).collect();
            facts.push(fact("train", FactKind::Goal, reports.clone(), &[self.train()]));
            facts.push(fact("replica", FactKind::Constraint, reports, &[self.replica()]));
        }
        let note =
            |kind: FactKind| fact(&format!("t{turn}"), kind, self.next_report(turn), &said.tokens);
        if kind == Place::User {
            text = format!("{text} {}", said.sentence);
            facts.push(note(said.kind));
        }
        out.push(StoryBlock::User { think_ms: 0, label: Some(turn_label(turn)), text });
        out.extend(facts.into_iter().map(StoryBlock::Fact));
        for (step, looks) in self.looks.chunks(2).enumerate() {
            let text = match step {
                0 => format!(
                    "I look at what the {noun} service did lately and at the data behind it."
                ),
                1 => format!(
                    "The service does call {verb}; I compare the stored rows with what the \
                     interface returns."
                ),
                _ => format!("Nothing unusual for {noun} yet. One more look, at an earlier time."),
            };
            out.push(StoryBlock::Say { label: None, text });
            for (index, (look, lines)) in looks.iter().enumerate() {
                let shown = kind == Place::Result && step == 0 && index == 0;
                let extra = if shown { format!("\n{}", said.sentence) } else { String::new() };
                out.push(StoryBlock::Call(call(
                    look,
                    *lines,
                    entity,
                    &format!("{ticket}-{step}"),
                    &extra,
                )));
                if shown {
                    out.push(StoryBlock::Fact(note(said.kind)));
                }
            }
        }
        let path = format!("docs/changes/{}.md", ticket.to_lowercase());
        out.push(StoryBlock::Say {
            label: None,
            text: format!(
                "The cause is clear, the change to {noun} is small. I write it down for the train."
            ),
        });
        if kind == Place::Path {
            // What writes the file names it first.
            out.push(StoryBlock::Fact(fact(
                &format!("t{turn}"),
                FactKind::Artifact,
                self.next_report(turn),
                std::slice::from_ref(&path),
            )));
        }
        out.push(StoryBlock::Call(StoryCall {
            tool: "write".into(),
            failed: false,
            args: path,
            label: None,
            body: format!(
                "# {ticket}\n\nStaff can {verb} a {noun} again. The service checks the \
                state before the role."
            ),
        }));
        let end = if kind == Place::Answer { format!(" {}", said.sentence) } else { String::new() };
        out.push(StoryBlock::Say {
            label: None,
            text: format!(
                "Done: the {noun} service checks the state first, and a test covers {verb}.{end}"
            ),
        });
        if kind == Place::Answer {
            out.push(StoryBlock::Fact(note(said.kind)));
        }
    }

    fn report(&self, turn: usize, rng: &mut Rng, out: &mut Vec<StoryBlock>) {
        let number = turn / self.report_every;
        let limit =
            format!("{} requests per minute", 2000 + number * 37 + rng.range(0, 30) as usize);
        let text = format!(
            "Report {number} please, for the train's page: what the train is called, the rule of \
             the day, the limit that holds right now, and what came out of each ticket since the \
             last report. After that a new limit holds on the gateway: {limit}."
        );
        let last = turn + self.report_every > self.turns;
        let needs = if last { vec![] } else { vec![turn_label(turn + self.report_every)] };
        // A limit is replaced by the next report; the last one stays.
        let mut note = fact(
            &format!("limit-{number}"),
            if last { FactKind::Value } else { FactKind::Superseded },
            needs,
            &[limit],
        );
        note.superseded_by = (!last).then(|| format!("limit-{}", number + 1));
        out.push(StoryBlock::User { think_ms: 0, label: Some(turn_label(turn)), text });
        out.push(StoryBlock::Fact(note));
        out.push(StoryBlock::Say {
            label: None,
            text: format!(
                "Report {number} is on the page: every ticket since the last one with its outcome, \
                 the rule and the limit. All tests pass."
            ),
        });
    }

    fn train(&self) -> String {
        format!("train-{}", Rng::named(&format!("{} train", self.id)).range(1000, 9999))
    }

    fn replica(&self) -> String {
        format!("pg-harbor-ro-{}", Rng::named(&format!("{} replica", self.id)).id(4))
    }
}

#[derive(PartialEq, Clone, Copy)]
enum Place {
    User,
    Result,
    Path,
    Answer,
}

/// A sentence that establishes a fact, and the literals that carry it.
struct Planted {
    kind: FactKind,
    sentence: String,
    tokens: Vec<String>,
}

impl Planted {
    /// The fact of a turn: six kinds in rotation.
    fn of_turn(turn: usize, rng: &mut Rng) -> (Place, Planted) {
        let said =
            |kind, sentence: String, token: String| Planted { kind, sentence, tokens: vec![token] };
        match turn % 6 {
            0 => {
                let id = format!("cus_{}", rng.id(12));
                (
                    Place::Result,
                    said(
                        FactKind::Value,
                        format!("09:14:02.118 WARN first affected customer={id} since the deploy"),
                        id,
                    ),
                )
            }
            1 => {
                let path = format!("/v2/export/{}", rng.id(6));
                (
                    Place::User,
                    said(
                        FactKind::Constraint,
                        format!("The answer of {path} must stay as it is, a partner reads it."),
                        path,
                    ),
                )
            }
            2 => {
                let setting =
                    format!("SHOP_BATCH_{} = {}", rng.hex(4).to_uppercase(), rng.range(110, 990));
                (
                    Place::Answer,
                    said(
                        FactKind::Decision,
                        format!("We go with {setting}, measured as the best of three."),
                        setting,
                    ),
                )
            }
            3 => {
                let code = format!("E_LOCK_{}", rng.hex(6));
                (
                    Place::Result,
                    said(
                        FactKind::Error,
                        format!("09:14:02.531 ERROR deadlock detected code={code} while updating"),
                        code,
                    ),
                )
            }
            4 => (Place::Path, said(FactKind::Artifact, String::new(), String::new())),
            _ => {
                let ticket = format!("HS-{}", 6000 + turn);
                (
                    Place::Answer,
                    said(
                        FactKind::Todo,
                        format!("Left open: the list view has the same gap, noted as {ticket}."),
                        ticket,
                    ),
                )
            }
        }
    }
}

fn fact(id: &str, kind: FactKind, needs: Vec<String>, tokens: &[String]) -> FactNote {
    FactNote { id: id.to_owned(), kind, needs, superseded_by: None, tokens: tokens.to_vec() }
}

/// One look at the shop; `mark` makes its arguments, and with them its output, different from all
/// others.
fn call(look: &str, lines: usize, entity: &Entity, mark: &str, extra: &str) -> StoryCall {
    let (tool, args, order) = match look {
        "log" => {
            ("logs", format!("shop-api 15m {}:{mark}:{lines}", entity.name), format!("log {lines}"))
        }
        "spans" => {
            ("logs", format!("tracing 15m {}:{mark}", entity.name), format!("spans {lines}"))
        }
        "rows" => (
            "sql",
            format!(
                "SELECT * FROM {} ORDER BY updated_at DESC LIMIT {lines} -- {mark}",
                entity.table
            ),
            format!("rows {} {lines}", entity.name),
        ),
        "json" => (
            "http",
            format!("GET http://localhost:3000/v2/{}?limit={lines}&trace={mark}", entity.folder()),
            format!("json {} {lines}", entity.name),
        ),
        "ci" => {
            ("bash", format!("ci-log show --last {lines} --ticket {mark}"), format!("ci {lines}"))
        }
        _ => (
            "bash",
            format!("git log --format=short -n {lines} -- src/{} # {mark}", entity.folder()),
            format!("gitlog {lines}"),
        ),
    };
    StoryCall {
        tool: tool.to_owned(),
        failed: false,
        args,
        label: None,
        body: format!("!{order}{extra}"),
    }
}
