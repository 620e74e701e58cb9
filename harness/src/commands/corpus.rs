//! Loads the sessions that the arguments name. Shows the progress on standard error.

use std::collections::HashSet;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::choice::{Candidate, Choice, Chooser};
use anyhow::bail;
use ctxbench_replay::run::all_cores;
use ctxbench_scenarios::formats::Source;
use ctxbench_scenarios::{Corpus, LoadError, Scenario, corpus, is_path, name_apart};
use ctxbench_util::plural::pluralize;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::input;

/// Progress on standard error: on a terminal, a line that is updated in place; otherwise one line
/// every 30 s.
pub(crate) struct Progress {
    bar: ProgressBar,
    what: &'static str,
    /// Time of the last line that is not updated in place.
    told: Option<Mutex<Instant>>,
}

/// Interval between two lines.
const EVERY: Duration = Duration::from_secs(30);

impl Progress {
    /// Starts the progress of `total` items.
    pub(crate) fn new(what: &'static str, total: usize) -> Progress {
        let bar = ProgressBar::new(total as u64);
        let template = format!("{{bar:20}} {{pos}} of {{len}} {what}, about {{eta}} left");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        let is_terminal = std::io::stderr().is_terminal();
        if !is_terminal {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Progress { bar, what, told: (!is_terminal).then(|| Instant::now().into()) }
    }

    /// Creates a progress that shows nothing.
    pub(crate) fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden(), what: "", told: None }
    }

    /// Counts one item.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
        let Some(Ok(mut told)) = self.told.as_ref().map(Mutex::lock) else { return };
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
        if told.elapsed() >= EVERY && done < all {
            *told = Instant::now();
            let left = self.bar.elapsed().mul_f64((all - done) as f64 / done as f64);
            report!("note: {done} of {all} {}, about {} left", self.what, HumanDuration(left));
        }
    }

    /// Runs `write`, which may print, without mixing its output with the progress line.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Removes the progress line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// An item found by [`walk`].
pub(crate) enum WalkItem<S> {
    /// What was made of a session, before the search for facts.
    Session(S),
    /// A session or a file that cannot be read.
    Unreadable(LoadError),
    /// A file in a folder that is not a session.
    NotASession(LoadError),
}

impl<S> WalkItem<S> {
    /// `in_folder`: files that are not sessions are expected.
    fn from_result(
        one: Result<Scenario, LoadError>,
        in_folder: bool,
        make: impl FnOnce(Scenario) -> S,
    ) -> WalkItem<S> {
        match one {
            Ok(scenario) => WalkItem::Session(make(scenario)),
            Err(e) if in_folder && e.is_other() => WalkItem::NotASession(e),
            Err(e) => WalkItem::Unreadable(e),
        }
    }
}

/// Number of files that are read before the one whose sessions are taken.
const READ_AHEAD: usize = 32;

