//! Signals that end a process, unless the parent started it with them ignored: `nohup` ignores HUP,
//! and a shell ignores INT for background jobs of a script.
#![cfg(unix)]

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for one signal. A signal that was ignored at the start never arrives.
pub struct SignalListener(Option<Signal>);

impl SignalListener {
    /// Listens from this call on.
    pub fn new(kind: SignalKind) -> SignalListener {
        // Safe code can read the signal mask on Linux only.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = is_ignored(&status, kind.as_raw_value());
        SignalListener(if ignored { None } else { signal(kind).ok() })
    }

    pub async fn recv(&mut self) {
        let received = match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if received.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Reads the bit of `signal` in the hexadecimal `SigIgn` mask of `/proc/self/status`.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or_default() & 1 == 1)
}

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
