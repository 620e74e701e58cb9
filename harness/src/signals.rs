//! Signals that would end this process. Whoever started it may want it to go on: `nohup` has HUP
//! ignored, and a shell INT by what a script runs in the background.
#![cfg(unix)]

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// One that is waited for; `None` = this process was started with it ignored, and it stays so.
pub(crate) struct Heard(Option<Signal>);

impl Heard {
    /// Listens from this call on.
    pub(crate) fn of(kind: SignalKind) -> io::Result<Heard> {
        // Only Linux tells without unsafe code.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if is_ignored(&status, kind.as_raw_value()) {
            return Ok(Heard(None));
        }
        Ok(Heard(Some(signal(kind)?)))
    }

    /// Ready when it comes.
    pub(crate) async fn next(&mut self) {
        let came = match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if came.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// What a process has to say of itself holds a bit per signal, in hexadecimal.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or_default() & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_a_bit_of_the_mask() {
        // HUP is signal 1, INT 2, PIPE 13, TERM 15; as `nohup` and Rust leave it.
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        let ignored: Vec<i32> = (1..=64).filter(|n| is_ignored(status, *n)).collect();
        assert_eq!(ignored, [1, 13]);
        assert!(!is_ignored("", 1) && !is_ignored("SigIgn:\tx\n", 1) && !is_ignored(status, 0));
        assert!(is_ignored("SigIgn:\t8000000000000000", 64));
    }
}