/// Reads files on all cores. Passes what `read` sends of each to `take`, in the order of the files.
fn read_in_order<T: Send>(
    files: &[PathBuf],
    read: &(dyn Fn(&Path, SyncSender<T>) + Sync),
    take: &mut dyn FnMut(Receiver<T>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (to, begun) = sync_channel(READ_AHEAD);
    let files_left = &Mutex::new(files.iter());
    std::thread::scope(|scope| {
        for _ in 0..all_cores().min(files.len()) {
            let to = to.clone();
            scope.spawn(move || {
                loop {
                    let mut files = files_left.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(file) = files.next() else { return };
                    let (items, received) = sync_channel(1);
                    // Sent before another file begins, so that the files keep their order.
                    if to.send(received).is_err() {
                        return;
                    }
                    drop(files);
                    read(file, items);
                }
            });
        }
        drop(to);
        begun.into_iter().try_for_each(take)
    })
}

/// What to make of a session at a path. It is called on several threads.
type Make<'a, S> = &'a (dyn Fn(&Path, Scenario) -> S + Sync);

/// What to do with an item, by the progress, the input and the path of the item.
type TakeItem<'a, S> = dyn FnMut(&Progress, &str, &Path, WalkItem<S>) -> ControlFlow<()> + 'a;

/// Visits the sessions of all inputs, one at a time. Calls `take` with the progress, the input, the
/// path of the item, and what `make` made of it.
pub(crate) fn walk<S: Send>(
    inputs: &[String],
    shown: &mut Option<Progress>,
    make: Make<'_, S>,
    take: &mut TakeItem<'_, S>,
) -> anyhow::Result<()> {
    let mut corpora: Vec<Option<Corpus>> = Vec::new();
    for input in inputs {
        let path = Path::new(input);
        let read = !input::is_pipe(path) && is_path(input);
        corpora.push(read.then(|| Corpus::at(path)));
    }
    Corpus::take_each_file_once(corpora.iter_mut().flatten());
    let files = corpora.iter().flatten().flat_map(Corpus::files).count();
    let shown: &Progress = shown.get_or_insert_with(|| Progress::new("files", files));
    for (input, corpus) in inputs.iter().zip(corpora) {
        let path = Path::new(input);
        let ended = if input::is_pipe(path) {
            let name = input::display_name(path);
            let mut one = |place: &Path, one| {
                let item = WalkItem::from_result(one, false, |scenario| make(place, scenario));
                take(shown, input, place, item)
            };
            match input::piped(path) {
                Ok(bytes) => {
                    let source = Source::of_bytes(&bytes, &name);
                    corpus::read_source(&source, Path::new(&name), &mut one)
                }
                Err(e) => one(Path::new(&name), Err(e)),
            }
        } else if let Some(corpus) = corpus {
            let many = path.is_dir();
            let read = |file: &Path, items: SyncSender<(PathBuf, WalkItem<S>)>| {
                let _ = corpus.read(file, &mut |place, one| {
                    let item = WalkItem::from_result(one, many, |scenario| make(place, scenario));
                    match items.send((place.to_path_buf(), item)) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    }
                });
            };
            let ended = read_in_order(corpus.files(), &read, &mut |items| {
                items.into_iter().try_for_each(|(place, item)| take(shown, input, &place, item))?;
                shown.step();
                ControlFlow::Continue(())
            });
            match ended {
                ControlFlow::Continue(()) => {
                    corpus.into_unread().into_iter().try_for_each(|(folder, e)| {
                        take(shown, input, &folder, WalkItem::Unreadable(e))
                    })
                }
                broken => broken,
            }
        } else {
            let found = ctxbench_scenarios::load(input).map_err(|e| super::meant(input, e))?;
            found.scenarios.into_iter().try_for_each(|scenario| {
                let place = PathBuf::from(&scenario.id);
                let made = make(&place, scenario);
                take(shown, input, &place, WalkItem::Session(made))
            })
        };
        if ended.is_break() {
            break;
        }
    }
    Ok(())
}

/// Returns the path of a session relative to its input, independent of the location of the input.
pub(crate) fn below(input: &str, place: &Path) -> String {
    let below = place.strip_prefix(input).ok().filter(|p| !p.as_os_str().is_empty());
    let name = || place.file_name().map(PathBuf::from).unwrap_or_default();
    below.map_or_else(name, Path::to_path_buf).display().to_string()
}

/// Maximum number of skipped files that messages name.
const NAMED: usize = 5;

/// Skipped files: their number, and the first [`NAMED`] with errors.
#[derive(Default)]
pub(crate) struct Skipped {
    pub(crate) count: usize,
    pub(crate) first: Vec<(PathBuf, LoadError)>,
}

/// Formats an error with the full path. Readers only give the last part of the path.
pub(crate) fn at(place: &Path, why: &LoadError) -> String {
    let (place, why) = (place.display().to_string(), why.to_string());
    match why.split_once(':') {
        Some((file, rest)) if place.ends_with(file) => format!("{place}:{rest}"),
        _ if why.contains(&place) => why,
        _ => format!("{place}: {why}"),
    }
}

impl Skipped {
    pub(crate) fn add(&mut self, place: &Path, why: LoadError) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push((place.to_path_buf(), why));
        }
    }

    /// Prints that files of a folder are not sessions, if there are any.
    pub(crate) fn report_all(&self) {
        if self.count > 0 {
            report!("note: no session in {}", pluralize(self.count, "file"));
            self.report("");
        }
    }

    /// Prints the first skipped files and the number of the others on standard error.
    pub(crate) fn report(&self, before: &str) {
        for (place, why) in &self.first {
            report!("note: {before}skipped: {}", at(place, why));
        }
        if let Some(more) = self.count.checked_sub(NAMED).filter(|n| *n > 0) {
            report!("note: {before}skipped: {more} more");
        }
    }
}

