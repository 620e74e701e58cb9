//! The program that is recorded: it has the terminal, our signals reach it, its end is ours.

use std::io::{self, IsTerminal};
use std::process::{Command, ExitStatus};

use ctxbench_os::Signals;
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};

/// Number of SIGTERM.
const TERMINATE: i32 = 15;

/// Runs a program to its end and returns its exit code; of one that a signal ended, 128 and the number
/// of the signal, as shells say it.
pub async fn run(program: Command) -> io::Result<u8> {
    let mut signals = Signals::listen();
    let mut child = tokio::process::Command::from(program).spawn()?;
    let id = child.id();
    loop {
        tokio::select! {
            status = child.wait() => return Ok(code(status?)),
            // The terminal sends the others to the whole foreground group; a program that gets
            // Ctrl-C twice may react differently.
            signal = signals.recv() => {
                if signal == TERMINATE || !io::stdin().is_terminal() {
                    pass_on(signal, id);
                }
            }
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

/// Sends a signal to a process. One that has ended needs none.
#[cfg(unix)]
fn pass_on(signal: i32, child: Option<u32>) {
    let child = child.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some((child, signal)) = child.zip(Signal::from_named_raw(signal)) {
        let _ = kill_process(child, signal);
    }
}

/// Ctrl-C reaches the child from the terminal.
#[cfg(not(unix))]
fn pass_on(_: i32, _: Option<u32>) {}
