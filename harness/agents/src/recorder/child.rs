//! The program that is recorded: it has the terminal, our signals reach it, its end is ours.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
#[cfg(unix)]
use std::io::IsTerminal;
use std::process::ExitStatus;

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;
#[cfg(unix)]
use tokio::signal::unix::SignalKind;

#[cfg(unix)]
use ctxbench_os::SignalListener;

/// A program to be started.
pub struct ChildProgram {
    /// As typed.
    pub name: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables to add to ours.
    pub environment: BTreeMap<String, String>,
}

/// Runs a program to its end and returns its exit code; of one that a signal ended, 128 and the number
/// of the signal, as shells say it.
pub async fn run(program: &ChildProgram) -> io::Result<u8> {
    let mut command = Command::new(&program.name);
    command.args(&program.arguments).envs(&program.environment);
    let mut signals = Signals::listen();
    let mut child = command.spawn()?;
    let id = child.id();
    loop {
        tokio::select! {
            status = child.wait() => return Ok(code(status?)),
            () = signals.pass_on(id) => {}
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().map_or(u8::MAX, |code| u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

/// Signals that would end us: INT, TERM and HUP.
#[cfg(unix)]
struct Signals {
    all: [SignalListener; 3],
    has_terminal: bool,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> Signals {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let all = kinds.map(SignalListener::new);
        Signals { all, has_terminal: io::stdin().is_terminal() }
    }

    /// Waits for a signal and sends it to the child.
    async fn pass_on(&mut self, child: Option<u32>) {
        let [interrupt, terminate, hang_up] = &mut self.all;
        let signal = tokio::select! {
            () = interrupt.recv() => Signal::INT,
            () = terminate.recv() => Signal::TERM,
            () = hang_up.recv() => Signal::HUP,
        };
        // The terminal sends the others to the whole foreground group; a program that gets Ctrl-C
        // twice may react differently.
        let is_told = signal != Signal::TERM && self.has_terminal;
        let child = child.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(child) = child.filter(|_| !is_told) {
            // One that has ended needs no signal.
            let _ = kill_process(child, signal);
        }
    }
}

/// Ctrl-C, which reaches the child from the terminal.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Signals {
        Signals
    }

    async fn pass_on(&mut self, _child: Option<u32>) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
