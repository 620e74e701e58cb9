//! The program that is recorded: it has the terminal, our signals reach it, its end is ours.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

use tokio::process::Command;

/// A program to be started.
pub struct ChildProgram {
    /// As typed.
    pub name: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables to add to ours.
    pub environment: BTreeMap<String, String>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitState {
    /// Its exit code; of one that a signal ended, 128 and the number of the signal, as shells say it.
    pub code: u8,
}

/// Runs a program to its end.
pub async fn run(program: &ChildProgram) -> io::Result<ExitState> {
    let mut command = Command::new(&program.name);
    command.args(&program.arguments).envs(&program.environment);
    let mut signals = Signals::listen()?;
    let mut child = command.spawn()?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(ExitState { code: code(status?) }),
            signal = signals.next() => signal.reach(child.id()),
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

#[cfg(unix)]
use unix::Signals;

#[cfg(unix)]
mod unix {
    use std::io::{self, IsTerminal};

    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::SignalKind;

    use crate::signals::SignalListener;

    /// Signals that would end us.
    pub(super) struct Signals {
        interrupt: SignalListener,
        terminate: SignalListener,
        hang_up: SignalListener,
        /// The terminal sends Ctrl-C to the whole foreground group; a program that gets it twice
        /// may react differently.
        terminal: bool,
    }

    pub(super) struct Received {
        signal: Signal,
        told: bool,
    }

    impl Signals {
        pub(super) fn listen() -> io::Result<Signals> {
            Ok(Signals {
                interrupt: SignalListener::new(SignalKind::interrupt()),
                terminate: SignalListener::new(SignalKind::terminate()),
                hang_up: SignalListener::new(SignalKind::hangup()),
                terminal: io::stdin().is_terminal(),
            })
        }

        pub(super) async fn next(&mut self) -> Received {
            tokio::select! {
                () = self.interrupt.recv() => Received { signal: Signal::INT, told: self.terminal },
                () = self.terminate.recv() => Received { signal: Signal::TERM, told: false },
                () = self.hang_up.recv() => Received { signal: Signal::HUP, told: self.terminal },
            }
        }
    }

    impl Received {
        pub(super) fn reach(&self, child: Option<u32>) {
            let child = child.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            if let (false, Some(child)) = (self.told, child) {
                // One that has ended needs no signal.
                let _ = kill_process(child, self.signal);
            }
        }
    }
}

#[cfg(not(unix))]
use elsewhere::Signals;

#[cfg(not(unix))]
mod elsewhere {
    use std::io;

    /// Ignores Ctrl-C, which reaches the child from the terminal.
    pub(super) struct Signals;

    pub(super) struct Received;

    impl Signals {
        pub(super) fn listen() -> io::Result<Signals> {
            Ok(Signals)
        }

        pub(super) async fn next(&mut self) -> Received {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            Received
        }
    }

    impl Received {
        pub(super) fn reach(&self, _child: Option<u32>) {}
    }
}
