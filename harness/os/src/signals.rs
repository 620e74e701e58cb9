//! Signals that end a process, unless the parent started it with them ignored: `nohup` ignores HUP,
//! and a shell ignores INT for background jobs of a script.

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    Interrupt,
    Terminate,
    HangUp,
}

impl EndSignal {
    /// Returns the exit code that a shell reports for it.
    pub fn exit_code(self) -> i32 {
        match self {
            EndSignal::Interrupt => 130,
            EndSignal::Terminate => 143,
            EndSignal::HangUp => 129,
        }
    }
}

/// Listens for the signals that end a process. On Windows that is Ctrl-C only.
pub struct Signals {
    /// `None` = it was ignored at the start, so it never arrives.
    #[cfg(unix)]
    all: [Option<Signal>; 3],
}

#[cfg(unix)]
impl Signals {
    pub fn listen() -> Signals {
        // Safe code can read the signal mask on Linux only.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let all = kinds.map(|kind| {
            let ignored = is_ignored(&status, kind.as_raw_value());
            if ignored { None } else { signal(kind).ok() }
        });
        Signals { all }
    }

    pub async fn recv(&mut self) -> EndSignal {
        async fn next(signal: &mut Option<Signal>) {
            let received = match signal {
                Some(signal) => signal.recv().await,
                None => None,
            };
            if received.is_none() {
                std::future::pending().await
            }
        }
        let [interrupt, terminate, hang_up] = &mut self.all;
        tokio::select! {
            () = next(interrupt) => EndSignal::Interrupt,
            () = next(terminate) => EndSignal::Terminate,
            () = next(hang_up) => EndSignal::HangUp,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub fn listen() -> Signals {
        Signals {}
    }

    pub async fn recv(&mut self) -> EndSignal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        EndSignal::Interrupt
    }
}

/// Reads the bit of `signal` in the hexadecimal `SigIgn` mask of `/proc/self/status`.
#[cfg(unix)]
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or_default() & 1 == 1)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_ignored_reads_bit_of_signal() {
        // HUP is signal 1, INT 2, PIPE 13, TERM 15. `nohup` ignores HUP, Rust ignores PIPE.
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        let ignored: Vec<i32> = (1..=64).filter(|n| is_ignored(status, *n)).collect();
        assert_eq!(ignored, [1, 13]);
        assert!(!is_ignored("", 1) && !is_ignored("SigIgn:\tx\n", 1) && !is_ignored(status, 0));
        assert!(is_ignored("SigIgn:\t8000000000000000", 64));
    }
}
