//! Aider's chat history (`.aider.chat.history.md`), with the `.aider.llm.history` of the same
//! folder where it exists (docs/sources/aider.md §1.5).
//!
//! Rules, where the format leaves a choice:
//! - Each `# aider chat started at` begins a session, named by its time.
//! - Lines of the user (`#### `) and of the program (`> `) end with the two blanks that Aider
//!   writes. Other lines with these beginnings belong to a reply, unless one comes right after a
//!   line of the program: then it begins a text of several lines, the last of which ends in blanks.
//!   Where no line ends in blanks, since an editor removed them, the beginnings decide.
//! - Commands (`/add`, `!ls`) are not messages, unless a reply follows: then their question is.
//!   `/clear` and `/reset` are `clear`; the files that `/reset` removes are unknown.
//! - Notices of the program are not sent to the model and are left out. Between two replies they
//!   are messages, since the program made the second request itself, without notices for the user
//!   alone.
//! - `Tokens:` are the counters of the reply before, unless they are rounded (`12k`). `Cost:` is
//!   what Aider computed; a call costs what the session costs more than before it. What that is more
//!   than its own message are replies before it without counters.
//! - Of the history of requests, the system prompt of a session's first request is taken.

mod asked;
mod requests;

use std::path::PathBuf;

use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "Aider",
    name: "aider",
    untold: "files in the chat and the map of the repository, summaries of the history, times of \
             messages, counters that are rounded, and whether others are the provider's or Aider's \
             own count",
    sniff,
    read,
    parts: no_parts,
};

const START: &str = "# aider chat started at ";

const REQUESTS: &str = ".aider.llm.history";

fn sniff(head: &Head) -> bool {
    let mut lines = head.text.lines().map(str::trim_end).filter(|l| !l.is_empty());
    head.entries.is_none() && lines.next().is_some_and(|l| l.starts_with(START))
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let text = source.text()?;
    let beside = source.folder().and_then(|p| source.companion(&p.with_file_name(REQUESTS)));
    let requests = match &beside {
        Some(path) => requests::first_prompts(source.open_companion(path)?.text()?),
        None => Vec::new(),
    };
    let strict = lines(text).any(|(_, l)| l.starts_with("#### ") && l.ends_with("  "));
    let mut chat: Option<Chat> = None;
    for (number, line) in lines(text) {
        let Some(started) = line.strip_prefix(START) else {
            if let Some(chat) = &mut chat {
                chat.line(number, line, strict);
            }
            continue;
        };
        let next = Chat { line: number, started: started.trim().to_string(), ..Chat::default() };
        if let Some(ended) = chat.replace(next) {
            ended.hand_over(source, &requests, &beside, sink)?;
        }
    }
    chat.map_or(Ok(()), |last| last.hand_over(source, &requests, &beside, sink))
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l)))
}

/// Author of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockAuthor {
    User,
    Program,
    Model,
}

/// Consecutive lines of one author.
#[derive(Debug)]
struct AuthorBlock {
    who: BlockAuthor,
    line: usize,
    text: String,
}

/// Chat that is being read.
#[derive(Default)]
struct Chat {
    line: usize,
    started: String,
    blocks: Vec<AuthorBlock>,
    /// A blank line followed the newest block.
    parted: bool,
    /// A text of the program continues on the next line.
    open: bool,
}

