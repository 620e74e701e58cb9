//! Strategies in any language: a program that speaks the protocol of docs/exec.md is a strategy like
//! any other.
//!
//! `strategy` asks it at each moment, `talk` carries questions and calls back over its `process`,
//! `state` knows the messages that it knows, and `dialect` turns blocks into messages and back.

mod apply;
mod calls;
mod dialect;
mod limits;
mod probe;
mod process;
mod protocol;
mod quotes;
mod spec;
mod state;
mod strategy;
mod talk;

pub use probe::introduced;
pub use spec::{is_exec, read};

/// Ends every program that is still running when this process is told to end.
pub fn end_with_us() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            let code = runtime.block_on(told_to_end());
            crate::groups::end_all();
            std::process::exit(code);
        });
    });
}

/// Waits for a signal and gives the exit code by which a shell tells it.
#[cfg(unix)]
async fn told_to_end() -> i32 {
    use tokio::signal::unix::{SignalKind, signal};
    let waits = async |kind: SignalKind| match signal(kind) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = waits(SignalKind::interrupt()) => 130,
        () = waits(SignalKind::terminate()) => 143,
        () = waits(SignalKind::hangup()) => 129,
    }
}

#[cfg(not(unix))]
async fn told_to_end() -> i32 {
    let _ = tokio::signal::ctrl_c().await;
    130
}