/// Takes a selected session, or the path of a file that cannot be read.
type TakeSession<'a, T, E> =
    dyn FnMut(&Progress, Result<T, (&Path, LoadError)>) -> Result<(), E> + 'a;

/// Visits the selected sessions, and the files that cannot be read, until `take` fails. `make` gets
/// each session as soon as it is read, before the search for facts. Returns the skipped files and a
/// message about the omitted sessions, or the error of `take`.
pub(crate) fn choose<T: Send, E>(
    inputs: &[String],
    choice: &Choice,
    make: Make<'_, T>,
    take: &mut TakeSession<'_, T, E>,
) -> anyhow::Result<Result<(Skipped, Option<String>), E>> {
    let mut chooser = Chooser::new(choice);
    let mut skipped = Skipped::default();
    let (mut shown, mut taken) = (None, Ok(()));
    let offer = |place: &Path, scenario: Scenario| {
        (Candidate::new(&scenario.session, choice), make(place, scenario))
    };
    walk(inputs, &mut shown, &offer, &mut |shown, input, place, met| {
        match met {
            WalkItem::Session((candidate, made)) => {
                let ticket = chooser.admit(&candidate, &below(input, place));
                if let Some(one) = ticket.and_then(|t| chooser.take(t, made)) {
                    taken = take(shown, Ok(one));
                }
            }
            WalkItem::Unreadable(e) => taken = take(shown, Err((place, e))),
            WalkItem::NotASession(e) => skipped.add(place, e),
        }
        match taken.is_ok() && !chooser.is_full() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    let (drawn, left_out) = chooser.end();
    if let (Ok(()), Some(shown)) = (&taken, &shown) {
        taken = drawn.into_iter().try_for_each(|one| take(shown, Ok(one)));
    }
    Ok(taken.map(|()| (skipped, left_out)))
}

/// Loads the selected sessions. Reports unreadable files on standard error. Fails if an input does
/// not exist, or if unreadable files or the selection leave no session.
pub(crate) fn load_all(inputs: &[String], choice: &Choice) -> anyhow::Result<Vec<Scenario>> {
    load_usable(inputs, choice, &mut |_| true)
}

/// Loads the selected sessions, considering only those for which `is_usable` returns true.
pub(crate) fn load_usable(
    inputs: &[String],
    choice: &Choice,
    is_usable: &mut dyn FnMut(&Scenario) -> bool,
) -> anyhow::Result<Vec<Scenario>> {
    let all = load_each(inputs, choice, is_usable, &|_| (), &mut |_, mut scenario, _| {
        scenario.find_facts();
        (scenario, ())
    })?;
    Ok(all.into_iter().map(|(scenario, ())| scenario).collect())
}

/// Place of a session that a second walk can read again: the number of sessions before it in the
/// walk, and its path.
pub(crate) type Ordinal = (usize, PathBuf);

/// Loads the selected sessions. `prepare` may find the facts of each, on several threads. `make` adds
/// data to each session in order, and may drop the content of the session.
pub(crate) fn load_each<P: Send, T>(
    inputs: &[String],
    choice: &Choice,
    is_usable: &mut dyn FnMut(&Scenario) -> bool,
    prepare: &(dyn Fn(&mut Scenario) -> P + Sync),
    make: &mut dyn FnMut(Option<Ordinal>, Scenario, P) -> (Scenario, T),
) -> anyhow::Result<Vec<(Scenario, T)>> {
    let mut kept: Vec<(usize, PathBuf, (Scenario, T))> = Vec::new();
    let mut chooser = Chooser::new(choice);
    let index = |input: &str| inputs.iter().position(|i| i == input).unwrap_or_default();
    let mut met: Vec<(usize, Skipped)> = inputs.iter().map(|_| Default::default()).collect();
    let mut ordinal = 0;
    let offer = |_: &Path, mut scenario: Scenario| {
        let candidate = Candidate::new(&scenario.session, choice);
        let prepared = (!candidate.is_refused()).then(|| prepare(&mut scenario));
        (candidate, scenario, prepared)
    };
    walk(inputs, &mut None, &offer, &mut |_, input, place, one| {
        let (sessions, skipped) = &mut met[index(input)];
        match one {
            WalkItem::Session((candidate, scenario, prepared)) => {
                *sessions += 1;
                let path = Path::new(input);
                let is_on_disk = !input::is_pipe(path) && is_path(input);
                let on_disk = is_on_disk.then(|| (ordinal, place.to_path_buf()));
                ordinal += 1;
                if !is_usable(&scenario) {
                    return ControlFlow::Continue(());
                }
                let ticket = chooser.admit(&candidate, &below(input, place));
                if let Some((ticket, prepared)) = ticket.zip(prepared) {
                    let made = make(on_disk, scenario, prepared);
                    kept.extend(chooser.take(ticket, (index(input), place.to_path_buf(), made)));
                }
            }
            WalkItem::Unreadable(e) | WalkItem::NotASession(e) => skipped.add(place, e),
        }
        if chooser.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let full = chooser.is_full();
    let (sample, left_out) = chooser.end();
    kept.extend(sample);
    let mut failed = None;
    for (input, (sessions, skipped)) in inputs.iter().zip(met) {
        let all = skipped.count + sessions;
        if sessions == 0 {
            let Some((place, e)) = skipped.first.into_iter().next() else { continue };
            // A named input must exist, but single files in it may be damaged.
            if inputs.len() == 1 || !Path::new(input).exists() {
                return Err(super::meant(input, e));
            }
            report!("error: {}; left out", at(&place, &e));
            failed = Some(e);
        } else if skipped.count > 0 {
            let n = skipped.count;
            report!("note: {input}: {n} of {all} files are not sessions and are skipped");
            skipped.report(&format!("{input}: "));
        }
    }
    if let Some(line) = &left_out {
        report!("note: {line}");
    }
    if kept.is_empty() {
        match (failed, left_out) {
            (Some(e), _) => return Err(e.into()),
            (None, Some(line)) if !full => bail!("no session is left to run: {line}"),
            _ => {}
        }
    }
    Ok(named(inputs, kept))
}

/// Visits the sessions of an earlier [`walk`] again, in the same order, until `take` breaks. Calls
/// `take` with the number of sessions before it and what `make` made of it.
pub(crate) fn walk_again<S: Send>(
    inputs: &[String],
    make: Make<'_, S>,
    take: &mut dyn FnMut(usize, S) -> ControlFlow<()>,
) -> anyhow::Result<()> {
    let mut ordinal = 0;
    walk(inputs, &mut Some(Progress::hidden()), make, &mut |_, _, _, one| match one {
        WalkItem::Session(made) => {
            ordinal += 1;
            take(ordinal - 1, made)
        }
        WalkItem::Unreadable(_) | WalkItem::NotASession(_) => ControlFlow::Continue(()),
    })
}

/// Gives the sessions of all inputs unique ids.
fn named<T>(
    inputs: &[String],
    mut kept: Vec<(usize, PathBuf, (Scenario, T))>,
) -> Vec<(Scenario, T)> {
    let mut out: Vec<(Scenario, T)> = Vec::new();
    for (n, input) in inputs.iter().enumerate() {
        let from_result = kept.extract_if(.., |(of, ..)| *of == n);
        let (mut loaded, notes): (Vec<(PathBuf, Scenario)>, Vec<T>) =
            from_result.map(|(_, place, (scenario, note))| ((place, scenario), note)).unzip();
        if is_path(input) {
            name_apart(Path::new(input), &mut loaded);
        }
        // Sessions of another input may have the same id.
        let known: HashSet<String> = out.iter().map(|(s, _)| s.id.clone()).collect();
        let shown = input::display_name(Path::new(input));
        let stem = Path::new(&shown).file_stem().unwrap_or_default().to_string_lossy();
        out.extend(loaded.into_iter().zip(notes).map(|((_, mut scenario), note)| {
            let own = scenario.id.clone();
            if known.contains(&own) && own != stem {
                scenario.id = format!("{stem}-{own}");
            } else if known.contains(&own) && input::is_pipe(Path::new(input)) {
                let numbered = (2..).map(|n| format!("{own}-{n}"));
                scenario.id =
                    numbered.into_iter().find(|id| !known.contains(id)).unwrap_or(own.clone());
            }
            if scenario.id != own {
                scenario.session.header.id.clone_from(&scenario.id);
            }
            (scenario, note)
        }));
    }
    out
}