impl Chat {
    fn line(&mut self, number: usize, line: &str, strict: bool) {
        let ended = !strict || line.ends_with("  ");
        let program = || line.strip_prefix("> ").or_else(|| (line.trim_end() == ">").then_some(""));
        // A blank line precedes each reply.
        let told =
            !self.parted && self.blocks.last().is_some_and(|b| b.who == BlockAuthor::Program);
        let (who, text) = match (line.strip_prefix("#### "), program()) {
            (Some(said), _) if ended => (BlockAuthor::User, said.trim_end()),
            (_, Some(words)) if ended || told && !self.open => {
                (BlockAuthor::Program, words.trim_end())
            }
            _ if self.open => (BlockAuthor::Program, line.trim_end()),
            _ => (BlockAuthor::Model, line),
        };
        self.open = who == BlockAuthor::Program && !ended;
        let parted = std::mem::take(&mut self.parted) && who != BlockAuthor::Model;
        match self.blocks.last_mut().filter(|b| b.who == who && !parted) {
            Some(block) => {
                block.text.push('\n');
                block.text.push_str(text);
            }
            None if text.trim().is_empty() && who == BlockAuthor::Model => self.parted = true,
            None => self.blocks.push(AuthorBlock { who, line: number, text: text.to_string() }),
        }
    }

