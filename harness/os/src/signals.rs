//! Signals that end a process, unless the parent started it with them ignored: `nohup` ignores HUP,
//! and a shell ignores INT for background jobs of a script.

#[cfg(unix)]
use std::task::Poll;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals that end a process. On Windows that is Ctrl-C only.
pub struct Signals {
    /// `None` = it was ignored at the start, so it never arrives.
    #[cfg(unix)]
    all: [(SignalKind, Option<Signal>); 3],
}

#[cfg(unix)]
impl Signals {
    pub fn listen() -> Signals {
        // Safe code can read the signal mask on Linux only.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let all = kinds.map(|kind| {
            let ignored = is_ignored(&status, kind.as_raw_value());
            (kind, if ignored { None } else { signal(kind).ok() })
        });
        Signals { all }
    }

    /// Returns the number of the next signal.
    pub async fn recv(&mut self) -> i32 {
        std::future::poll_fn(|context| {
            for (kind, signal) in &mut self.all {
                let polled = signal.as_mut().map(|signal| signal.poll_recv(context));
                if let Some(Poll::Ready(Some(()))) = polled {
                    return Poll::Ready(kind.as_raw_value());
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl Signals {
    /// Waits for a signal.
    pub async fn wait(mut self) {
        self.recv().await;
    }
}

#[cfg(not(unix))]
impl Signals {
    pub fn listen() -> Signals {
        Signals {}
    }

    /// Returns the number of SIGINT on other systems.
    pub async fn recv(&mut self) -> i32 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        2
    }
}

/// Reads the bit of `signal` in the hexadecimal `SigIgn` mask of `/proc/self/status`.
#[cfg(unix)]
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or_default() & 1 == 1)
}

#[cfg(test)]
#[cfg(unix)]
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