    fn hand_over(
        self,
        source: &Source<'_>,
        requests: &[(i64, String)],
        beside: &Option<PathBuf>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Ended> {
        // Only the first message has a time.
        let mut stamp = time::normal(&self.started);
        let name = source.stem().trim_start_matches('.');
        let id = Some(format!("{name}-{}", digits(&self.started)));
        // The user takes files out of the chat at will.
        let mut out = Recording { id, drops_content: true, ..Recording::default() };
        // The two files write time stamps differently.
        let prompt = stamp.as_deref().and_then(time::millis);
        let prompt = prompt.and_then(|at| requests.iter().find(|(t, _)| *t >= at));
        if let Some((_, system)) = prompt {
            let what = StepKind::System(system.clone());
            out.steps.push(RecordingStep::new(self.line, None, what));
            out.beside.extend(beside.clone());
        }
        let (mut model, mut spent) = (None, Amount::default());
        for (n, block) in self.blocks.iter().enumerate() {
            let what = match block.who {
                BlockAuthor::Program => {
                    model = model_of(&block.text).or(model);
                    count(&block.text, block.line, &mut spent, &mut out.steps);
                    continue;
                }
                BlockAuthor::Model => {
                    let pieces = vec![MessagePart::text(block.text.trim())];
                    let reply = RecordingReply::new(format!("line {}", block.line), pieces);
                    StepKind::Reply(RecordingReply { model: model.clone(), ..reply })
                }
                BlockAuthor::User if asked::clears(&block.text) => {
                    if !has_reply(&out.steps) {
                        continue;
                    }
                    StepKind::Cleared
                }
                BlockAuthor::User => {
                    let mut after = self.blocks[n + 1..].iter().map(|b| b.who);
                    let answered =
                        after.find(|w| *w != BlockAuthor::Program) == Some(BlockAuthor::Model);
                    let Some(asked) = asked::by_user(&block.text, answered) else { continue };
                    StepKind::input(vec![MessagePart::text(asked)])
                }
            };
            if block.who == BlockAuthor::Model
                && let Some((line, told)) = self.told_since_reply(n)
            {
                let words = Part::Text(asked::by_program(&told).into());
                let added = StepKind::input(vec![MessagePart::Added(words, ContextPlace::Message)]);
                out.steps.push(RecordingStep::new(line, stamp.take(), added));
            }
            out.steps.push(RecordingStep::new(block.line, stamp.take(), what));
        }
        if !has_reply(&out.steps) {
            // Aider was started and closed without a message.
            return Ok(());
        }
        sink(Ok(out))
    }

    /// Returns the text of the program, and its first line, between the previous reply and this
    /// block. Returns `None` if the user sent a message in between.
    fn told_since_reply(&self, reply: usize) -> Option<(usize, String)> {
        let before = self.blocks[..reply].iter().rposition(|b| b.who != BlockAuthor::Program)?;
        let told = &self.blocks[before + 1..reply];
        let first = told.first().filter(|_| self.blocks[before].who == BlockAuthor::Model)?;
        let texts: Vec<&str> = told.iter().map(|b| b.text.as_str()).collect();
        Some((first.line, texts.join("\n")))
    }
}

fn has_reply(steps: &[RecordingStep]) -> bool {
    steps.iter().any(|s| matches!(s.what, StepKind::Input(_) | StepKind::Reply(_)))
}

fn digits(time: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    time.chars().map(kept).collect::<String>().trim_matches('-').to_string()
}

fn model_of(text: &str) -> Option<String> {
    let name = |l: &str| {
        let rest =
            ["Models: ", "Model: ", "Main model: "].iter().find_map(|p| l.strip_prefix(p))?;
        Some(rest.split([' ', ',']).next()?.to_string()).filter(|m| !m.is_empty())
    };
    text.lines().find_map(name)
}

/// Assigns the counters in a text of the program to the newest reply. `spent` is the cost of the
/// session so far, as the program states it. Rounded counters have a cost all the same, and so have
/// replies before without counters.
fn count(text: &str, line: usize, spent: &mut Amount, steps: &mut Vec<RecordingStep>) {
    let Some(told) = text.lines().rev().find_map(|l| l.strip_prefix("Tokens: ")) else { return };
    let mut replies = steps.iter_mut().rev().filter_map(|step| match &mut step.what {
        StepKind::Reply(reply) if step.view == View::Both => Some(reply),
        _ => None,
    });
    let Some(reply) = replies.next() else { return };
    let has_uncounted = replies.next().is_some_and(|before| before.counters == known(None));
    let (mut of_call, mut of_others) = (None, None);
    if let Some([message, session]) = costs(told) {
        let grown = (session.usd - spent.usd).max(0.0);
        let rounding = message.rounding + session.rounding + spent.rounding;
        let more = grown - message.usd;
        let more = if more > rounding { more } else { 0.0 };
        of_call = Some(grown - more);
        of_others = (has_uncounted || more > 0.0).then_some(more);
        *spent = session;
    }
    let model = reply.model.clone();
    let cost = match counters(told) {
        Some(mut counters) => {
            counters.billing.told_usd = of_call;
            reply.counters = Ok(counters);
            of_others
        }
        None => {
            reply.counters = Err("its counters are rounded".to_string());
            of_call.map(|usd| usd + of_others.unwrap_or_default())
        }
    };
    steps.extend(cost.map(|usd| RecordingStep::of_cost(line, model, usd)));
}

/// A cost in USD as Aider prints it.
#[derive(Clone, Copy, Default)]
struct Amount {
    usd: f64,
    /// Largest difference to the exact cost.
    rounding: f64,
}

/// Parses `… Cost: $0.01 message, $0.03 session.`: the costs of the message and of the session.
fn costs(told: &str) -> Option<[Amount; 2]> {
    let (_, costs) = told.split_once("Cost: $")?;
    let (message, session) = costs.split_once('$')?;
    let (session, _) = session.split_once(" session")?;
    let amount = |text: &str| {
        let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
        let usd = text.replace(',', "").parse().ok().filter(|usd| (0.0..f64::MAX).contains(usd))?;
        Some(Amount { usd, rounding: 0.5 * 0.1_f64.powi(digits.try_into().ok()?) })
    };
    Some([amount(message.split_whitespace().next()?)?, amount(session)?])
}

/// Parses `11,077 sent, 10 cache write, 20 cache hit, 706 received. Cost: …`.
fn counters(tokens: &str) -> Option<Counters> {
    let (tokens, _) = tokens.split_once(" received")?;
    let mut out = Counters::default();
    // Counts contain commas and are followed by text.
    let mut count = String::new();
    let (mut sent, mut received) = (None, None);
    for word in tokens.split_whitespace() {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            count = word.replace(',', "");
            received = Some(count.clone());
            continue;
        }
        let number = || count.parse::<u64>().ok();
        match word.trim_end_matches(',') {
            "sent" => sent = number(),
            "write" => out.write = number()?,
            "hit" => out.read = number()?,
            _ => {}
        }
    }
    // Sent tokens include the written ones, and may include the read ones.
    out.input = sent?;
    out.output = received?.parse().ok()?;
    Some(out.of_whole_prompt())
}

#[cfg(test)]
mod tests;
